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
 * What it is doing, and how far its answers are believed, are two enums with legal steps: lane_state.h. How a frame is
 * taken is chosen when the frame begins: enum lane_framing. How a lane is opened is in lane_open.h.
 *
 * The worker's thread only.
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
#include "upstream/fair/fair_queue.h"
#include "upstream/lane/calls.h"
#include "upstream/lane/commons.h"
#include "upstream/lane/greeting.h"
#include "upstream/lane/lane_state.h"
#include "upstream/lane/own_words.h"
#include "upstream/lane/rider.h"
#include "upstream/lane/room.h"
#include "upstream/login/auth_users.h"
#include "upstream/node/node.h"

/* What a lane tells whoever keeps it (lanes.h), at once. */
struct lane_base;

struct lane_ops {
    /*
     * It is connected, or lent to another owner, and its greeting is about to be sent: how long may the answers take?
     */
    void (*on_greeting)(struct lane *lane);
    /* It may be used. */
    void (*on_ready)(struct lane *lane);
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
    /* The oldest call on it is a question of lane_ask, and has been answered. */
    void (*on_vouched)(struct lane *lane);
    /* A reply on it may say that its node is a replica. */
    void (*on_doubted)(struct lane *lane);
    /* The last connection of a lane has been closed in full: no lane of these is left. */
    void (*on_empty)(struct lane_base *base);
};

/* What all lanes of one worker to one node have in common: the part of struct lanes that a lane knows. */
struct lane_base {
    struct commons *commons; /* the worker's */
    struct node *node;       /* where they lead; one reference */
    const struct lane_ops *ops;
    struct lane_counts counts;
    uint32_t n_links;        /* connections of lanes that have not been closed in full */
    struct fair_queue *fair; /* which clients may send now; one reference */
    struct auth_users users; /* that clients have come in as */
};

/* What it is opened as, and stays until it is closed. */
enum lane_role {
    LANE_SHARED,  /* for every client of its key */
    LANE_PRIVATE, /* for one client at a time */
    LANE_SCRIPT,  /* weir's own, for what LIMIT asks of Redis */
    LANE_DOOR,    /* where Redis says who a client is, and nothing else travels */
};

/* What a lane is there for. */
enum lane_use {
    USE_NEW,   /* for its first owner; of a shared lane: for all clients of its key */
    USE_RETRY, /* shared: as NEW, opened in place of one that was closed (health.c) */
    USE_SPARE, /* shared: for when the one in use takes no more calls (shared.c) */
    USE_AGAIN, /* private: it has had an owner before, another or the same (lend.c) */
};

/* How a frame is taken: chosen when the frame begins (deliver.c). */
enum lane_framing {
    FRAMING_PLAIN,       /* replies of the oldest call that weir does not look into: as many as are here */
    FRAMING_REPLY,       /* looked at; began while a call was in flight */
    FRAMING_MUTED,       /* as REPLY, and thrown away */
    FRAMING_UNSOLICITED, /* looked at; began while no call was in flight */
    FRAMING_DROPPED,     /* a push that no client on the lane has asked for: thrown away, and counted */
    FRAMING_OWN_WORDS,   /* a line of MONITOR about weir's own words: thrown away */
    FRAMING_REFUSAL,     /* may be a row of not_run.def, and is held until that is known: lane.held */
};

/* Which frames the owner of a private lane may be sent beside replies. */
enum lane_beside {
    BESIDE_NOTHING,
    BESIDE_MESSAGES, /* it has sent SUBSCRIBE, or the like */
    BESIDE_MONITOR,  /* Redis has said +OK to its MONITOR: lines of MONITOR, too */
};

/* How far the reader of the frame being read lags behind (stall.h). */
enum lane_lag {
    LAG_NONE,
    LAG_UNREAD,   /* it has not read for a tick, and others wait */
    LAG_ABSORBED, /* the rest of the frame is taken in for the sake of others */
};

