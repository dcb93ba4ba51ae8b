/*
 * A lane: one upstream connection with a fixed session, and the calls in flight on it.
 *
 *     riders                          lane                                      Redis
 *
 *     A, B   -- lane_call ------->    calls, oldest first:  A x 3 | B | A x 2
 *            -- lane_gather ----->    outbox: their requests' bytes ----------> one write a turn
 *
 *     A      <-- on_bytes --------    the next reply is the oldest call's <---- deliver.c finds where it ends
 *                                     (A x 2 | B | A x 2 are left)
 *
 * It has one role for life. On a shared one each reply is exactly one frame, and nothing else may arrive. A private one
 * has one owner at a time, and messages and pushes pass to the owner at any frame's end; between two owners it is
 * greeted anew (greeting.h). Replies reach the oldest call's rider or nobody; a lane that receives what nobody waits
 * for, or what is no RESP, is closed, with every rider that has a call on it, and with its owner.
 *
 * How one is opened is in lane_open.h. The worker's thread only.
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
#include "upstream/commons.h"
#include "upstream/greeting.h"
#include "upstream/lane_counts.h"
#include "upstream/lane_key.h"
#include "upstream/node.h"
#include "upstream/nonce.h"
#include "upstream/rider.h"
#include "upstream/room.h"
#include "upstream/schedule.h"
#include "upstream/tags.h"

/* What a lane tells whoever keeps it (lanes.h), at once. */
struct lane_ops {
    /*
     * It is connected, or lent to another owner, and its greeting is about to be sent: how long may the answers take?
     */
    void (*on_greeting)(struct lane *lane);
    /* It may be used. `needs_auth`: Redis wants a password of connections that do not log in. */
    void (*on_ready)(struct lane *lane, bool needs_auth);
    /* It has failed, and is closed. False: riders that wait for it are to be told that there is none. */
    bool (*on_failed)(struct lane *lane, bool was_ready, const char *why);
    /* It is being closed, for whatever reason: before on_failed. */
    void (*on_closed)(struct lane *lane);
    /* A reply of at least LANE_HUGE has begun to come. */
    void (*on_huge)(struct lane *lane);
    /* It is not read from, because a rider does not read its reply. */
    void (*on_stalled)(struct lane *lane);
    /* It was retired, and has answered everything. */
    void (*on_emptied)(struct lane *lane);
    /* The last lease on it was dropped. */
    void (*on_unleased)(const struct lane *lane);
    /*
     * It has something now that it must be looked at for from time to time: a question whose answer has a time, or
     * calls that have just been sent.
     */
    void (*on_watched)(struct lane *lane);
};

/* What all lanes of one worker to one node have in common: the part of struct lanes that a lane knows. */
struct lane_base {
    struct commons *commons; /* the worker's */
    struct node *node;       /* where they lead; one reference */
    const struct lane_ops *ops;
    struct lane_counts counts;
    struct schedule schedule; /* whose turn it is to send */
};

enum lane_state { LANE_CONNECTING, LANE_GREETING, LANE_READY, LANE_CLOSED };

/* What it is opened as, and stays until it is closed. */
enum lane_role {
    LANE_SHARED,  /* for every client of its key */
    LANE_PRIVATE, /* for one client at a time */
    LANE_SCRIPT,  /* weir's own, for what LIMIT asks of Redis */
    LANE_DOOR,    /* where Redis says who a client is, and nothing else travels */
};

/* Of what its owner hears in a row, when it is to hear of the end, as by CALL_ENDS_RUN. */
enum run_end {
    RUN_GOES_ON,
    RUN_ENDS_WITH_FRAME,  /* with the unasked frame that is being read */
    RUN_ENDS_WITH_PUSHES, /* before what next is no push: its last reply has come */
};

#define GREETED_MAX 4096 /* bytes of one answer to a greeting: HELLO's is the longest */
#define LANE_HUGE                                                                                                      \
    262144 /* bytes; a larger reply has its lane for itself, and may stop it until its reader catches up */

