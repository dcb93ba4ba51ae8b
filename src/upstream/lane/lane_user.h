/*
 * A lane user: a part that sends requests on lanes and gets the replies. Each client is a lane
 * user, and each part of weir that sends Redis commands of its own. All calls of one lane user in
 * flight are on one lane.
 *
 * A struct lane_user is embedded in the struct of its part. The worker's thread only.
 */
#ifndef WEIR_UPSTREAM_LANE_USER_H
#define WEIR_UPSTREAM_LANE_USER_H

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
struct lane_user;

/* How a lane has failed. */
enum lane_end {
    END_NONE,        /* not failed: weir has closed the lane */
    END_LOST,        /* the connection could not be made, or broke, or memory is out */
    END_LATE,        /* an answer did not arrive in time */
    END_NONSENSE,    /* an unexpected frame arrived */
    END_TURNED_AWAY, /* Redis has too many connections, or rejects this address */
    /* Redis refuses a part of the greeting, and would refuse that part to the client, too */
    END_REFUSED,
    END_LOGIN_REFUSED, /* Redis no longer accepts the login */
    END_NO_RESET,      /* the last owner's user may not RESET the connection */
    END_UNCLEAN,       /* a lane used before gave a wrong answer to its greeting */
};

/* The reason why a lane user may continue (on_resume). */
enum lane_user_wait {
    LANE_USER_HAS_REPLIES, /* all calls of the lane user are answered: see lane_user.wants_idle */
    LANE_USER_HAS_LANE,    /* a lane, or room for a lane: the lane user must ask again */
    LANE_USER_HAS_SHARE,   /* the lane user's share in the fair queue */
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
struct lane_user_ops {
    /* The next bytes of the lane user's replies, in order. */
    void (*on_bytes)(struct lane_user *lane_user, const char *data, size_t n);
    /*
     * n bytes from Redis for this lane user are thrown away: the client has asked for no replies.
     */
    void (*on_unheard)(struct lane_user *lane_user, size_t n);
    /*
     * on_passing returns the link to which the next bytes may be spliced past on_bytes, see
     * link_ops; NULL: none. on_passed reports n spliced bytes. Both callbacks may be NULL.
     */
    struct link *(*on_passing)(struct lane_user *lane_user);
    void (*on_passed)(struct lane_user *lane_user, size_t n);
    /* All calls noted when lane_end_run was called are answered, oldest first. */
    void (*on_run_end)(struct lane_user *lane_user);
    /* A call with `counted` not 0 has been answered, or withdrawn. */
    void (*on_counted)(struct lane_user *lane_user, uint8_t counted);
    /*
     * The oldest n > 0 requests on the lane have been answered; all are part of `call`. Called
     * before the last bytes of the replies. Called only if lane_user.arrived_ns was set, and not
     * for requests that may wait in Redis.
     */
    void (*on_timed)(struct lane_user *lane_user, const struct call *call, uint32_t n);
    /*
     * Redis did not run the oldest request on the shared lane: `call` is the request's call,
     * `reply` the error, `row` the error's row in not_run.def. True: the lane user takes the
     * request back, with call.counted, and the reply is not passed on. If on_not_run is NULL, every
     * reply is passed on.
     */
    bool (*on_not_run)(struct lane_user *lane_user, const struct call *call, enum not_run row,
                       struct slice reply);
    /* A call with CALL_LOOK has been answered. */
    void (*on_answer)(struct lane_user *lane_user, const struct call *call,
                      const struct glimpse *reply);
    /*
     * The lane that the lane user waited for could not be opened. `reply` is the whole error reply
     * if Redis refused, and empty otherwise.
     */
    void (*on_refused)(struct lane_user *lane_user, enum lane_end end, struct slice reply);
    /*
     * A huge reply is arriving for this lane user, on its private lane, or on a shared lane that
     * has been retired for the reply.
     */
    void (*on_heavy)(struct lane_user *lane_user);
    /*
     * The lane user must close itself: calls of other lane users wait behind a reply that this lane
     * user does not read.
     */
    void (*on_blocking)(struct lane_user *lane_user);
    /*
     * The lane user has not read for a while, and `bytes` bytes of one reply wait for the lane
     * user. The lane user may close itself.
     */
    void (*on_unread)(struct lane_user *lane_user, uint64_t bytes);
    /* The lane is closed, and had calls or state of this lane user. */
    void (*on_lost)(struct lane_user *lane_user, const struct lane *lane);
    /*
     * The lane user may continue. If on_resume is NULL, the lane user's link is woken, and the
     * link's on_wake finds out the reason.
     */
    void (*on_resume)(struct lane_user *lane_user, enum lane_user_wait what);
    /*
     * True if weir may send AUTH on the private lane, which has no call in flight. If may_log_in is
     * NULL, weir never may.
     */
    bool (*may_log_in)(const struct lane_user *lane_user);
    /*
     * Returns the counts that include a lane opened for this lane user. The counts bound the lanes
     * of one subject. If share is NULL, the lane is weir's own, and is not counted.
     */
    struct room_share (*share)(const struct lane_user *lane_user);
    /*
     * In builds with sanitizers, for each send: aborts unless the lane may carry the lane user's
     * bytes.
     */
    void (*audit)(const struct lane_user *lane_user, const struct lane *lane);
    /*
     * The replies are buffered whole and count as unread. The worker's memory for huge replies is
     * not used.
     */
    bool holds_replies;
    /* Offset from the lane user to the link to wake, in the same struct. */
    ptrdiff_t to_link;
    /* Returns the link to wake, if that link is part of another struct. NULL: to_link applies. */
    struct link *(*link)(struct lane_user *lane_user);
};

#define LANE_USER_PART 16 /* bytes: unit in which requests on a shared lane are counted */

struct lane_user {
    const struct lane_user_ops *ops;
    /*
     * the lane with the lane user's calls, or the lane that the lane user owns; stale without calls
     * and without an owned lane
     */
    struct lane *lane;
    /* in lane.waiting, or in worker_lanes.retrying; empty: waits for neither */
    struct list waiting;
    uint64_t arrived_ns; /* when the next call arrived at weir; 0: no on_timed */
    uint32_t waited_us;  /* how long a limit delayed the next call */
    uint32_t in_flight;  /* number of the lane user's entries in lane->calls */
    uint32_t last_call;  /* position of the lane user's newest entry */
    uint32_t absorbed;   /* buffered bytes of huge replies, part of worker_lanes.absorbed */
    /* number in the fair queue (fair_queue.h); 0: not in the fair queue */
    uint32_t sender;
    bool wants_idle : 1; /* call lane_user_resume when in_flight falls to 0 */
    /* a part of the newest request, on a private lane, has still to arrive from the client */
    bool is_sending : 1;
    /*
     * The client has closed its side. weir closes the lane after GONE_NS without an answer
     * (timers.c), and wakes the client's link when the oldest call may wait in Redis.
     */
    bool is_gone : 1;
    bool is_paying : 1; /* read no more of the replies than necessary, until lane_catch_up */
    /* requests have returned to the lane user: each reply is reported apart */
    bool is_returning : 1;
    uint8_t counted; /* during on_bytes: call.counted of the call that the bytes answer */
    /* requests on a shared lane since few calls were unanswered, in units of LANE_USER_PART */
    uint16_t sent_parts;
};

static inline struct link *lane_user_link(struct lane_user *lane_user)
{
    return lane_user->ops->link != NULL
               ? lane_user->ops->link(lane_user)
               : (struct link *)((char *)lane_user + lane_user->ops->to_link);
}

static inline void lane_user_resume(struct lane_user *lane_user, enum lane_user_wait what)
{
    if (lane_user->ops->on_resume != NULL)
        lane_user->ops->on_resume(lane_user, what);
    else
        link_wake(lane_user_link(lane_user));
}

#endif
