/*
 * A rider: somebody who sends requests on lanes and gets the replies. A client is one, and so is each part of weir that
 * asks Redis something itself. All its calls in flight are on one lane.
 *
 * Embedded in the struct of whoever that is; the worker's thread only.
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
    END_NONE,          /* it has not: weir has closed it, or it was asked to end */
    END_LOST,          /* the connection could not be made, or broke, or memory is out */
    END_LATE,          /* an answer did not come in time */
    END_NONSENSE,      /* what came was not what may come */
    END_TURNED_AWAY,   /* Redis has too many connections, or lets in nobody from here */
    END_REFUSED,       /* Redis refuses what its greeting asks for, as it would refuse it to the client */
    END_LOGIN_REFUSED, /* Redis does not accept its login any more */
    END_NO_RESET,      /* its last owner's user may not RESET it */
    END_UNCLEAN,       /* used, it did not answer its greeting exactly */
};

/* What a rider has waited for, and need not any more. */
enum rider_wait {
    RIDER_REPLIES, /* all its calls are answered: see rider.wants_idle */
    RIDER_LANE,    /* a lane, or room for one: it is to look again */
    RIDER_SHARE,   /* its share in the fair queue */
};

/*
 * What a rider is told. What it never brings about may be NULL: on_run_end without lane_end_run,
 * on_counted without counted calls, on_timed and on_unheard without arrived_ns, on_answer without
 * CALL_LOOK, on_blocking with holds_replies; and on_heavy, on_blocking and on_unread on a private
 * lane whose reader's link is never congested.
 */
struct rider_ops {
    /* The next bytes of its replies, in order. */
    void (*on_bytes)(struct rider *rider, const char *data, size_t n);
    /* So many bytes that Redis has sent for it are thrown away: it has asked not to hear them. */
    void (*on_unheard)(struct rider *rider, size_t n);
    /*
     * The link to which the next bytes may go past on_bytes, and that so many have: see link_ops. Both may be NULL; while
     * the first says NULL nothing passes.
     */
    struct link *(*on_passing)(struct rider *rider);
    void (*on_passed)(struct rider *rider, size_t n);
    /* All that had been asked when lane_end_run was called, oldest first, has been answered. */
    void (*on_run_end)(struct rider *rider);
    /* A call whose `counted` is not 0 has been answered, or withdrawn. */
    void (*on_counted)(struct rider *rider, uint8_t counted);
    /*
     * The oldest n requests on its lane have been answered, n > 0, all noted by `call`; heard before their last bytes.
     * Only with rider.arrived_ns, and not of those that may wait in Redis.
     */
    void (*on_timed)(struct rider *rider, const struct call *call, uint32_t n);
    /*
     * The oldest request on its shared lane was not run: by the noted call, for this reply, which is of that row. True: the
     * rider has taken it back, with call.counted; its reply is not passed on. NULL: never.
     */
    bool (*on_not_run)(struct rider *rider, const struct call *call, enum not_run row, struct slice reply);
    /* A call with CALL_LOOK has been answered. */
    void (*on_answer)(struct rider *rider, const struct call *call, const struct glimpse *reply);
    /* The lane it waited for could not be opened; Redis' whole error reply, if that was why, else empty. */
    void (*on_refused)(struct rider *rider, enum lane_end end, struct slice reply);
    /*
     * It is being sent a huge reply, on its own lane, or on a shared one that has been retired for
     * that.
     */
    void (*on_heavy)(struct rider *rider);
    /* Others wait behind a reply that it does not read: it must close itself. */
    void (*on_blocking)(struct rider *rider);
    /* It has not read for a while, and so many bytes of one reply are waiting for it; it may close itself. */
    void (*on_unread)(struct rider *rider, uint64_t bytes);
    /* The lane is closed, and had this rider's calls or state on it. */
    void (*on_lost)(struct rider *rider, const struct lane *lane);
    /* It may go on. NULL: its link is woken, and finds out what for. */
    void (*on_resume)(struct rider *rider, enum rider_wait what);
    /* May weir say AUTH on its own lane, which has no call in flight? NULL: no. */
    bool (*may_log_in)(const struct rider *rider);
    /* Which counts a lane opened for it is in, where there can be too many for one subject. NULL: weir itself, none. */
    struct room_share (*share)(const struct rider *rider);
    /*
     * In builds with sanitizers, whenever it sends: ends the process unless the lane is one that may carry its bytes.
     */
    void (*audit)(const struct rider *rider, const struct lane *lane);
    /* Its replies are held whole and count as unread: they take no memory of a worker's for huge ones. */
    bool holds_replies;
    /* From the rider to the link that is woken when what it waits for has come: it is a part of the same struct. */
    ptrdiff_t to_link;
    /* That link, where it is a part of another struct. NULL: to_link says. */
    struct link *(*link)(struct rider *rider);
};

#define RIDER_PART 16 /* bytes: a request on a shared lane is counted in parts of so many */

struct rider {
    const struct rider_ops *ops;
    struct lane *lane;     /* where its calls are, or the lane it owns; without either not to be followed */
    struct list waiting;   /* in lane.waiting, or in commons.hoping; itself: it waits for neither */
    uint64_t arrived_ns;   /* when its next call became the next; 0: on_timed is not wanted */
    uint32_t waited_us;    /* how long a limit has made that call wait */
    uint32_t in_flight;    /* its entries in lane->calls */
    uint32_t last_call;    /* position of the newest of them */
    uint32_t absorbed;     /* bytes of huge replies that were taken in for it, of commons.absorbed */
    uint32_t sender;       /* its number in the fair queue (fair_queue.h); 0: its requests are not counted there */
    bool wants_idle : 1;   /* rider_resume when in_flight falls to 0 */
    bool is_sending : 1;   /* of its newest request, on its own lane, a part has still to come */
    bool is_gone : 1;      /* the client has closed its side: it is not waited for for ever, and its link is woken
                            when its oldest call is one that may wait in Redis */
    bool is_paying : 1;    /* of its replies no more is to be read than must be, until lane_catch_up */
    bool is_returning : 1; /* requests have come back to it: it is to hear of each reply apart */
    uint8_t counted;       /* during on_bytes: call.counted of the call that the bytes answer */
    uint16_t sent_parts;   /* on a shared lane, since few of its calls were unanswered last: RIDER_PART bytes each */
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