struct lane {
    struct link link;
    struct lane_base *base;
    struct list in_list; /* in lanes.lists[in] */
    struct list waiting; /* riders that want to be woken when it is ready, has drained, or is gone */
    struct lane_key key;
    struct login *last_login; /* of the session before, while it is greeted for another owner; counted */
    struct rider *owner;      /* NULL: shared, or private and kept for the next */
    struct rider *stalled;    /* the rider whose huge reply has stopped the reading; NULL: it is read */
    size_t stalled_pending;   /* bytes that it had not read yet when last asked ... */
    uint64_t stalled_ns;      /* ... and since when it has been so many */
    struct calls calls;
    struct tags tags; /* of the requests that the calls stand for */
    struct reply_scan scan;
    struct glimpse glimpse;
    /* How the frame being read is taken. Returns where the next byte to take is; NULL: none, or the lane is gone. */
    const char *(*take)(struct lane *lane, const char *p, const char *end);
    uint64_t deadline_ns;  /* for connecting and greeting, and for a stall with others waiting behind; 0: none */
    uint64_t answer_by_ns; /* when the answer that says who somebody is must have come; 0: none is waited for */
    uint64_t moved_ns; /* when the oldest call became that, or bytes came or more of a request went, or it fell idle */
    uint64_t frame_bytes;                        /* of the reply being read, so far */
    uint64_t passed_bytes;                       /* of the large request that was sent last, so far, ... */
    uint32_t passed_at;                          /* ... and which call it is */
    uint64_t ready_ns;                           /* since when it is ready */
    uint64_t greeted_ns;                         /* when the greeting was sent; 0: it has not been */
    uint64_t round_trip_ns;                      /* how long its answer took */
    uint32_t unheard;                            /* frames that are thrown away before a raw lane is that */
    uint32_t channels, patterns, shard_channels; /* subscriptions confirmed */
    uint32_t generation;     /* another whenever it is no longer what it was to those who have a lease on it */
    uint32_t n_leases;       /* how many there are: its memory stays until they are dropped */
    int64_t id;              /* Redis' client id of a private one; 0: it has not said */
    struct room_share share; /* which counts of the room it is in */
    struct nonce nonce;      /* asked, and not answered yet */
    struct bytes held; /* what is looked at as a whole: an answer to a greeting, to a door's login; raw_end.h; heap */
    char *cover;       /* greeting_cover.channel, heap; NULL: it is to speak for no other connection */
    uint8_t state;     /* enum lane_state */
    uint8_t end;       /* enum lane_end, once it has failed */
    uint8_t role;      /* enum lane_role */
    uint8_t in;        /* enum lane_list: the list it is in */
    uint8_t returns;   /* how often its owner came back to it at once, see lend.c */
    uint8_t ends_run;  /* enum run_end */
    struct greeting greeting;
    bool is_in_frame;   /* a frame has begun to come, and not ended */
    bool is_unasked;    /* this frame began when no call was in flight */
    bool is_muted;      /* this frame is thrown away */
    bool is_watching;   /* frames that answer no call may come */
    bool is_monitoring; /* Redis has said +OK to its owner's MONITOR */
    bool is_raw;        /* no frames any more, but for `unheard`: bytes pass to the owner as they come */
    bool is_ending;     /* raw, and all has been sent: it ends behind its answers, see raw_end.h */
    bool is_parted;     /* Redis has been sent the end of weir's side; set by lane_part */
    bool is_unread;     /* the reader that it waits for has not read for a while */
    bool is_absorbing;  /* this frame is taken in whole */
    bool is_unsure;     /* its protocol may not be its key's: HELLO was queued in MULTI */
    bool is_retry;      /* opened in place of one that was closed */
    bool is_used;       /* its present user has sent something on it */
    bool is_lent;       /* it has had another owner, and is greeted anew for this one */
    bool is_covered;    /* it speaks for all that Redis had been sent before it was ready */
    bool is_shut_out;   /* it wants a password that was set after its user had come: all it answers is NOAUTH */
    bool is_spare;      /* shared, for when the one in use takes no more calls */
    bool is_listed;     /* others of its owner's user may point at it: node->owned has it */
    bool is_spent;      /* nobody else may have it after its owner */
    bool is_suspect;    /* something may have forged replies since the last nonce */
    bool is_asked;      /* a nonce is on its way */
    bool is_telling;    /* an EXEC is on its way, behind which its client is to be another user */
    bool is_gone;       /* the connection is closed; the memory waits for leases */
    bool has_name;      /* its owner's name is on it, by CLIENT SETNAME or HELLO */
    bool has_library;   /* its owner's library is, by CLIENT SETINFO */
};

