/*
 * A lane: one upstream connection with a fixed session, and the calls in flight on it.
 *
 * It has one role for life. On a shared one each reply is exactly one frame, and nothing else may arrive. A private one
 * has one owner at a time, and messages and pushes pass to the owner at any frame's end; between two owners it is
 * greeted anew (greeting.h). Replies reach the oldest call's rider or nobody; a lane that receives what nobody waits
 * for, or what is no RESP, is closed, with every rider that has a call on it, and with its owner.
 */
#ifndef WEIR_UPSTREAM_LANE_H
#define WEIR_UPSTREAM_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/list.h"
#include "base/slice.h"
#include "net/link.h"
#include "resp/glimpse.h"
#include "resp/scan.h"
#include "upstream/calls.h"
#include "upstream/greeting.h"
#include "upstream/lane_counts.h"
#include "upstream/login.h"
#include "upstream/nonce.h"
#include "upstream/room.h"
#include "upstream/tags.h"

struct lane;
struct lanes;

/*
 * What a rider never brings about may be NULL: on_run_end without lane_end_run, on_counted without counted calls,
 * on_timed without arrived_ns, on_answer without CALL_LOOK, on_transaction without EXEC, on_heavy, on_blocking and on_unread on a private lane whose
 * reader's link is never congested.
 */
struct rider_ops {
    /* A piece of its replies, in order. */
    void (*on_bytes)(struct rider *rider, const char *data, size_t n);
    /* All that had been asked when lane_end_run was called, oldest first, has been answered. */
    void (*on_run_end)(struct rider *rider);
    /* A call whose `counted` is not 0 has been answered, or withdrawn. */
    void (*on_counted)(struct rider *rider, uint8_t counted);
    /*
     * The oldest n requests on its lane have been answered, n > 0, all noted by `call`; heard before their last bytes.
     * Only with rider.arrived_ns, and not of those that may wait in Redis.
     */
    void (*on_timed)(struct rider *rider, const struct call *call, uint32_t n);
    /* A call with CALL_LOOK has been answered. */
    void (*on_answer)(struct rider *rider, const struct call *call, const struct glimpse *reply);
    /* A piece of the array that answers its EXEC, heard or not; on_answer follows. */
    void (*on_transaction)(struct rider *rider, const char *data, size_t n);
    /* The lane it waited for could not be opened; Redis' whole error reply, if that was why, else empty. */
    void (*on_refused)(struct rider *rider, struct slice reply);
    /* It takes more of a shared lane than its share: a huge reply. */
    void (*on_heavy)(struct rider *rider);
    /* Others wait behind a reply that it does not read: it must close itself. */
    void (*on_blocking)(struct rider *rider);
    /* It has not read for a while, and so many bytes of one reply are waiting for it; it may close itself. */
    void (*on_unread)(struct rider *rider, uint64_t bytes);
    /* The lane is gone with this rider's calls or state on it. */
    void (*on_lost)(struct rider *rider);
    /* Who it is, where there can be too many lanes for one. NULL: weir itself. */
    struct room_share (*share)(const struct rider *rider);
    /*
     * In builds with sanitizers, whenever it sends: ends the process unless the lane is one that may carry its bytes.
     */
    void (*audit)(const struct rider *rider, const struct lane *lane);
    /* From the rider to the link that is woken when what it waits for has come: it is a part of the same struct. */
    ptrdiff_t to_link;
};

/* Somebody who sends requests. All its calls in flight are on one lane. */
struct rider {
    const struct rider_ops *ops;
    struct lane *lane;   /* where its calls are, or its own lane; not to be trusted otherwise */
    struct list waiting; /* in lane->waiting */
    uint64_t arrived_ns; /* of its next call: since when it is the next; 0: on_timed is not wanted */
    uint32_t waited_us;  /* the same: what a limit has made it wait */
    uint32_t in_flight;  /* entries in lane->calls */
    uint32_t last_call;  /* position of the newest of them */
    uint32_t absorbed;   /* bytes of huge replies taken in, so that those behind need not wait */
    uint32_t sent_bytes; /* on a shared lane, since few of its calls were unanswered last */
    bool wants_idle : 1; /* wake when in_flight falls to 0 */
    bool is_sending : 1; /* of its newest request, on its own lane, a part has still to come */
    bool is_gone : 1;    /* its side is closed: it is not waited for for ever */
    bool is_wanting : 1; /* it has hoped for a lane where there are as many as may be: it counts in room.wanted */
    bool is_paying : 1;  /* of what answers it no more is to be read than must be, until lane_catch_up */
    uint8_t counted;     /* in on_bytes: as the call's that the bytes answer */
};

