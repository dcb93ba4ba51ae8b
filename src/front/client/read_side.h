/*
 * The node that serves a client's requests on a shared lane: the default node, or a replica for
 * commands that only read.
 *
 *   session->proof      the default node has accepted the client's credentials; needed at a replica
 *   read_side->proof    the replica has accepted the client's credentials
 *   client->shared      lease on the shared lane of the side that the client is on
 *   read_side->other    lease on the shared lane of the other side
 *
 * A lease ends with the proof of its own node. At a replica the proof of the default node is
 * checked before each read.
 *
 * A client changes sides only while none of its calls is in flight, so that its replies stay in
 * order: front/route/reads.h. Private lanes lead to the default node. A client without a struct
 * read_side is never at a replica. The worker's thread.
 */
#ifndef WEIR_FRONT_READ_SIDE_H
#define WEIR_FRONT_READ_SIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "front/client/client.h"
#include "upstream/login/auth_lanes.h"

enum side {
    SIDE_DEFAULT,
    SIDE_REPLICA,
};

struct read_side {
    struct client *client;
    /* the replica that the client reads from or will read from; one reference; NULL: none */
    struct node *node;
    struct node *refused; /* a replica that refused the client's login; one reference; NULL: none */
    struct lease other;   /* lease on the shared lane of the side that the client is not on */
    struct auth_proof proof; /* proof that Redis accepts the client's credentials at the replica */
    /* the question to the replica about `proof`; in flight while question.login is not NULL */
    struct question question;
    uint64_t refused_until_ns; /* when `refused` may be used again */
    uint64_t ask_ns;           /* when the replica may be asked for a proof again */
    /* when the default node last sent an answer that a replica may not know yet */
    uint64_t seen_ns;
    uint64_t wrote_ns; /* when the default node last answered a write of the client */
    uint64_t there_ns; /* when the client last left a replica */
    /* when requests last waited for replies in flight, so that weir could look for a replica */
    uint64_t drained_ns;
    uint64_t look_ns; /* at the default node: when weir may look for a replica again */
    uint64_t held_ns; /* when requests last waited for a replica to catch up; 0: never */
    uint32_t number;  /* decides which replica the client tries first */
    uint32_t doubts;  /* reach.doubts of the replica when the client moved there */
    /* auth generation of the replica when the client moved there; see node_auth_generation */
    uint32_t auth_generation;
    uint8_t n_refusals; /* logins refused by replicas in a row */
    uint8_t side;       /* enum side */
    bool has_asked;     /* the client's READONLY is in force */
    bool was_there;     /* the client has been at `node` */
};

/* Makes a read_side for the client. `number`: see read_side.number. NULL: out of memory. */
struct read_side *read_side_new(struct client *client, uint32_t number);

/* Frees the read_side of a closed client. Safe on NULL. */
void read_side_free(struct read_side *reading);

/*
 * The client is closed: drops leases and proofs and forgets the question. Safe without a read_side.
 */
void read_side_stop(struct client *client);

static inline struct read_side *read_side_of(const struct client *client)
{
    return client_extra(client)->read_side;
}

static inline bool read_side_is_at_replica(const struct client *client)
{
    return read_side_of(client) != NULL && read_side_of(client)->side == SIDE_REPLICA;
}

/* The row of a replica in the topology. NULL: the node has no row, or is the default node. */
struct nodes_row *read_side_find_row(const struct front *front, const struct node *node);

/*
 * The row of the node that gets requests without a private lane: the replica's, or the default
 * node's.
 */
struct nodes_row *read_side_row(const struct client *client);

/*
 * Moves the client to the replica. Only while none of the client's calls is in flight on a shared
 * lane.
 */
void read_side_enter(struct client *client);

/*
 * Moves the client back to the default node. Only while none of the client's calls is in flight on
 * a shared lane.
 */
void read_side_leave(struct client *client);

/*
 * The client will read from this replica once its login at the replica is proven. NULL: the client
 * reads from no replica. Only while the client is at the default node.
 */
void read_side_choose(struct client *client, struct node *node);

/*
 * The session has changed: the client moves to the default node and drops the lease on the other
 * side.
 */
void read_side_end_session(struct client *client);

/* The login has changed: as read_side_end_session, and the proof at the replica is dropped. */
void read_side_end_login(struct client *client);

/* After RESET: as read_side_end_login, and READONLY ends. */
void read_side_reset(struct client *client);

/* The default node has just answered the client. `is_write`: a command that writes. */
void read_side_note_answered(struct client *client, bool is_write);

/* The client leaves its private lane, where it may have read and written until now. */
void read_side_note_left_lane(struct client *client);

#endif