/* The session on a private lane has become another. */
void lane_set_key(struct lane *lane, const struct lane_key *key);

static inline struct node *lane_node(const struct lane *lane)
{
    return lane->base->node;
}

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

/* ---- what it is doing ---- */

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

/* Are no more than `few` of its calls unanswered, as far as can be told at a glance? */
static inline bool lane_has_few_calls(const struct rider *rider, uint32_t few)
{
    if (rider->in_flight != 1)
        return rider->in_flight == 0;
    return calls_at(&rider->lane->calls, rider->last_call)->n <= few;
}

/*
 * Requests of so many bytes go to a shared lane: rider.sent_parts is what has gone there since no more than `few` calls
 * were unanswered. Before their calls are noted.
 */
static inline void lane_count_sent(struct rider *rider, uint32_t few, uint32_t bytes)
{
    uint32_t parts = (bytes + RIDER_PART - 1) / RIDER_PART + (lane_has_few_calls(rider, few) ? 0 : rider->sent_parts);
    rider->sent_parts = parts < UINT16_MAX ? (uint16_t)parts : UINT16_MAX;
}

/* The same in bytes. */
static inline uint32_t lane_sent_bytes(const struct rider *rider)
{
    return (uint32_t)rider->sent_parts * RIDER_PART;
}

/* Is an unasked frame to its owner here in part? */
static inline bool lane_is_in_message(const struct lane *lane)
{
    return lane_is_ready(lane) && lane->is_in_frame && lane->is_unasked;
}

/* Is a nonce on its way, and has something since been sent that may forge replies? Its answer is to be waited for. */
static inline bool lane_must_settle(const struct lane *lane)
{
    return lane->is_suspect && lane->is_asked;
}

/* How many requests on it are unanswered. */
static inline uint32_t lane_n_requests(const struct lane *lane)
{
    return lane->tags.tail - lane->tags.head;
}

/* Does it hold neither calls nor anything that Redis remembers of its owner's subscribing or monitoring? */
bool lane_is_clean(const struct lane *lane);

/*
 * Has the oldest call, though it need not wait in Redis, or the rest of a frame not come any nearer since `since_ns`?
 */
bool lane_is_hung(const struct lane *lane, uint64_t since_ns);

/*
 * For how long has Redis owed the answer to the oldest call? 0: there is none, it may wait in Redis, or what is missing
 * is its client's to do: to send the rest, or to read.
 */
uint64_t lane_owes_ns(const struct lane *lane, uint64_t now_ns);

/* Is a call in flight that may wait in Redis for long? */
bool lane_may_wait(const struct lane *lane);

/* The same of the oldest call: all before it has been answered. */
bool lane_waits(const struct lane *lane);

/* Does anybody wait behind the reply that is being read? */
bool lane_has_others_waiting(const struct lane *lane);

/* ---- requests ---- */

/*
 * Note that `rider` will send n > 0 requests with this tag, each of which is answered by one plain reply. False: out of
 * memory, and none of them is noted.
 */
__attribute__((warn_unused_result)) bool lane_call_apart(struct lane *lane, struct rider *rider, uint32_t tag,
                                                         uint32_t n);

/* The same; they become one with an equal call before them that came with them. */
__attribute__((warn_unused_result)) static inline bool lane_call(struct lane *lane, struct rider *rider, uint32_t tag,
                                                                 uint32_t n)
{
    if (!calls_is_empty(&lane->calls)) {
        struct call *last = calls_newest(&lane->calls);
        if (last->rider == rider && call_may_grow(last) && last->n <= UINT32_MAX - n &&
            last->arrived_ns == rider->arrived_ns && last->sent_ns == 0 && tags_push(&lane->tags, tag, n)) {
            last->n += n;
            return true;
        }
    }
    return lane_call_apart(lane, rider, tag, n);
}

