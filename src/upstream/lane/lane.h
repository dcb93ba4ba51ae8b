/*
 * A lane: one upstream connection with a fixed session, and the calls in flight on it.
 *
 *     lane users                  lane                                    Redis
 *
 *     A, B   -- lane_call ---->   calls, oldest first: A x 3 | B | A x 2
 *            -- lane_gather -->   outbox: the requests' bytes ----------> one write an iteration
 *
 *     A      <-- on_bytes -----   the next reply is the oldest call's <---- deliver.c finds its end
 *                                 (A x 2 | B | A x 2 remain)
 *
 * A lane keeps one role until it closes. On a shared lane each reply is exactly one frame, and
 * nothing else may arrive. A private lane has one owner at a time. Messages and pushes pass to the
 * owner at the end of any frame. Between two owners the lane is greeted anew (greeting.h). A reply
 * goes to the lane user of the oldest call, or is dropped. A lane that receives an unexpected
 * frame, or no RESP, is closed. on_lost then informs all lane users with calls on the lane, and the
 * lane's owner.
 *
 * The state of a lane, and the trust in its answers, are two enums with legal steps: lane_state.h.
 * How a frame is taken is chosen when the frame begins: enum lane_framing. lane_open.h opens lanes.
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
#include "upstream/lane/worker_lanes.h"
#include "upstream/lane/greeting.h"
#include "upstream/lane/lane_state.h"
#include "upstream/lane/own_words.h"
#include "upstream/lane/lane_user.h"
#include "upstream/lane/room.h"
#include "upstream/login/auth_users.h"
#include "upstream/node/node.h"

/* Callbacks from a lane to its keeper (lanes.h), called at once. */
struct lane_base;

struct lane_ops {
    /*
     * The lane is connected, or lent to another owner, and is about to send its greeting. The
     * callee sets the deadline.
     */
    void (*on_greeting)(struct lane *lane);
    /* The lane is ready for calls. */
    void (*on_ready)(struct lane *lane);
    /* The lane has failed and is closed. False: lane users that wait for the lane are refused. */
    bool (*on_failed)(struct lane *lane, bool was_ready, const char *why);
    /* The lane is being closed, for any reason. Called before on_failed. */
    void (*on_closed)(struct lane *lane);
    /* A reply of at least LANE_HUGE has begun to arrive. */
    void (*on_huge)(struct lane *lane);
    /* The lane stopped reading, because a lane user does not read its reply. */
    void (*on_stalled)(struct lane *lane);
    /* The lane was retired, and has no unanswered calls. */
    void (*on_emptied)(struct lane *lane);
    /* The last lease on the lane was dropped. */
    void (*on_unleased)(const struct lane *lane);
    /*
     * The lane needs periodic checks from now on: a nonce or a login awaits its answer, or calls
     * were just sent.
     */
    void (*on_watched)(struct lane *lane);
    /* The oldest call on the lane is a probe of lane_ask, and has been answered. */
    void (*on_vouched)(struct lane *lane);
    /* A reply on the lane may say that its node is a replica. */
    void (*on_doubted)(struct lane *lane);
    /* The last connection of these lanes has been closed in full. */
    void (*on_empty)(struct lane_base *base);
};

/*
 * The state that all lanes of one worker to one node share: the part of struct lanes that a lane
 * knows.
 */
struct lane_base {
    /* the state that all lanes of the worker share, to all nodes */
    struct worker_lanes *worker_lanes;
    struct node *node; /* the node the lanes lead to; one reference */
    const struct lane_ops *ops;
    struct lane_counts counts;
    uint32_t n_links;        /* connections of lanes that have not been closed in full */
    struct fair_queue *fair; /* which clients may send now; one reference */
    struct auth_users users; /* the users that clients have logged in as */
};

/* The role of a lane: set when the lane is opened, and constant until the lane closes. */
enum lane_role {
    LANE_SHARED,  /* for every client of its key */
    LANE_PRIVATE, /* for one client at a time */
    LANE_SCRIPT,  /* weir's own, for LIMIT scripts */
    LANE_AUTH,    /* an auth lane: only carries logins of clients, which Redis checks */
};

/* The purpose of a lane. */
enum lane_use {
    USE_NEW,   /* for the first owner, or for all clients of a shared lane's key */
    USE_RETRY, /* shared: as NEW, opened in place of a closed lane (health.c) */
    USE_SPARE, /* shared: takes over when the lane in use takes no more calls (shared.c) */
    USE_AGAIN, /* private: has had an owner before, another or the present one (lend.c) */
};

