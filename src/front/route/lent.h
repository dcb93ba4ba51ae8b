/*
 * One request at one node of a cluster, on a private lane that is lent for this request only. The
 * request is a part of a command that may not travel on a shared lane. Commands of this kind are
 * slow, may forge replies (command_row.h), or change the server (FLUSHALL, SCRIPT LOAD, ACL
 * SETUSER).
 *
 * The node must have accepted the client's login first (front/route/place.h). After the reply the
 * lane is reset and kept for the next owner. While no lane is available, the search is repeated for
 * at most failover-wait. After failover-wait the reply is weir's error. A lane that is lost with
 * the request on it closes the client, because the request may or may not have run. Owner: the
 * compound. Thread: the worker's.
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
    /*
     * The whole reply; the slice is valid during this call. The request is over, and its memory
     * belongs to the owner.
     */
    void (*on_reply)(struct lent *lent, struct slice reply);
    /* `n` more bytes of the reply are kept. The callee may close the client, and `lent` with it. */
    void (*on_more)(struct lent *lent, size_t n);
    /* No reply will come: the client is closed, or about to be closed. The request is over. */
    void (*on_lost)(struct lent *lent);
};

struct lent {
    struct lane_user lane_user;
    /* a link without a socket: woken when the lane is ready, has answered, or is closed */
    struct link link;
    const struct lent_ops *ops;
    struct client *client;
    struct nodes_row *row; /* valid only if the topology still has the row, with this node */
    struct node *node;     /* one reference; NULL: the request is over */
    struct slice request;  /* owned by the compound */
    struct bytes reply;    /* the reply so far; heap */
    struct bytes refusal;  /* why no lane could be opened; heap; empty: no reason known */
    struct probe probe;    /* probes whether the request blocks */
    uint64_t over_ns;      /* end of the search for a lane */
    uint64_t tag;
    bool may_forge, admits, blocks, writes; /* properties of the command */
    bool is_sent;
    /*
     * for WAIT: the first request on the lane is a write, so that WAIT covers all earlier writes to
     * the node
     */
    bool must_cover;
    bool is_covered; /* WAIT covers the earlier writes */
    bool is_in_vain; /* the client has half-closed: a request that blocks is given up */
    /* the client's writes at the node may be lost: WAIT's reply says that no replica has them */
    bool is_lost;
};

/* False: the request is over, or was never started. */
static inline bool lent_is_on(const struct lent *lent)
{
    return lent->node != NULL;
}

/*
 * Starts a request that goes to this node as `bytes`, which must stay valid. The caller calls
 * lent_go_on next.
 */
void lent_start(struct lent *lent, const struct lent_ops *ops, struct client *client,
                const struct request *request, struct nodes_row *row, struct slice bytes);

/*
 * The request is WAIT or WAITAOF and must cover all that the client wrote at the node. If WAIT
 * cannot cover these writes, its reply says that no replica has them
 * (front/session/wait_coverage.h). `has_writes`: the node certainly has the client's writes.
 */
void lent_cover(struct lent *lent, bool has_writes);

/* Continues after the client's link was woken. */
void lent_go_on(struct lent *lent);

/*
 * The client has half-closed. A request that blocks in Redis is given up, and the client is closed.
 */
void lent_hurry(struct lent *lent);

/*
 * The client is closed: ends the request without calling the owner. Safe on a request that is over.
 */
void lent_leave(struct lent *lent);

#endif