/* Note any other request: `replies` frames for FLOW_SUBSCRIBE, else 1. NULL: out of memory. */
__attribute__((warn_unused_result)) struct call *lane_call_special(struct lane *lane, struct rider *rider, uint8_t flow,
                                                                   uint32_t replies, uint32_t tag);

/*
 * What the rider hears behind its newest call, or if none is in flight behind the frame being read, is not this lane's:
 * on_run_end tells when that has come. False: it has been said before, of the same.
 */
bool lane_end_run(const struct rider *rider);

/*
 * The rider's newest call will not be answered: only a part of its request is sent, and nothing more will be. Only on
 * its own lane, which it must leave in the end.
 */
void lane_withdraw(struct rider *rider);

/* Send the bytes of requests noted before, which are this rider's. */
void lane_send(struct lane *lane, const struct rider *rider, const char *data, size_t n);

/*
 * The same; the bytes stay where they are until the commons' outbox is flushed (outbox.h), or something else is sent.
 */
void lane_gather(struct lane *lane, const struct rider *rider, const char *data, size_t n);

/* More of the newest request, of which a part has been sent: it comes as its sender has it. */
void lane_send_more(struct rider *rider, const char *data, size_t n, bool is_last);

/*
 * Where the content of that request may go past lane_send_more, as a link's on_passing says; NULL: it may not.
 * lane_passed: so many bytes of it have.
 */
struct link *lane_passing(struct rider *rider);
void lane_passed(struct rider *rider, size_t n);

/*
 * What is concluded from the next answers on this private lane must be true: if something may have forged replies, a
 * nonce is asked first, and the lane closed unless it is answered in its place. False: out of memory. Not while
 * lane_must_settle: one nonce at a time.
 */
__attribute__((warn_unused_result)) bool lane_vouch(struct lane *lane, struct rider *rider);

/* The answer to what was just sent says who somebody is: unless it comes within so long, the lane is closed. */
void lane_must_answer(struct lane *lane, uint64_t within_ns);

/* From now on bytes pass to the owner as they come. Only with no call in flight. */
void lane_set_raw(struct lane *lane);

/* Redis is not at what the rider (or NULL) has under way, or it will not be answered: nobody is to wait for it. */
static inline void lane_discount(const struct lane *lane, const struct rider *rider)
{
    if (rider != NULL && rider->paced != 0)
        schedule_forget(schedule_at(&lane->base->schedule, rider->paced));
}

/* ---- waiting ---- */

/* Wake the rider's link when the lane is ready, has drained, or is gone. */
void lane_wait(struct lane *lane, struct rider *rider);

/* The same for all who wait: now. */
void lane_wake_waiting(struct lane *lane);

/* The rider's reader has caught up: if the lane has stopped reading for its sake (stall.h), it goes on. */
void lane_catch_up(struct rider *rider);

/* ---- its end ---- */

/* A rider leaves: replies to its calls are dropped. A private lane is closed. */
void lane_forget(struct lane *lane, struct rider *rider);

/*
 * A rider leaves, and `heir` hears in its place of all that it has under way. A private lane
 * becomes the heir's, and is parted: Redis carries out what has been sent, and then ends the
 * connection.
 */
void lane_bequeath(struct lane *lane, struct rider *rider, struct rider *heir);

/*
 * Nothing more is sent on this private lane: Redis reads the end of weir's side behind what has
 * been sent.
 */
void lane_part(struct lane *lane);

/* Close one that nobody has calls or state on. */
void lane_close(struct lane *lane);

/* Close one whose owner has had all (raw_end.h): it is woken without it. */
void lane_end(struct lane *lane);

/* Close, tell everybody who has calls or state on it. `why` is for the log. */
void lane_fail(struct lane *lane, enum lane_end end, const char *why);

/* The same; those who wait for it hear this error reply of Redis'. */
void lane_refuse(struct lane *lane, enum lane_end end, const char *why, struct slice reply);

/* For lane_open.c: the connection is closed, and lane->is_gone: its memory is freed once no lease is left. */
void lane_free_if_done(struct lane *lane);

#endif