/* How a frame is taken: chosen when the frame begins (deliver.c). */
enum lane_framing {
    /* all arrived replies of the oldest call, which weir does not look into */
    FRAMING_PLAIN,
    FRAMING_REPLY,       /* a frame that weir looks at; began while a call was in flight */
    FRAMING_MUTED,       /* as REPLY, and thrown away */
    FRAMING_UNSOLICITED, /* a frame that weir looks at; began while no call was in flight */
    /* a push that no client on the lane has asked for: thrown away, and counted */
    FRAMING_DROPPED,
    FRAMING_OWN_WORDS, /* a line of MONITOR about a command of weir's own: thrown away */
    /* an error that may be a row of not_run.def: buffered in lane.held until weir knows */
    FRAMING_REFUSAL,
};

/* Which frames the owner of a private lane may be sent beside replies. */
enum lane_beside {
    BESIDE_NOTHING,
    BESIDE_MESSAGES, /* the owner has sent SUBSCRIBE, or the like */
    /* as MESSAGES, and lines of MONITOR: Redis has said +OK to the owner's MONITOR */
    BESIDE_MONITOR,
};

/* How slow the reader of the frame being read is (slow_reader.h). */
enum lane_lag {
    LAG_NONE,
    /* the reader has not read for a tick, and calls of other lane users wait behind */
    LAG_UNREAD,
    LAG_ABSORBED, /* the rest of the frame is buffered for the sake of the calls behind */
};

/*
 * The end of the owner's present run of replies, after lane_end_run. At the end the owner gets
 * on_run_end.
 */
enum run_end {
    RUN_GOES_ON,
    RUN_ENDS_WITH_FRAME, /* the run ends with the unsolicited frame that is being read */
    /* the run ends before the next frame that is no push: its last reply has been passed on */
    RUN_ENDS_WITH_PUSHES,
};

/* The login of a connection. Zeroed: not the login of a client. */
struct lane_login {
    struct login *by; /* one reference */
    uint64_t number;  /* number of the login, by auth_users.n_logins */
};

void lane_login_set(struct lane_login *in, struct login *by, uint64_t number);

#define GREETED_MAX 4096 /* bytes of one answer to a greeting: the answer to HELLO is the longest */
/*
 * bytes; a reply of this size or more gets a lane for itself, and may stop that lane until the
 * reader catches up
 */
#define LANE_HUGE 262144