static inline struct link *rider_link(struct rider *rider)
{
    return (struct link *)((char *)rider + rider->ops->to_link);
}

/* What makes lanes equal: two sessions with the same key see the same replies. */
struct lane_key {
    uint8_t protocol; /* 2 or 3; 0: nobody's, not known */
    uint32_t database;
    struct login *login; /* NULL: whoever Redis takes an unauthenticated connection for ... */
    uint32_t epoch;      /* ... that was opened then: no earlier than this; counts only without a login */
};

enum lane_state { LANE_CONNECTING, LANE_GREETING, LANE_READY, LANE_CLOSED };

/* What it is opened as, and stays until it is closed. */
enum lane_role {
    LANE_SHARED,  /* for every client of its key */
    LANE_PRIVATE, /* for one client at a time */
    LANE_SCRIPT,  /* weir's own, for what LIMIT asks of Redis */
    LANE_DOOR,    /* where Redis says who somebody is, and nothing else travels */
};

#define LANE_HUGE                                                                                                      \
    262144 /* bytes; a larger reply has its lane for itself, and may stop it until its reader catches up */

/* How a lane has failed. */
enum lane_end {
    END_LOST,          /* the connection could not be made, or broke, or memory is out */
    END_LATE,          /* an answer did not come in time */
    END_NONSENSE,      /* what came was not what may come */
    END_TURNED_AWAY,   /* Redis has too many connections, or lets in nobody from here */
    END_REFUSED,       /* Redis refuses what its greeting asks for, as it would refuse it to the client */
    END_LOGIN_REFUSED, /* Redis does not accept its login any more */
    END_NO_RESET,      /* its last owner's user may not RESET it */
    END_UNCLEAN,       /* used, it did not answer its greeting exactly */
};

struct lane {
    struct link link;
    struct lanes *lanes;
    struct list in_list;
    struct list waiting;
    struct lane_key key;
    struct login *last_login; /* of the session before, while it is greeted for another owner; counted */
    struct rider *owner;      /* NULL: shared, or private and kept for the next */
    struct rider *stalled;    /* whose huge reply has stopped the reading */
    size_t stalled_pending;   /* what it had not read yet ... */
    uint64_t stalled_ns;      /* ... since when */
    struct calls calls;
    struct tags tags; /* of the requests that the calls stand for */
    struct reply_scan scan;
    struct glimpse glimpse;
    /* How the frame being read is taken. Returns where the next byte to take is; NULL: none, or the lane is gone. */
    const char *(*take)(struct lane *lane, const char *p, const char *end);
    uint64_t deadline_ns;  /* for connecting and greeting, and for a stall with others waiting behind; 0: none */
    uint64_t answer_by_ns; /* when the answer that says who somebody is must have come; 0: none is waited for */
    uint64_t moved_ns; /* when the oldest call became that, or bytes came or more of a request went, or it fell idle */
    uint64_t frame_bytes;                        /* of the reply being read */
    uint64_t ready_ns;                           /* since when it is ready */
    uint64_t greeted_ns;                         /* when the greeting was sent */
    uint64_t round_trip_ns;                      /* how long its answer took */
    uint32_t unheard;                            /* frames that are thrown away before a raw lane is that */
    uint32_t channels, patterns, shard_channels; /* subscriptions confirmed */
    uint32_t generation;     /* another whenever it is no longer what it was to those who have a lease on it */
    uint32_t n_leases;       /* how many there are: its memory stays until they are dropped */
    int64_t id;              /* as Redis calls a private one; 0: it has not said */
    struct room_share share; /* whose it is */
    struct nonce nonce;      /* asked, and not answered yet */
    struct bytes greeted;    /* the answer that its greeting is at; heap */
    char *cover;             /* the channel by which it is to speak for what others have sent; heap; NULL: it is not */
    uint8_t state;
    uint8_t end;     /* enum lane_end, once it has failed */
    uint8_t role;    /* enum lane_role */
    uint8_t in;      /* enum lane_list: the list it is in */
    uint8_t returns; /* how often its owner came back to it at once, see lend.c */
    struct greeting greeting;
    bool is_in_frame;
    bool is_unasked;  /* this frame began when no call was in flight */
    bool ends_run;    /* and the owner is to hear of its end, as with CALL_ENDS_RUN */
    bool is_muted;    /* this frame is thrown away */
    bool is_watching; /* frames that answer no call may come */
    bool is_monitoring;
    bool is_raw;       /* no frames any more, but for `unheard` */
    bool is_unread;    /* the reader that it waits for has not read for a while */
    bool is_absorbing; /* this frame is taken in whole */
    bool is_unsure;    /* its protocol may not be its key's: HELLO was queued in MULTI */
    bool is_retry;     /* opened in place of one that was closed */
    bool is_used;      /* whoever uses it now has sent something */
    bool is_lent;      /* it has had another owner, and is greeted anew for this one */
    bool is_covered;   /* it speaks for all that Redis had been sent before it was ready */
    bool is_spare;     /* shared, for when the one in use takes no more calls */
    bool is_listed;    /* others of its owner's user may point at it: node->owned has it */
    bool is_spent;     /* nobody else may have it after its owner */
    bool is_suspect;   /* something may have forged replies since the last nonce */
    bool is_asked;     /* a nonce is on its way */
    bool is_telling;   /* an EXEC is, behind which somebody is to be another user */
    bool is_gone;      /* the connection is closed; the memory waits for leases */
    bool has_name;     /* its owner's is on it, by CLIENT SETNAME or HELLO */
    bool has_library;  /* its owner's library is, by CLIENT SETINFO */
};

