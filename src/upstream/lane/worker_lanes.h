/*
 * The worker lanes: the part that all lanes of one worker share, to all nodes. This part has weir's
 * own login, the outbox, the memory for buffered replies, and the lane users that wait for room for
 * a connection.
 *
 * The worker's thread only.
 */
#ifndef WEIR_UPSTREAM_WORKER_LANES_H
#define WEIR_UPSTREAM_WORKER_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "net/link.h"
#include "net/loop.h"
#include "upstream/login/login.h"
#include "upstream/upstream.h"

struct lane_user;

/*
 * Requests for one lane that are copied as late as possible. Requests that are adjacent in the read
 * buffer become one piece, and are copied once. Zeroed: empty.
 *
 * A worker has at most one piece at a time, for one lane. outbox_gather adds to the piece.
 * outbox_send sends all other bytes, behind the piece. Nothing else writes to a lane's link, so the
 * order is kept. The piece stays in the sender's memory. The sender calls outbox_flush before the
 * sender reuses that memory.
 */
struct outbox {
    struct link *link; /* destination; NULL: empty */
    const char *at;    /* the sender's memory */
    size_t len;        /* bytes */
};

/*
 * Write the piece to its link, which copies the bytes. If the link has been closed, the piece is
 * dropped.
 */
void outbox_flush(struct outbox *outbox);

/* Send these bytes, copied, behind the piece. */
void outbox_send(struct outbox *outbox, struct link *link, const char *data, size_t n);

/* Send these bytes, at the latest in the next outbox_flush; n > 0. */
void outbox_gather(struct outbox *outbox, struct link *link, const char *data, size_t n);

struct worker_lanes {
    struct loop *loop;
    struct upstream *upstream;
    bool is_private; /* each client has a private lane: no shared lane is kept open */
    struct outbox outbox;
    struct own_login own; /* weir's own login */
    /* lane users, by lane_user.waiting: woken when a lane is given back, or at the next tick */
    struct list retrying;
    uint32_t n_wanted; /* lane users of this worker that count in the upstream's room.wanted */
    uint32_t n_broken; /* ready lanes closed by Redis or the network, in total */
    /* bytes of replies buffered for readers that have not caught up, see slow_reader.h */
    uint32_t absorbed;
    uint32_t share_us; /* how long the sending client waited for its fair share; 0: not at all */
};

void worker_lanes_init(struct worker_lanes *worker_lanes, struct loop *loop,
                       struct upstream *upstream, bool is_private);
void worker_lanes_fini(struct worker_lanes *worker_lanes);

/*
 * weir's own login with the password that new lanes use now; NULL: weir does not log in. Open lanes
 * stay when the password changes.
 */
struct login *worker_lanes_login(struct worker_lanes *worker_lanes);

/* The login of clients that do not log in themselves, with any password; NULL: none. */
static inline struct login *worker_lanes_lent(const struct worker_lanes *worker_lanes)
{
    return worker_lanes->upstream->lends_login ? worker_lanes->own.newest : NULL;
}

/*
 * The lane user waits for room until it is woken, or is taken from `retrying`. If the upstream's
 * room is full, the lane user counts in room.wanted.
 */
void worker_lanes_retry(struct worker_lanes *worker_lanes, struct lane_user *lane_user);

/* As worker_lanes_retry, but without counting: the lane user only wants to look again. */
void worker_lanes_wake_soon(struct worker_lanes *worker_lanes, struct lane_user *lane_user);

/* Wakes the lane user that has waited longest. False: no lane user waits. */
bool worker_lanes_wake_retrying(struct worker_lanes *worker_lanes);

#endif