/* Of what its owner hears in a row, when it is to hear of the end, as by CALL_ENDS_RUN. */
enum run_end {
    RUN_GOES_ON,
    RUN_ENDS_WITH_FRAME,  /* with the unsolicited frame that is being read */
    RUN_ENDS_WITH_PUSHES, /* before what next is no push: its last reply has come */
};

/* A connection's login. Zeroed: none of a client's. */
struct lane_login {
    struct login *by; /* counted */
    uint64_t number;  /* in auth_users.n_logins */
};

void lane_login_set(struct lane_login *in, struct login *by, uint64_t number);

#define GREETED_MAX 4096 /* bytes of one answer to a greeting: HELLO's is the longest */
#define LANE_HUGE                                                                                                      \
    262144 /* bytes; a larger reply has its lane for itself, and may stop it until its reader catches up */

struct lane {
    struct link link;
    struct lane_base *base;
    struct list in_list; /* in lanes.lists[in] */
    struct list waiting; /* riders that want to be woken when it is ready, has drained, or is gone */
    struct lane_key key;
    struct auth_user *user;    /* the user that Redis has it as, counted; NULL: weir's user, no user, not logged in
                             * yet, or has stopped being read (stall.c) and not answered all since */
    struct lane_login let_in;  /* when it became the user's */
    struct lane_login vouched; /* of another lane of the user that has answered after that (shared.h) */
    struct lane *witness;      /* another lane that is being asked for this one; NULL: none */
    uint32_t witness_call;     /* and by which of its calls */
    struct login *last_login;  /* of the session before, while it is greeted for another owner; counted */
    struct rider *owner;       /* NULL: shared, or private and kept for the next */
    struct rider *stalled;     /* the rider whose huge reply has stopped the reading; NULL: it is read */
    size_t stalled_pending;    /* bytes that it had not read yet when last asked ... */
    uint64_t stalled_ns;       /* ... and since when it has been so many */
    struct calls calls;
    struct tags tags; /* of the requests that the calls stand for */
    struct reply_scan scan;
    struct glimpse glimpse;
    uint64_t deadline_ns;  /* for connecting and greeting, and for a stall with others waiting behind; 0: none */
    uint64_t answer_by_ns; /* when the answer that says who somebody is must have come; 0: none is waited for */
    uint64_t moved_ns; /* when the oldest call became that, or bytes came or more of a request went, or it fell idle */
    uint64_t frame_bytes;   /* of the frame being read, so far; 0: between frames; written by deliver.c */
    uint64_t ready_ns;      /* since when it is ready */
    uint64_t greeted_ns;    /* when the greeting was sent; 0: it has not been */
    uint64_t round_trip_ns; /* how long its answer took */
    uint64_t prolonged_ns;  /* when it said AUTH by a newer password last (timers.h); 0: never */
    uint32_t channels, patterns, shard_channels; /* subscriptions confirmed */
    uint32_t generation;     /* another whenever it is no longer what it was to those who have a lease on it */
    uint32_t n_leases;       /* how many there are: its memory stays until they are dropped */
    int64_t id;              /* Redis' client id of a private one; 0: it has not said */
    struct room_share share; /* which counts of the room it is in */
    struct nonce nonce;      /* asked, and not answered yet */
    struct bytes
        held; /* what is looked at as a whole: an answer to a greeting, to a door's login; raw_end.h; a refusal; heap */
    char *cover;      /* greeting_cover.key, heap; NULL: it is to speak for no other connection */
    uint8_t state;    /* enum lane_state; set by lane_become */
    uint8_t trust;    /* enum lane_trust; moved by lane.c alone */
    uint8_t use;      /* enum lane_use */
    uint8_t framing;  /* enum lane_framing, of the frame being read, or else the one before; set by deliver.c */
    uint8_t beside;   /* enum lane_beside; moved by lane.c alone */
    uint8_t lag;      /* enum lane_lag, of the frame being read; moved by stall.c, ended with the frame */
    uint8_t end;      /* enum lane_end, once it has failed */
    uint8_t role;     /* enum lane_role */
    uint8_t in;       /* enum lane_list: the list it is in */
    uint8_t returns;  /* how often its owner came back to it at once, see lend.c */
    uint8_t ends_run; /* enum run_end */
    uint8_t n_behind; /* how often timers.c has found it with calls in flight, since it last had none */
    struct greeting greeting;
    bool keeps;       /* shared, and a call that Redis refused may go back to its rider: rider_ops.on_not_run */
    bool is_parted;   /* Redis has been sent the end of weir's side; set by lane_part */
    bool errs_late;   /* SUNSUBSCRIBE was just answered: where its slot has moved meanwhile an error may follow */
    bool is_listed;   /* others of its owner's user may point at it: node->owned has it */
    bool is_spent;    /* no other client may have it after its owner; set by lane_spend, for good */
    bool has_name;    /* its owner's name is on it, by CLIENT SETNAME or HELLO */
    bool has_library; /* its owner's library is, by CLIENT SETINFO */
};