struct lane {
    struct link link;
    struct lane_base *base;
    struct list in_list; /* in lanes.lists[in] */
    struct list waiting; /* lane users to wake when the lane is ready, has drained, or is closed */
    struct lane_key key;
    /*
     * The user as which Redis knows the connection; one reference. NULL: weir's user, no user, or
     * not logged in yet. NULL also if the lane stopped reading (slow_reader.c), and calls have been
     * unanswered since.
     */
    struct auth_user *user;
    struct lane_login let_in; /* the login that made the lane the user's; set by lane_enter_user */
    /* login of another lane of the user; the other lane has answered after let_in (shared.h) */
    struct lane_login vouched;
    /* the lane that is probed on behalf of this lane; NULL: none */
    struct lane *witness;
    uint32_t witness_call; /* the position of the probe on the witness */
    /* login of the previous owner, while the lane is greeted for the next; one reference */
    struct login *last_login;
    struct lane_user *owner; /* NULL: shared, or private and idle */
    /* the lane user with the huge reply that has stopped the reading; NULL: the lane is read */
    struct lane_user *slow_user;
    /* bytes that slow_user had not read at the last check (slow_reader_is_unread) */
    size_t slow_pending;
    uint64_t slow_since_ns; /* when slow_pending last changed */
    struct calls calls;
    struct tags tags; /* one for each request in flight */
    struct reply_scan scan;
    struct glimpse glimpse;
    /* deadline of connecting and greeting, or of a slow reader with calls behind; 0: none */
    uint64_t deadline_ns;
    /* deadline of an answer that decides a client's identity (lane_must_answer); 0: none */
    uint64_t answer_by_ns;
    /*
     * when the oldest call became the oldest, bytes arrived, more of a request was sent, or the
     * lane fell idle
     */
    uint64_t moved_ns;
    /* bytes of the frame being read, so far; 0: between frames; written by deliver.c */
    uint64_t frame_bytes;
    uint64_t ready_ns;      /* when the lane became ready */
    uint64_t greeted_ns;    /* when the greeting was sent; 0: not yet */
    uint64_t round_trip_ns; /* time from the greeting to its answer */
    /* when the lane last sent AUTH with a newer password (timers.h); 0: never */
    uint64_t prolonged_ns;
    uint32_t channels, patterns, shard_channels; /* confirmed subscriptions */
    /* Incremented when the lane changes owner, retires or closes. Invalidates leases. */
    uint32_t generation;
    uint32_t n_leases;       /* the lane's memory stays until this is 0 */
    int64_t id;              /* Redis' client id of a private lane; 0: unknown */
    struct room_share share; /* the counts of the room that include this lane */
    struct nonce nonce;      /* sent, and not answered yet */
    /*
     * A frame that is examined whole: an answer to a greeting or to an auth lane's login, the end
     * of passthrough (passthrough_end.h), a refusal. Heap.
     */
    struct bytes held;
    char *cover;   /* greeting_cover.key, heap; NULL: the lane covers no other connection */
    uint8_t state; /* enum lane_state; set by lane_become */
    uint8_t trust; /* enum lane_trust; written by lane.c only */
    uint8_t use;   /* enum lane_use */
    /* enum lane_framing of the frame being read, else of the last one; set by deliver.c */
    uint8_t framing;
    uint8_t beside; /* enum lane_beside; written by lane.c only */
    /* enum lane_lag of the frame being read; raised by slow_reader.c, reset at the frame's end */
    uint8_t lag;
    uint8_t end;      /* enum lane_end, once the lane has failed */
    uint8_t role;     /* enum lane_role */
    uint8_t in;       /* enum lane_list: the list that the lane is in */
    uint8_t returns;  /* how often the owner came back to the lane at once, see lend.c */
    uint8_t ends_run; /* enum run_end */
    uint8_t n_behind; /* how often timers.c has seen calls in flight since the lane last had none */
    struct greeting greeting;
    /*
     * shared, and a call that Redis refused may go back to its lane user: lane_user_ops.on_not_run
     */
    bool keeps;
    bool is_parted; /* weir has closed its side of the connection; set by lane_part */
    /*
     * SUNSUBSCRIBE was just answered: if the channel's slot has moved meanwhile, an error may
     * follow
     */
    bool errs_late;
    /* the lane is in node->owned: other clients of the owner's user may name the lane by `id` */
    bool is_listed;
    /* the lane closes when its owner leaves; set by lane_forbid_reuse */
    bool is_not_reusable;
    bool has_name;    /* the owner's name is set on the connection, by CLIENT SETNAME or HELLO */
    bool has_library; /* the owner's library is set on the connection, by CLIENT SETINFO */
};

/*
 * Set the lane's session. Takes a reference to the new login, and drops the reference to the old
 * login.
 */
void lane_set_key(struct lane *lane, const struct lane_key *key);

/*
 * Redis has said +OK to key.login, or has ended an earlier login. The lane counts as a connection
 * of the user of key.login (auth_users.h), and of no other user.
 */
void lane_enter_user(struct lane *lane);

/*
 * The lane no longer counts as a connection of its user. `is_kicked`: Redis, not weir, has closed
 * the connection.
 */
void lane_leave_user(struct lane *lane, bool is_kicked);

/*
 * A lane that had stopped reading counts for its user again once all its calls are answered. From
 * then on weir notices when Redis closes the connection.
 */
void lane_see_user(struct lane *lane);

/*
 * Probe whether Redis still answers on a shared lane, with a command of weir's own. on_vouched
 * reports the answer. *call is the position of the probe. False: out of memory.
 */
__attribute__((warn_unused_result)) bool lane_ask(struct lane *lane, uint32_t *call);

/*
 * Send AUTH with this login, as a command of weir's own. No call may be in flight. False: out of
 * memory.
 */
__attribute__((warn_unused_result)) bool lane_prolong(struct lane *lane, struct login *login);

static inline struct node *lane_node(const struct lane *lane)
{
    return lane->base->node;
}

/* A checked handle on a lane. One comparison says whether the lane has changed since lease_take. */
struct lease {
    struct lane *lane; /* NULL: none */
    uint32_t generation;
};

static inline bool lease_holds(const struct lease *lease)
{
    return lease->lane != NULL && lease->generation == lease->lane->generation;
}

