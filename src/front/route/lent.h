/*
 * One request at one node of a cluster, on a private lane that is lent for it alone: a part of a command that may not
 * travel on a lane of others, for it is slow, forges replies, or changes the server (FLUSHALL, SCRIPT LOAD, ACL
 * SETUSER).
 *
 * The node must have taken the client's words first (front/route/place.h). Behind the reply the lane is reset and
 * kept for the
 * next. While no lane can be had it is looked for again, for at most failover-wait; then the reply is weir's error. A
 * lane
 * that is lost with the request on it closes the client: whether the request was run is unknown. Owner: the compound;
 * the worker's thread.
 */
#ifndef WEIR_FRONT_LENT_H
#define WEIR_FRONT_LENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "front/client/client.h"
#include "front/route/request.h"
#include "upstream/node/nodes.h"

struct lent;

struct lent_ops {
    /* The whole reply; the slice is good for this call. It is over: its memory is the owner's. */
    void (*on_reply)(struct lent *lent, struct slice reply);
    /* `n` more bytes of it are kept. The client may be closed by that, and `lent` with it. */
    void (*on_more)(struct lent *lent, size_t n);
    /* There is none, and the client is closed, or about to be. It is over. */
    void (*on_lost)(struct lent *lent);
};

struct lent {
    struct rider rider;
    struct link link; /* hollow: woken when the lane is ready, has answered, or has gone */
    const struct lent_ops *ops;
    struct client *client;
    struct nodes_row *row; /* not to be followed unless it is in the topology, with this node */
    struct node *node;     /* one reference; NULL: it is over */
    struct slice request;  /* the owner's */
    struct bytes reply;    /* as far as it has come; heap */
    struct bytes refusal;  /* why no lane could be opened; heap; empty: no reason is known */
    struct probe probe;    /* does it block? */
    uint64_t over_ns;      /* no lane is looked for after that */
    uint64_t tag;
    bool may_forge, admits, blocks, writes; /* of its command */
    bool is_sent;
    bool must_cover; /* WAIT: the lane is greeted with a write, and speaks for all that the node was sent before that */
    bool is_covered; /* it does so */
    bool is_in_vain; /* the client has ended its side: if it blocks, it is given up */
    bool is_lost;    /* what the client wrote there may be lost: no replica counts */
};

/* False: it is over, or was never started. */
static inline bool lent_is_on(const struct lent *lent)
{
    return lent->node != NULL;
}

/* Of this request, which is to go to this node as `bytes`, which must stay. lent_go_on follows. */
void lent_start(struct lent *lent, const struct lent_ops *ops, struct client *client, const struct request *request,
                struct nodes_row *row, struct slice bytes);

/*
 * It is WAIT or WAITAOF: it is to speak for all that the client has written there. Where it cannot, no replica counts
 * (front/session/wait_coverage.h). `has_writes`: what the client wrote is there for sure.
 */
void lent_cover(struct lent *lent, bool has_writes);

/* The client's link was woken: what it has waited for may be there. */
void lent_go_on(struct lent *lent);

/* The client has ended its side: a request that blocks in Redis is given up, and the client is closed. */
void lent_hurry(struct lent *lent);

/* The client is closed: it is over, and nothing is called. Safe on one that is over. */
void lent_leave(struct lent *lent);

#endif