bool lane_key_eq(const struct lane_key *a, const struct lane_key *b);

/*
 * For lanes: open a connection for `key`, which is copied; `owner` goes with LANE_PRIVATE. NULL: out of memory or
 * descriptors, and *error is libuv's for it.
 */
struct lane *lane_open(struct lanes *lanes, const struct lane_key *key, enum lane_role role, struct rider *owner,
                       int *error);

/*
 * For lend: a private lane that is done with becomes that of another owner, or nobody's (NULL); it is greeted anew, and
 * nothing of the owner's goes before that has been answered. False: out of memory.
 */
__attribute__((warn_unused_result)) bool lane_renew(struct lane *lane, const struct lane_key *key, struct rider *owner);

/* The session on a private lane has become another. */
void lane_set_key(struct lane *lane, const struct lane_key *key);

/* ---- leases ---- */

/* What somebody remembers of a lane. One comparison says whether it still is what it was. */
struct lease {
    struct lane *lane; /* NULL: none */
    uint32_t generation;
};

static inline bool lease_holds(const struct lease *lease)
{
    return lease->lane != NULL && lease->generation == lease->lane->generation;
}

/* In place of the lease there was. */
void lease_take(struct lease *lease, struct lane *lane);
void lease_drop(struct lease *lease);

/* Every lease on it is void. */
static inline void lane_end_leases(struct lane *lane)
{
    lane->generation++;
}

static inline bool lane_is_ready(const struct lane *lane)
{
    return lane->state == LANE_READY;
}

static inline bool lane_is_closed(const struct lane *lane)
{
    return lane->state == LANE_CLOSED;
}

/* Was it shared, and takes no new calls, since those on it take their time? */
static inline bool lane_is_retired(const struct lane *lane)
{
    return lane->in == LIST_RETIRED;
}

/* Has Redis confirmed a subscription that still holds? */
static inline bool lane_is_subscribed(const struct lane *lane)
{
    return lane->channels + lane->patterns + lane->shard_channels > 0;
}

static inline bool lane_is_congested(const struct lane *lane)
{
    return lane->link.is_congested;
}

/* Note that `rider` will send a request that is answered by one plain reply. False: out of memory. */
__attribute__((warn_unused_result)) bool lane_call_apart(struct lane *lane, struct rider *rider, uint32_t tag);