/* Take a lease on the lane, in place of an earlier lease. */
void lease_take(struct lease *lease, struct lane *lane);
void lease_drop(struct lease *lease);

/* Invalidate all leases on the lane. */
static inline void lane_end_leases(struct lane *lane)
{
    lane->generation++;
}

/* ---- state ---- */

/* Move the lane to its next state: a legal step (lane_state.h). */
void lane_become(struct lane *lane, enum lane_state state);

/* True from the end of the greeting until the lane is closed, or lent to another owner. */
static inline bool lane_is_ready(const struct lane *lane)
{
    return lane->state >= LANE_READY && lane->state <= LANE_ENDING;
}

/*
 * True if the lane is being opened and the node has accepted the connection: the node is up, but
 * does not answer yet.
 */
static inline bool lane_is_taken(const struct lane *lane)
{
    return lane->state == LANE_GREETING || lane->link.state == LINK_SHAKING;
}

static inline bool lane_is_closed(const struct lane *lane)
{
    return lane->state >= LANE_CLOSED;
}

/* True if replies cannot be counted: bytes pass to the owner as they arrive. */
static inline bool lane_is_passthrough(const struct lane *lane)
{
    return lane->state == LANE_PASSTHROUGH || lane->state == LANE_ENDING;
}

/* True if nothing more will be sent: the lane closes when Redis has answered. */
static inline bool lane_is_ending(const struct lane *lane)
{
    return lane->state == LANE_ENDING || lane->is_parted;
}

/* True if Redis has confirmed a subscription that still holds. */
static inline bool lane_is_subscribed(const struct lane *lane)
{
    return lane->channels + lane->patterns + lane->shard_channels > 0;
}

static inline bool lane_is_congested(const struct lane *lane)
{
    return lane->link.is_congested;
}

/*
 * True if at most `few` calls of the lane user are unanswered. May also be false for few calls in
 * several runs.
 */
static inline bool lane_has_few_calls(const struct lane_user *lane_user, uint32_t few)
{
    if (lane_user->in_flight != 1)
        return lane_user->in_flight == 0;
    return calls_at(&lane_user->lane->calls, lane_user->last_call)->n <= few;
}

/*
 * Add requests of `bytes` bytes on a shared lane to lane_user.sent_parts. sent_parts counts the
 * bytes sent since at most `few` calls were unanswered. Call before the calls are noted.
 */
static inline void lane_count_sent(struct lane_user *lane_user, uint32_t few, uint32_t bytes)
{
    uint32_t parts = (bytes + LANE_USER_PART - 1) / LANE_USER_PART +
                     (lane_has_few_calls(lane_user, few) ? 0 : lane_user->sent_parts);
    lane_user->sent_parts = parts < UINT16_MAX ? (uint16_t)parts : UINT16_MAX;
}

/* lane_user.sent_parts in bytes. */
static inline uint32_t lane_sent_bytes(const struct lane_user *lane_user)
{
    return (uint32_t)lane_user->sent_parts * LANE_USER_PART;
}

/* True if a frame has begun to arrive, and has not ended. */
static inline bool lane_is_in_frame(const struct lane *lane)
{
    return lane->frame_bytes > 0;
}

/* True if a part of a frame that answers no call has been passed to the owner. */
static inline bool lane_is_in_message(const struct lane *lane)
{
    return lane_is_ready(lane) && lane_is_in_frame(lane) && lane->framing == FRAMING_UNSOLICITED;
}

/* True if Redis has said +OK to the owner's MONITOR. */
static inline bool lane_is_monitoring(const struct lane *lane)
{
    return lane->beside == BESIDE_MONITOR;
}

/*
 * True if a client has sent something since the lane was opened, lent, or given back to its owner.
 */
static inline bool lane_is_used(const struct lane *lane)
{
    return lane->trust > TRUST_RETURNED;
}

/* True if a nonce is in flight. */
static inline bool lane_is_asked(const struct lane *lane)
{
    return lane->trust >= TRUST_ASKED;
}

/* True if a command may have forged replies since the last nonce. */
static inline bool lane_is_untrusted(const struct lane *lane)
{
    return lane->trust == TRUST_RETURNED || lane->trust == TRUST_UNTRUSTED ||
           lane->trust == TRUST_UNSETTLED;
}

/*
 * True if something behind the nonce in flight may forge replies: the owner must wait for the
 * nonce's answer.
 */
