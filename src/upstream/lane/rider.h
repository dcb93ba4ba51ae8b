/*
 * A lane user: a part that sends requests on lanes and gets the replies. Each client is a lane
 * user, and each part of weir that sends Redis commands of its own. All calls of one lane user in
 * flight are on one lane.
 *
 * Embedded in the struct of that part. The worker's thread only.
 */
#ifndef WEIR_UPSTREAM_RIDER_H
#define WEIR_UPSTREAM_RIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "net/link.h"
#include "resp/glimpse.h"
#include "upstream/lane/calls.h"
#include "upstream/node/not_run.h"
#include "upstream/lane/room.h"

struct lane;
struct rider;

/* How a lane has failed. */
enum lane_end {
    END_NONE,        /* not failed: weir has closed the lane */
    END_LOST,        /* the connection could not be made, or broke, or memory is out */
    END_LATE,        /* an answer did not arrive in time */
    END_NONSENSE,    /* an unexpected frame arrived */
    END_TURNED_AWAY, /* Redis has too many connections, or rejects this address */
    /* Redis refuses a part of the greeting, as it would refuse it to the client */
    END_REFUSED,
    END_LOGIN_REFUSED, /* Redis no longer accepts the login */
    END_NO_RESET,      /* the last owner's user may not RESET the connection */
    END_UNCLEAN,       /* a lane used before gave a wrong answer to its greeting */
};

/* What a lane user no longer has to wait for. */
enum rider_wait {
    RIDER_REPLIES, /* all its calls are answered: see rider.wants_idle */
    RIDER_LANE,    /* a lane, or room for one: the lane user must look again */
    RIDER_SHARE,   /* its share in the fair queue */
};

/*
 * The callbacks of a lane user. Callbacks that cannot occur may be NULL:
 *
 *     on_run_end                        without lane_end_run
 *     on_counted                        without counted calls
 *     on_timed, on_unheard              without arrived_ns
 *     on_answer                         without CALL_LOOK
 *     on_blocking                       with holds_replies
 *     on_heavy, on_blocking, on_unread  on a private lane with a reader that is never congested
 */
struct rider_ops {
    /* The next bytes of its replies, in order. */
    void (*on_bytes)(struct rider *rider, const char *data, size_t n);
    /*
     * n bytes from Redis for this lane user are thrown away: the client has asked not to get them.
     */
    void (*on_unheard)(struct rider *rider, size_t n);
    /*
     * on_passing returns the link to which the next bytes may be spliced past on_bytes, see
     * link_ops; NULL: none. on_passed reports n spliced bytes. Both callbacks may be NULL.
     */
    struct link *(*on_passing)(struct rider *rider);
    void (*on_passed)(struct rider *rider, size_t n);
    /* All calls noted when lane_end_run was called are answered, oldest first. */
    void (*on_run_end)(struct rider *rider);
    /* A call with `counted` not 0 has been answered, or withdrawn. */
    void (*on_counted)(struct rider *rider, uint8_t counted);
    /*
     * The oldest n > 0 requests on the lane have been answered, all noted by `call`. Called before
     * the last bytes. Only with rider.arrived_ns, and not for requests that may wait in Redis.
     */
    void (*on_timed)(struct rider *rider, const struct call *call, uint32_t n);
    /*
     * Redis did not run the oldest request on the shared lane: `call` is its call, `reply` the
     * error, `row` its row in not_run.def. True: the lane user takes the request back, with
     * call.counted, and the reply is not passed on. NULL: never.
     */
    bool (*on_not_run)(struct rider *rider, const struct call *call, enum not_run row, struct slice reply);
    /* A call with CALL_LOOK has been answered. */
    void (*on_answer)(struct rider *rider, const struct call *call, const struct glimpse *reply);
    /*
     * The lane it waited for could not be opened. `reply` is the whole error reply from Redis, if
     * that was the reason, else empty.
     */
    void (*on_refused)(struct rider *rider, enum lane_end end, struct slice reply);
    /*
     * A huge reply is arriving for this lane user, on its private lane, or on a shared lane that
     * has been retired for the reply.
     */
    void (*on_heavy)(struct rider *rider);
    /*
     * Calls of other lane users wait behind a reply that this lane user does not read: it must
     * close itself.
     */
    void (*on_blocking)(struct rider *rider);
    /*
     * The lane user has not read for a while, and `bytes` bytes of one reply wait for it. The lane
     * user may close itself.
     */
    void (*on_unread)(struct rider *rider, uint64_t bytes);
    /* The lane is closed, and had calls or state of this lane user. */
    void (*on_lost)(struct rider *rider, const struct lane *lane);
    /* The lane user may continue. NULL: its link is woken, and finds out the reason. */
    void (*on_resume)(struct rider *rider, enum rider_wait what);
    /* True if weir may send AUTH on the private lane, which has no call in flight. NULL: never. */
    bool (*may_log_in)(const struct rider *rider);
    /*
     * Returns the counts for a lane opened for this lane user, which bound the lanes of one
     * subject. NULL: weir itself, no counts.
     */
    struct room_share (*share)(const struct rider *rider);
    /*
     * In builds with sanitizers, for each send: aborts unless the lane may carry the lane user's
     * bytes.
     */
    void (*audit)(const struct rider *rider, const struct lane *lane);
    /*
     * The replies are buffered whole and count as unread. The worker's memory for huge replies is
     * not used.
     */
    bool holds_replies;
    /* Offset from the rider to the link to wake, in the same struct. */
    ptrdiff_t to_link;
    /* Returns the link, if it is part of another struct. NULL: to_link applies. */
    struct link *(*link)(struct rider *rider);
};

#define RIDER_PART 16 /* bytes: unit in which requests on a shared lane are counted */

struct rider {
    const struct rider_ops *ops;
    /* the lane with its calls, or the lane it owns; without either the pointer is stale */
    struct lane *lane;
    struct list waiting; /* in lane.waiting, or in commons.hoping; empty: waits for neither */
    uint64_t arrived_ns; /* when its next call arrived; 0: no on_timed */
    uint32_t waited_us;  /* how long a limit delayed that call */
    uint32_t in_flight;  /* its entries in lane->calls */
    uint32_t last_call;  /* position of the newest of its entries */
    uint32_t absorbed;   /* bytes of huge replies buffered for it, part of commons.absorbed */
    /* its number in the fair queue (fair_queue.h); 0: not in the fair queue */
    uint32_t sender;
    bool wants_idle : 1; /* rider_resume when in_flight falls to 0 */
    /* a part of its newest request, on its private lane, has still to arrive */
    bool is_sending : 1;
    /*
     * The client has closed its side. weir waits for its replies only so long, and wakes its link
     * when the oldest call is one that may wait in Redis.
     */
    bool is_gone : 1;
    bool is_paying : 1;    /* read no more of its replies than necessary, until lane_catch_up */
    bool is_returning : 1; /* requests were returned to the user: replies are reported singly */
    uint8_t counted;       /* during on_bytes: call.counted of the call that the bytes answer */
    /* requests on a shared lane since few calls were unanswered, in units of RIDER_PART */
    uint16_t sent_parts;
};

static inline struct link *rider_link(struct rider *rider)
{
    return rider->ops->link != NULL ? rider->ops->link(rider) : (struct link *)((char *)rider + rider->ops->to_link);
}

static inline void rider_resume(struct rider *rider, enum rider_wait what)
{
    if (rider->ops->on_resume != NULL)
        rider->ops->on_resume(rider, what);
    else
        link_wake(rider_link(rider));
}

#endif