/* The same; it becomes one with an equal call before it that came with it. */
__attribute__((warn_unused_result)) static inline bool lane_call(struct lane *lane, struct rider *rider, uint32_t tag)
{
    if (!calls_is_empty(&lane->calls)) {
        struct call *last = calls_newest(&lane->calls);
        if (last->rider == rider && call_may_grow(last) && last->n < UINT32_MAX &&
            last->arrived_ns == rider->arrived_ns && last->sent_ns == 0 && tags_push(&lane->tags, tag)) {
            last->n++;
            return true;
        }
    }
    return lane_call_apart(lane, rider, tag);
}

/* Note any other request: `replies` frames for FLOW_SUBSCRIBE, else 1. NULL: out of memory. */
__attribute__((warn_unused_result)) struct call *lane_call_special(struct lane *lane, struct rider *rider, uint8_t flow,
                                                                   uint32_t replies, uint32_t tag);

/* Are no more than `few` of its calls unanswered, as far as can be told at a glance? */
static inline bool lane_has_few_calls(const struct rider *rider, uint32_t few)
{
    if (rider->in_flight != 1)
        return rider->in_flight == 0;
    return calls_at(&rider->lane->calls, rider->last_call)->n <= few;
}

/* Has of a frame that this rider hears a part come, and been passed on? */
bool lane_is_in_frame_of(const struct lane *lane, const struct rider *rider);

/* Is an unasked frame to its owner here in part? */
static inline bool lane_is_in_message(const struct lane *lane)
{
    return lane_is_ready(lane) && lane->is_in_frame && lane->is_unasked;
}

/*
 * What the rider hears behind its newest call, or if none is in flight behind the frame being read, is not this lane's:
 * on_run_end tells when that has come. False: it has been said before, of the same.
 */
bool lane_end_run(const struct rider *rider);

static inline bool lane_must_settle(const struct lane *lane)
{
    return lane->is_suspect && lane->is_asked;
}

/*
 * The rider's newest call will not be answered: only a part of its request is sent, and nothing more will be. Only on
 * its own lane, which it must leave in the end.
 */
void lane_withdraw(struct rider *rider);

/* The bytes of requests noted before, which are this rider's. */
void lane_send(struct lane *lane, const struct rider *rider, const char *data, size_t n);

/* The same; the bytes stay where they are until lanes_flush, or until something else is sent. */
void lane_gather(struct lane *lane, const struct rider *rider, const char *data, size_t n);

/*
 * What is concluded from the next answers on this private lane must be true: if something may have forged replies, a
 * nonce is asked first, and the lane closed unless it is answered in its place. False: out of memory. Not while
 * lane_must_settle: one nonce at a time.
 */
__attribute__((warn_unused_result)) bool lane_vouch(struct lane *lane, struct rider *rider);

/* More of the newest request, of which a part has been sent: it comes as its sender has it. */
void lane_send_more(struct rider *rider, const char *data, size_t n, bool is_last);

/* From now on bytes pass to the owner as they come. Only with no call in flight. */
void lane_set_raw(struct lane *lane);

/* Wake the rider's link when the lane is ready, has drained, or is gone. */
void lane_wait(struct lane *lane, struct rider *rider);

/* The owner does not read as fast as replies come: read no more until lane_catch_up. */
void lane_stall(struct lane *lane);

/* Has the reader that it waits for not read a byte since `since_ns`, as far as this was asked before? */
bool lane_is_unread(struct lane *lane, uint64_t now_ns, uint64_t since_ns);

/* Its reader has caught up: a lane that waits for it goes on. */
void lane_catch_up(struct rider *rider);

/* Does it hold neither calls nor anything that Redis remembers of its owner's subscribing or monitoring? */
bool lane_is_clean(const struct lane *lane);

/*
 * Has the oldest call, though it need not wait in Redis, or the rest of a frame not come any nearer since `since_ns`?
 */
bool lane_is_hung(const struct lane *lane, uint64_t since_ns);

/* Is a call in flight that may wait in Redis for long? */
bool lane_may_wait(const struct lane *lane);

/* Does anybody wait behind the reply that is being read? */
bool lane_has_others_waiting(const struct lane *lane);

/* A rider leaves: replies to its calls are dropped. A private lane is closed. */
void lane_forget(struct lane *lane, struct rider *rider);

/* Close one that nobody has calls or state on. */
void lane_close(struct lane *lane);

/* Close, tell everybody who has calls or state on it. `why` is for the log. */
void lane_fail(struct lane *lane, enum lane_end end, const char *why);

#endif