static inline bool lane_must_settle(const struct lane *lane)
{
    return lane->trust == TRUST_UNSETTLED;
}

/* Number of unanswered requests. */
static inline uint32_t lane_n_requests(const struct lane *lane)
{
    return lane->tags.tail - lane->tags.head;
}

/*
 * True if the lane is ready and has no calls, no subscription, no MONITOR and no unfinished frame.
 */
bool lane_is_clean(const struct lane *lane);

/*
 * True if Redis owes the answer to the oldest call, or the rest of a frame, and nothing has moved
 * since `since_ns`. A call that may wait in Redis does not count.
 */
bool lane_is_hung(const struct lane *lane, uint64_t since_ns);

/*
 * For how long Redis has owed the answer to the oldest call, in ns. 0: no call is in flight, or the
 * oldest call may wait in Redis. Also 0 if the client must act first: send the rest of its request,
 * or read.
 */
uint64_t lane_owes_ns(const struct lane *lane, uint64_t now_ns);

/* True if a call is in flight that may wait in Redis for long. */
bool lane_may_wait(const struct lane *lane);

/* True if the oldest call may wait in Redis for long: all earlier calls are answered. */
bool lane_waits(const struct lane *lane);

/* True if calls of another lane user wait behind the reply that is being read. */
bool lane_has_others_waiting(const struct lane *lane);

/* ---- requests ---- */

/*
 * Note that `lane_user` will send n > 0 requests with this tag, each answered by one plain reply.
 * False: out of memory, and no request is noted.
 */
__attribute__((warn_unused_result)) bool lane_call_apart(struct lane *lane,
                                                         struct lane_user *lane_user, uint64_t tag,
                                                         uint32_t n);

/* Like lane_call_apart; the requests join an equal newest call that arrived with the requests. */
__attribute__((warn_unused_result)) static inline bool lane_call(struct lane *lane,
                                                                 struct lane_user *lane_user,
                                                                 uint64_t tag, uint32_t n)
{
    if (!calls_is_empty(&lane->calls)) {
        struct call *last = calls_newest(&lane->calls);
        if (last->lane_user == lane_user && call_may_grow(last) && last->n <= UINT32_MAX - n &&
            last->arrived_ns == lane_user->arrived_ns && last->sent_ns == 0 &&
            tags_push(&lane->tags, tag, n)) {
            last->n += n;
            return true;
        }
    }
    return lane_call_apart(lane, lane_user, tag, n);
}

/* Note any other request: `replies` frames for FLOW_SUBSCRIBE, else 1. NULL: out of memory. */
__attribute__((warn_unused_result)) struct call *lane_call_flow(struct lane *lane,
                                                                struct lane_user *lane_user,
                                                                uint8_t flow, uint32_t replies,
                                                                uint64_t tag);

/*
 * End the run of the lane user's replies on this lane. The run ends behind the lane user's newest
 * call. With no call in flight the run ends behind the frame being read. on_run_end reports when
 * the run has arrived. False: the end was requested before.
 */
bool lane_end_run(const struct lane_user *lane_user);

/*
 * The lane user's newest call will not be answered: only a part of its request is sent, and the
 * rest never will be. Called only on a private lane, which the lane user must close in the end.
 */
void lane_withdraw(struct lane_user *lane_user);

/* Send bytes of requests that this lane user has noted. */
void lane_send(struct lane *lane, const struct lane_user *lane_user, const char *data, size_t n);

/*
 * Like lane_send, without a copy: the bytes stay in the sender's memory until outbox_flush
 * (worker_lanes.h), or until something else is sent.
 */
void lane_gather(struct lane *lane, const struct lane_user *lane_user, const char *data, size_t n);

/* Send more of the newest request, which is sent in parts as the parts arrive from the client. */
void lane_send_more(struct lane_user *lane_user, const char *data, size_t n, bool is_last);

/*
 * Returns the link to which the content of the newest request may be spliced, as a link's
 * on_passing says. NULL: none. lane_passed: n bytes of the content were spliced.
 */
struct link *lane_passing(struct lane_user *lane_user);
void lane_passed(struct lane_user *lane_user, size_t n);

/*
 * The next answers on this private lane must be true. If something may have forged replies, a nonce
 * is sent first, and any other answer instead closes the lane. If the node answers no nonce, the
 * lane is never lent (lend.c): a forged reply harms only the owner's own session. False: out of
 * memory. Not called while lane_must_settle: only one nonce may be in flight.
 */