/* The session on a private lane has become another. */
void lane_set_key(struct lane *lane, const struct lane_key *key);

/*
 * Redis has said +OK to key.login, or has ended what it knew of an earlier one: the lane counts as a connection of that
 * user (auth_users.h), and of no other.
 */
void lane_enter_user(struct lane *lane);

/* The lane counts no more as a connection of its user; `is_kicked`: Redis has closed it, and weir has not. */
void lane_leave_user(struct lane *lane, bool is_kicked);

/*
 * A lane that was not read from for a while counts again once all its calls have been answered: what Redis closes from
 * then on weir sees.
 */
void lane_see_user(struct lane *lane);

/*
 * Ask whether Redis still answers here, in weir's own words, on a shared lane: on_vouched tells of the answer. *call is
 * the position of the question. False: out of memory.
 */
__attribute__((warn_unused_result)) bool lane_ask(struct lane *lane, uint32_t *call);

/* Say AUTH by this login, in weir's own words. Only with no call in flight. False: out of memory. */
__attribute__((warn_unused_result)) bool lane_prolong(struct lane *lane, struct login *login);

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

/* Move the lane to its next state: a legal step (lane_state.h). */
void lane_become(struct lane *lane, enum lane_state state);

/* True from the end of the greeting until the lane is closed, or lent to another owner. */
static inline bool lane_is_ready(const struct lane *lane)
{
    return lane->state >= LANE_READY && lane->state <= LANE_ENDING;
}

/* True if it is being opened, and the node has taken the connection: the node is not away, but does not answer. */
static inline bool lane_is_taken(const struct lane *lane)
{
    return lane->state == LANE_GREETING || lane->link.state == LINK_SHAKING;
}

static inline bool lane_is_closed(const struct lane *lane)
{
    return lane->state >= LANE_CLOSED;
}

/* True if replies cannot be counted: bytes pass to the owner as they come. */
static inline bool lane_is_passthrough(const struct lane *lane)
{
    return lane->state == LANE_PASSTHROUGH || lane->state == LANE_ENDING;
}

