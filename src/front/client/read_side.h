/*
 * Which node's shared lane a client is on: the home node's, or a replica's for commands that only read.
 *
 *     session->proof, the home node's      Redis there has taken the client's words; needed at a replica, too
 *     read_side->proof, the replica's        Redis there has taken them
 *     client->shared                       the lease on the lane of the side that the client is on ...
 *     read_side->other                       ... and of the side that it is not on
 *
 * Each lease ends with the proof of its own node. At a replica the home node's proof is asked about
 * before each read.
 *
 * A client changes sides only while nothing of its is in flight (front/route/reads.h says when), so that its replies
 * stay in
 * order. Private lanes are the home node's. A client without a struct read_side is never at a replica. The worker's
 * thread.
 */
#ifndef WEIR_FRONT_READ_SIDE_H
#define WEIR_FRONT_READ_SIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "front/client/client.h"
#include "upstream/login/doors.h"

enum side {
    SIDE_HOME,
    SIDE_REPLICA,
};

struct read_side {
    struct client *client;
    struct node *node;         /* the replica that it reads from, or gets ready to; one reference; NULL: none */
    struct node *refused;      /* a replica that does not take its login; one reference; NULL: none */
    struct lease other;        /* on the shared lane of the side that it is not on */
    struct proof proof;        /* that Redis takes its words at the replica */
    struct question question;  /* whether it does; question.login NULL: it is not being asked */
    uint64_t refused_until_ns; /* until then the replica that has refused is not used */
    uint64_t ask_ns;           /* it is not asked before that */
    uint64_t seen_ns;          /* when the home node told it something last that a replica may not have */
    uint64_t wrote_ns;         /* the same, by its own writes */
    uint64_t there_ns;         /* when it left a replica last */
    uint64_t drained_ns;       /* when it last had to wait for its replies before a replica was looked for */
    uint64_t look_ns;          /* while it is at the home node: a replica is not looked for before that */
    uint64_t held_ns;          /* when it was held last for a replica to get on; 0: never */
    uint32_t number;           /* which node it takes first */
    uint32_t doubts;           /* reach.doubts of the replica, when it came there */
    uint32_t epoch;            /* of the replica, when it came there; see node_epoch */
    uint8_t n_refusals;        /* logins that replicas did not take, in a row */
    uint8_t side;              /* enum side */
    bool has_asked;            /* READONLY */
    bool was_there;            /* the replica is the one that it was at last */
};

/* NULL: out of memory. */
struct read_side *read_side_new(struct client *client, uint32_t number);

/* Of a client that is closed. Nothing calls it any more. Safe on NULL. */
void read_side_free(struct read_side *reading);

/* The client is closed: what is asked for it is not waited for. Safe without a read_side. */
void read_side_stop(struct client *client);

/* NULL: none. */
static inline struct read_side *read_side_of(const struct client *client)
{
    return client_extra(client)->read_side;
}

static inline bool read_side_is_at_replica(const struct client *client)
{
    return read_side_of(client) != NULL && read_side_of(client)->side == SIDE_REPLICA;
}

/* The row of a node in the topology behind the home node's; NULL: it has none, or is the home node. */
struct nodes_row *read_side_find_row(const struct front *front, const struct node *node);

/* Where requests that need no private lane go: the home node's row, or the replica's. */
struct nodes_row *read_side_row(const struct client *client);

/* Change sides. Only with nothing in flight on a shared lane. */
void read_side_enter(struct client *client);
void read_side_leave(struct client *client);

/* It reads from this replica from now on, once it is ready there; NULL: from none. Only while it is at the home node. */
void read_side_choose(struct client *client, struct node *node);

/* Its session is another: it is at the home node, without a lease on the other side. */
void read_side_end_session(struct client *client);

/* Its login is another, too. */
void read_side_end_login(struct client *client);

/* RESET: READONLY is taken back, too. */
void read_side_reset(struct client *client);

/* It has been answered at the home node, just now; `is_write`: by something that it wrote. */
void read_side_note_answered(struct client *client, bool is_write);

/* It leaves its private lane, where it may have read and written until now. */
void read_side_note_left_lane(struct client *client);

#endif