__attribute__((warn_unused_result)) bool lane_vouch(struct lane *lane, struct lane_user *lane_user);

/* The bytes being sent may forge replies. */
void lane_distrust(struct lane *lane);

/* The answer to the nonce of lane_vouch has arrived in order. */
void lane_end_question(struct lane *lane);

/* The last owner gets the lane back as it was, without a greeting. */
void lane_return(struct lane *lane);

/* The lane has a new session: RESET has removed all state of the last owner. */
void lane_forget_session(struct lane *lane);

/*
 * The next greeting writes the key `written` (greeting_cover). Nothing is written if `written` is
 * empty, or memory is out.
 */
void lane_cover(struct lane *lane, struct slice written);

/*
 * True once if the lane covers everything that Redis was sent before the lane was ready
 * (greeting_cover). True only once, because the next command that replicas receive from the lane is
 * the owner's.
 */
bool lane_take_cover(struct lane *lane);

/* Make the lane not reusable after its owner: Redis may keep state of the owner across RESET. */
static inline void lane_forbid_reuse(struct lane *lane)
{
    lane->is_not_reusable = true;
}

/* The owner's library is set on the connection. RESET does not remove the library. */
static inline void lane_note_library(struct lane *lane)
{
    lane->has_library = true;
    lane_forbid_reuse(lane);
}

/*
 * The answer to the request just sent decides a client's identity. The lane is closed if the answer
 * does not come in `within_ns`.
 */
void lane_must_answer(struct lane *lane, uint64_t within_ns);

/*
 * Redis has said +OK to the owner's MONITOR. lane_end_subscriptions: Redis has ended MONITOR and
 * all subscriptions.
 */
void lane_note_monitor(struct lane *lane);
void lane_end_subscriptions(struct lane *lane);

/* From now on bytes pass to the owner as the bytes arrive. No call may be in flight. */
void lane_pass_through(struct lane *lane);

/* Charge the lane user in the fair queue for Redis' work on n bytes of a large request or reply. */
static inline void lane_charge_bytes(const struct lane *lane, const struct lane_user *lane_user,
                                     size_t n)
{
    if (lane_user->sender != 0)
        fair_charge(fair_sender(lane->base->fair, lane_user->sender), n / FAIR_BYTES_PER_NS);
}

/*
 * Redis does not work on the calls of `lane_user`, or will not answer these calls: the fair queue
 * stops counting the calls. `lane_user` may be NULL.
 */
static inline void lane_discount(const struct lane *lane, const struct lane_user *lane_user)
{
    if (lane_user != NULL && lane_user->sender != 0)
        fair_forget(fair_sender(lane->base->fair, lane_user->sender));
}

/* Wake the lane user's link when the lane is ready, has drained, or is closed. */
void lane_wait(struct lane *lane, struct lane_user *lane_user);

/* Wake all waiting lane users now. */
void lane_wake_waiting(struct lane *lane);

/*
 * The lane user's reader has caught up. If the lane stopped reading for that reader
 * (slow_reader.h), reading resumes.
 */
void lane_catch_up(struct lane_user *lane_user);

/* ---- closing ---- */

/* The lane user leaves: replies to its calls are dropped. A private lane is closed. */
void lane_forget(struct lane *lane, struct lane_user *lane_user);

/*
 * The lane user leaves, and `heir` gets all further replies. A private lane becomes the heir's and
 * is half-closed: Redis runs the requests sent, and then closes the connection.
 */
void lane_bequeath(struct lane *lane, struct lane_user *lane_user, struct lane_user *heir);

/* Half-close this private lane: Redis reads the end of weir's side behind the bytes sent. */
void lane_part(struct lane *lane);

/* Close a lane without calls and without an owner. */
void lane_close(struct lane *lane);

/*
 * Close a lane after its owner has received everything (passthrough_end.h). The owner is woken, and
 * has no lane.
 */
void lane_end(struct lane *lane);

/*
 * Close the lane, and tell every lane user with calls or state on the lane. `why` is for the log.
 */
void lane_fail(struct lane *lane, enum lane_end end, const char *why);

/* Like lane_fail; lane users that wait for the lane are given `reply`, an error of Redis. */
void lane_refuse(struct lane *lane, enum lane_end end, const char *why, struct slice reply);

/* For lane_open.c: the link is closed. The memory is freed once no lease is left. */
void lane_end_link(struct lane *lane);

#endif