/* True if nothing more will be sent: the lane ends when Redis has answered. */
static inline bool lane_is_ending(const struct lane *lane)
{
    return lane->state == LANE_ENDING || lane->is_parted;
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

/* True if a frame has begun to come, and not ended. */
static inline bool lane_is_in_frame(const struct lane *lane)
{
    return lane->frame_bytes > 0;
}

/* True if a part of a frame that answers no call has gone to the owner. */
static inline bool lane_is_in_message(const struct lane *lane)
{
    return lane_is_ready(lane) && lane_is_in_frame(lane) && lane->framing == FRAMING_UNSOLICITED;
}

/* True if Redis has said +OK to its owner's MONITOR. */
static inline bool lane_is_monitoring(const struct lane *lane)
{
    return lane->beside == BESIDE_MONITOR;
}

/* True if its owner, or a client on it, has sent something since it was opened, lent, or given back to its owner. */
static inline bool lane_is_used(const struct lane *lane)
{
    return lane->trust > TRUST_RETURNED;
}

/* True if a nonce is in flight. */
static inline bool lane_is_asked(const struct lane *lane)
{
    return lane->trust >= TRUST_ASKED;
}

/* True if something may have forged replies since the last nonce. */
static inline bool lane_is_untrusted(const struct lane *lane)
{
    return lane->trust == TRUST_RETURNED || lane->trust == TRUST_UNTRUSTED || lane->trust == TRUST_UNSETTLED;
}

/* True if something behind the nonce in flight may forge replies: the nonce's answer is to be waited for. */
static inline bool lane_must_settle(const struct lane *lane)
{
    return lane->trust == TRUST_UNSETTLED;
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

/* Does anybody wait behind the reply that is being read, but its reader itself? */
bool lane_has_others_waiting(const struct lane *lane);

/* ---- requests ---- */

/*
 * Note that `rider` will send n > 0 requests with this tag, each of which is answered by one plain reply. False: out of
 * memory, and none of them is noted.
 */
__attribute__((warn_unused_result)) bool lane_call_apart(struct lane *lane, struct rider *rider, uint64_t tag,
                                                         uint32_t n);

/* The same; they become one with an equal call before them that came with them. */
__attribute__((warn_unused_result)) static inline bool lane_call(struct lane *lane, struct rider *rider, uint64_t tag,
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
                                                                   uint32_t replies, uint64_t tag);

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
 * The same; the bytes stay where they are until the commons' outbox is flushed (commons.h), or something else is sent.
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
 * nonce is asked first, and the lane closed unless it is answered in its place. Where the node answers no nonce the
 * lane
 * is never lent (lend.c): what its owner makes weir believe is only of its own session. False: out of memory. Not while
 * lane_must_settle: one nonce at a time.
 */
__attribute__((warn_unused_result)) bool lane_vouch(struct lane *lane, struct rider *rider);

/* What is being sent may forge replies. */
void lane_distrust(struct lane *lane);

/* The nonce of lane_vouch has been answered in its place. */
void lane_end_question(struct lane *lane);

/* Its owner gives it back, and is the next to have it, without a greeting. */
void lane_return(struct lane *lane);

/* The lane has a new session: nothing of what its last owner did there is left after RESET. */
void lane_forget_session(struct lane *lane);

/* Its next greeting writes this key (greeting_cover), or none if that is empty. Out of memory: none. */
void lane_cover(struct lane *lane, struct slice written);

/*
 * True once if the lane speaks for all that Redis had been sent before it was ready (greeting_cover): the next command
 * that replicas are sent is the owner's.
 */
bool lane_take_cover(struct lane *lane);

/* No other client may ever have it after its owner: Redis may remember something of the owner after RESET. */
static inline void lane_spend(struct lane *lane)
{
    lane->is_spent = true;
}

/* Its owner's library is on it, which RESET does not end. */
static inline void lane_note_library(struct lane *lane)
{
    lane->has_library = true;
    lane_spend(lane);
}

/* The answer to what was just sent says who somebody is: unless it comes within so long, the lane is closed. */
void lane_must_answer(struct lane *lane, uint64_t within_ns);

/* Redis has said +OK to its owner's MONITOR; has ended that, and all subscriptions. */
void lane_note_monitor(struct lane *lane);
void lane_end_subscriptions(struct lane *lane);

/* From now on bytes pass to the owner as they come. Only with no call in flight. */
void lane_pass_through(struct lane *lane);

/* So many bytes of a large request or a reply of the rider's: what they cost Redis. */
static inline void lane_charge_bytes(const struct lane *lane, const struct rider *rider, size_t n)
{
    if (rider->sender != 0)
        fair_charge(fair_sender(lane->base->fair, rider->sender), n / FAIR_BYTES_PER_NS);
}

/* Redis is not at what the rider (or NULL) has under way, or it will not be answered: nobody is to wait for it. */
static inline void lane_discount(const struct lane *lane, const struct rider *rider)
{
    if (rider != NULL && rider->sender != 0)
        fair_forget(fair_sender(lane->base->fair, rider->sender));
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

/* For lane_open.c: the link is closed. The memory is freed once no lease is left. */
void lane_end_link(struct lane *lane);

#endif
