/*
 * A client: one connection to weir, with the requests not yet taken and the replies not yet sent.
 * Requests and replies have a queue each. Between the two queues the lane has a queue of calls:
 *
 *   client's socket --> intake --> taken, one at a time --> lane's calls, oldest first --> Redis
 *                       bytes;     by the fast path or        the newest may be marked:      |
 *                       at most    the full path              CALL_ENDS_RUN                  |
 *                       INTAKE_MAX                                                           |
 *   client's socket <-- link.out <-- replies <-----------------------------------------------+
 *                       bytes;       replies that came too early, and weir's own replies;
 *                       output-limit idle while only one lane answers
 *
 * weir takes requests in order, while the client is open (client_state.h) and waits for nothing.
 * The set client.waits holds the reasons to wait. Each reason is a row of waits.def:
 *
 *   the next request cannot go:       client_wait(REASON) ---+--> waits --> set is empty: requests
 *   the cause of the wait has ended:  client_resume(REASON) -+              are taken again
 *
 * While the client waits, its bytes stay in `intake`. When `intake` is full, weir stops reading the
 * socket.
 *
 * This header has the functions that every part of front may call for a client: to answer it, make
 * it wait, close it. The callbacks of the client's socket and lane call these parts:
 * front/client/connection.h. A client belongs to its worker's thread. The close callback frees the
 * client.
 */
#ifndef WEIR_FRONT_CLIENT_H
#define WEIR_FRONT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/chain.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/slice.h"
#include "front/client/client_state.h"
#include "front/client/reply_mode.h"
#include "front/cluster/spread.h"
#include "front/front.h"
#include "front/route/replies.h"
#include "front/route/unanswered.h"
#include "front/session/transaction.h"
#include "limit/policy/ip.h"
#include "limit/policy/policy.h"
#include "net/link.h"
#include "resp/scan.h"
#include "upstream/lane/lane.h"

/*
 * weir does not buffer a request of more bytes as a whole: the request streams to a private lane as
 * its bytes arrive.
 */
#define LARGE_REQUEST 65536
/*
 * A client with more unanswered request bytes on a shared lane moves to a private lane. Redis reads
 * at most 16 KiB from one connection before it reads from the next connection. A flood on a private
 * lane therefore delays no other client.
 */
#define SHARED_BYTES_MAX 32768
/* this many unanswered calls are never a flood, however long they last */
#define SHARED_CALLS_FEW 16
#define HEAVY_NS (10 * NS_PER_S)

/*
 * A pin keeps a private lane with its client while no request needs the lane: on this lane Redis
 * has state of the client.
 *
 * A lasting pin ends with the connection. No request of the client ends a lasting pin, not even
 * RESET, and no other client gets the lane afterwards. Any other pin ends when Redis forgets the
 * state that the pin stands for. See pin_add.
 */

/*
 * ROW(name, whether the pin lasts)
 *
 *   RESET        weir has reset the lane for its owner, and RESET is not answered yet
 *   ID           other clients may refer to this client by its id
 *   UNKNOWN      a command that weir does not know may have changed the session
 *   SESSION      a transaction may have changed name, tracking or library
 *   DATABASE     SELECT was queued in a transaction: weir does not know the database
 *   WAIT         WAIT counts the writes on this lane
 *   PASSTHROUGH  weir does not count replies
 */
#define PINS(ROW)                                                                                  \
    ROW(WATCH, false)                                                                              \
    ROW(TRACKING, false)                                                                           \
    ROW(NO_EVICT, false)                                                                           \
    ROW(NO_TOUCH, false)                                                                           \
    ROW(RESET, false)                                                                              \
    ROW(ID, true)                                                                                  \
    ROW(UNKNOWN, true)                                                                             \
    ROW(SESSION, true)                                                                             \
    ROW(DATABASE, true)                                                                            \
    ROW(WAIT, true)                                                                                \
    ROW(PASSTHROUGH, true)

#define PIN_BIT_ROW(name, lasts) PIN_BIT_##name,
#define PIN_ROW(name, lasts) PIN_##name = 1U << PIN_BIT_##name,
#define PIN_LASTS_ROW(name, lasts) | ((lasts) ? PIN_##name : 0U)
enum { PINS(PIN_BIT_ROW) PIN_BITS };
_Static_assert(PIN_BITS <= 16, "struct client has 16 bits for pins");
enum pin { PINS(PIN_ROW) };
enum { PINS_THAT_LAST = 0U PINS(PIN_LASTS_ROW) };
#undef PIN_BIT_ROW
#undef PIN_ROW
#undef PIN_LASTS_ROW

/*
 * Request bytes that have arrived and are not taken yet. An intake may point into the loop's read
 * buffer. Bytes that are left before the next read are then copied to the heap.
 */
struct intake {
    struct request_scan scan;
    uint32_t taken, scanned, filled, capacity; /* taken <= scanned <= filled <= capacity */
    bool has_frame;                            /* [taken, scanned) is a request that must wait */
    uint16_t waits;   /* set of enum client_wait: why the next request has waited since held_ns */
    uint64_t held_ns; /* since when the next request cannot go; 0: no wait is known */
    char *data;
};

/* A large request that streams to a lane, from its first bytes to its last. */
struct passage {
    struct request_scan scan;
    uint64_t tag; /* timing_tag() of the call; the fair queue counts the call after the last byte */
    uint8_t counted; /* as in struct request */
    bool is_refused; /* the bytes of the request are thrown away */
    bool may_block;  /* the fair queue does not wait for the reply */
    bool is_skipped; /* CLIENT REPLY SKIP came just before the request: the reply is thrown away */
};

/*
 * State of a client that has half-closed while one of its commands may block. The probe tells
 * whether that command blocks: upstream/node/prober.h.
 */
struct ending {
    struct probe probe;
    struct client *client;
    uint32_t call; /* position of the probed call: the oldest call of the client's lane */
};

/*
 * State that few clients need. client_need_extra allocates struct extra on first use, so that idle
 * clients stay small.
 */
struct extra {
    struct passage *passage; /* NULL: no large request is passing */
    struct replies replies;  /* idle unless weir's own replies wait for earlier replies of a lane */
    struct reply_source own; /* the source `lane_user.lane` in `replies`, whichever lane that is */
    struct ending *ending;   /* NULL: no command of a half-closed client is probed */
    /* Redis' error when no lane for the client could be opened; heap; NULL: none */
    char *refusal;
    /* the client waits for this admin command; owned by the main thread; NULL: none */
    struct admin_command *admin_command;
    struct list asked; /* struct decision: LIMIT calls that Redis decides, oldest first */
    uint32_t n_asked;  /* length of `asked` */
    /*
     * end of the time in which the client has a private lane, since it sends or reads much; 0: none
     */
    uint64_t heavy_until_ns;
    /* end of the time with few calls in flight, since the client reads huge values; 0: none */
    uint64_t huge_until_ns;
    struct gather *gather; /* NULL: replies pass on as they come */
    /* argument of the last CLIENT PAUSE ... WRITE that was queued in MULTI; 0: none */
    uint32_t pause_ms;
    /* how often the next request has tried to get a lane that another client keeps unused */
    uint8_t retries;
    /*
     * the wait of the client's next request for a connection to Redis, also when the wait is over;
     * NULL: none
     */
    struct outage *outage;
    /* when weir last told a command that no connection could be had; 0: never */
    uint64_t told_ns;
    struct login_step *login; /* AUTH or HELLO AUTH that an auth lane decides; NULL: none */
    struct lease kept;        /* lease on the private lane that the client had last */
    /* state for reads from replicas (read_side.h); NULL: the client reads from the default node */
    struct read_side *read_side;
    /* requests in flight on lanes that keep requests; see client_keep */
    struct unanswered unanswered;
    struct again *again; /* requests that came back (again.h); NULL: none ever came back */
    /* the address that the client connected to, as its PROXY header says; family 0: unknown */
    struct link_peer reached;
    /* PROXY header that is being read; heap; NULL: none, or the header is complete */
    struct proxy_header *header;
    /* on a cluster: requests that became several calls (compound.h); NULL: none yet */
    struct compounds *compounds;
    uint32_t n_compounds;                /* length of `compounds` */
    struct subscriptions *subscriptions; /* on a cluster: subscriptions (subscribe.h); NULL: none */
    /* subscriptions as Redis counts them: channels, patterns and shard channels */
    uint32_t n_subscribed;
    /* on a cluster: requests in flight on the private lane (carried.h); NULL: none so far */
    struct carry *carry;
    /* on a cluster: the client's places and hops (spread.h); NULL: none yet */
    struct spread *spread;
    /* bytes of replies that hops and compounds keep until `replies` takes them */
    uint64_t kept_bytes;
};

/* How much weir knows of the size of the values that a client reads on shared lanes. */
enum reader {
    READER_NEW,   /* weir knows nothing */
    READER_ASKS,  /* the first read is in flight, and the next read waits for its reply */
    READER_KNOWN, /* the first read was not huge */
};

/*
 * The client's private lane, which is lane_user.lane. lane_user.lane is NULL while the lane is
 * being opened or after its loss.
 */
enum own_lane {
    OWN_NONE, /* the client has no private lane */
    /*
     * no private lane; a lane that was to be lent to the client was unclean, so the next lane must
     * be new
     */
    OWN_WANTS_NEW,
    OWN_NEW, /* just lent to the client; no request of the client has been sent on the lane yet */
    OWN_USED,
    OWN_URGENT_NEW, /* as OWN_NEW, for one call, whatever database the lane has selected */
    OWN_URGENT,
};

struct again;
struct compounds;
struct carry;
struct session;
struct subscriptions;
struct proxy_header;
struct read_side;
struct gather;
struct login_step;
struct outage;
struct meter;
struct unbound;

/* resolution of active_mi: a shift costs less than a division at each read */
#define ACTIVE_BITS 20

/* Times of one client, for front/client/timeouts.h. */
struct waited_for {
    /* in timeouts.handshakes before the handshake is done, in timeouts.unfinished afterwards */
    struct list in_list;
    union {
        /* when the client entered in_list, connected, or ended its handshake; wraps */
        uint32_t since_ms;
        /*
         * for a client that only reads its last replies: bytes written up to the last look; wraps
         */
        uint32_t written;
    };
    /* in ms: when timeouts.c last looked at the client; orders front->clients; wraps */
    uint32_t looked_ms;
    uint32_t came_s;    /* when the client connected */
    uint32_t active_mi; /* when bytes passed last, in units of 2^ACTIVE_BITS ns; wraps */
};

struct client {
    struct link link;
    struct lane_user lane_user;
    struct front *front;
    struct list in_front;
    struct waited_for waited_for;
    struct intake *intake;   /* request bytes that wait; NULL: none */
    struct extra *extra;     /* NULL: not needed yet; see client_extra */
    struct session *session; /* NULL: no login, RESP2 and database 0, as after connecting */
    /* never NULL from the moment when the client's address is known until the client is closed */
    struct subject *subject;
    const struct policy *bound; /* the policy that binds the client; NULL: unlimited */
    struct meter *meter;        /* NULL: the client's limits need no meter */
    struct unbound *unbound;    /* NULL: the client is bound; see front/client/unbound.h */
    struct lease shared;        /* lease on the shared lane of the client's session */
    /* auth generation of the default node when the client connected; see node_auth_generation */
    uint32_t auth_generation;
    uint32_t n_commands; /* commands for LIMIT TOP since client_tell_top */
    uint32_t n_bytes;    /* bytes both ways for LIMIT TOP since client_tell_top */
    /*
     * coverage_time of the client's last write that WAIT does not count: wait_coverage.h; 0: never
     */
    uint32_t wrote_at;
    uint16_t n_refused; /* refused commands for LIMIT TOP since client_tell_top */
    /* id of the limit that refused the n_refused commands, plus 1; 0: none yet */
    uint16_t refused_by;
    /* request bytes before the first command outside class control; capped at GREETING_MAX */
    uint16_t greeted_bytes : 13;
    uint16_t reader : 2;     /* enum reader: size of the values read on shared lanes */
    uint16_t was_active : 1; /* bytes have passed since the last look of front/client/timeouts.c */
    uint16_t pins;           /* set of enum pin: why the client keeps its private lane */
    /* set of enum client_wait; written by client_wait and client_resume* */
    uint16_t waits;
    struct reply_mode reply_mode;
    struct transaction transaction;
    uint8_t listen_address; /* number of the listener; see client_listen_address */
    uint8_t state : 3;      /* enum client_state; written only by client_move */
    uint8_t reason : 5;     /* enum ending_reason: why the connection ends */
    uint8_t output : 3;     /* enum client_output */
    /* looks of front/client/timeouts.c since bytes passed last, either way */
    uint8_t silent_looks : 4;
    uint8_t generation : 1; /* front.generation of the rules that bind the client */
    uint8_t own_lane : 3;   /* enum own_lane; written only by lane_choice.c */
    /*
     * the private lane has the client's CLIENT SETNAME name; without a private lane: the lane of
     * extra.kept has the name
     */
    bool is_name_set : 1;
    bool was_refused : 1; /* the lane that the client waited for could not be opened */
    bool is_eof : 1;      /* the client has half-closed */
    /*
     * on a cluster: a call on the private lane has come back or may come back; written only by
     * carried.h
     */
    bool is_carrying : 1;
    bool is_keyed : 1; /* the key of a command may name the subject that is charged */
};

/*
 * Functions that struct client calls in parts of front that depend on it. front_init sets
 * front.client_ops.
 */
struct client_ops {
    /* Logs that the client is closed, and why. */
    void (*log_closed)(const struct client *client, enum log_site site, const char *why);
    /*
     * Sends weir's own reply behind the LIMIT calls that Redis has yet to decide
     * (client_extra()->n_asked > 0).
     */
    void (*answer_behind)(struct client *client, struct slice reply);
    /* Sends bytes behind the requests that have come back to the client (again.h). */
    void (*put_behind)(struct client *client, const char *data, size_t n);
    /* As lane_user_ops.on_not_run, for a call at this place. */
    bool (*on_not_run)(struct place *place, const struct call *call, enum not_run row,
                       struct slice reply);
    /* A lane is lost, and with it calls of the client at a place. */
    void (*on_place_lost)(struct client *client);
    /* As compound_by_keys. */
    bool (*by_keys)(struct client *client, struct slice request,
                    void (*done)(void *arg, struct slice reply), void *arg);
    /*
     * weir takes no more requests from the client. The connection ends once all requests are
     * answered.
     */
    void (*on_leaving)(struct client *client);
    /*
     * The client has just been closed, from state `was`. Each part of front frees its state of the
     * client.
     */
    void (*on_close)(struct client *client, enum client_state was);
};

static inline const struct listen_address *client_listen_address(const struct client *client)
{
    return client->front->listen_addresses[client->listen_address];
}

/* True if the client connected to the operators' socket. */
static inline bool client_is_operator(const struct client *client)
{
    return client_listen_address(client)->is_admin;
}

/* True if the client is an operator, by its socket or by its policy. */
static inline bool client_may_administer(const struct client *client)
{
    return client_is_operator(client) || (client->bound != NULL && client->bound->is_admin);
}

/* True if the upstream is a cluster. */
static inline bool client_is_on_cluster(const struct client *client)
{
    return client->front->nodes.worker_lanes.upstream->is_cluster;
}

/* Bytes have passed, either way: the client is not idle. */
static inline void client_note_active(struct client *client)
{
    client->was_active = true;
    client->waited_for.active_mi = (uint32_t)(client->front->loop->now_ns >> ACTIVE_BITS);
}

/* True if a limit of this unit binds the client. */
static inline bool client_counts(const struct client *client, enum unit unit)
{
    return client->bound != NULL && client->bound->of_unit[unit] != 0;
}

/*
 * True if lane_user.lane is the client's private lane, or a private lane is being opened for the
 * client.
 */
static inline bool client_has_own_lane(const struct client *client)
{
    return client->own_lane >= OWN_NEW;
}

/* True if the private lane is lent for one call, whatever database the lane has selected. */
static inline bool client_is_urgent(const struct client *client)
{
    return client->own_lane >= OWN_URGENT_NEW;
}

/*
 * True if the rules from before the last reload bind the client: binding_renew has not been called
 * since the reload.
 */
static inline bool client_has_old_rules(const struct client *client)
{
    return client->generation != client->front->generation;
}

/* The rules that bind the client. */
static inline struct rules *client_rules(const struct client *client)
{
    return client_has_old_rules(client) ? client->front->rules_before : client->front->rules;
}

/* The handshake is done: weir takes requests from now on. */
void client_admit(struct client *client);

/* True if the PROXY header or the TLS handshake is not done. */
static inline bool client_is_shaking(const struct client *client)
{
    return client->state == CLIENT_SHAKING;
}

/* True if weir takes no more requests from the client. */
static inline bool client_is_leaving(const struct client *client)
{
    return client->state >= CLIENT_DRAINING;
}

/* True if weir stops and has shut down its side, and the client has not closed its own. */
static inline bool client_is_parted(const struct client *client)
{
    return client->output == OUTPUT_ENDED || client->output == OUTPUT_OVERDUE;
}

static inline bool client_is_closed(const struct client *client)
{
    return client->state == CLIENT_CLOSED;
}

/* The client's extra state, for reading only; never NULL. */
static inline const struct extra *client_extra(const struct client *client)
{
    static const struct extra nothing;
    return client->extra != NULL ? client->extra : &nothing;
}

/*
 * The client's struct spread, allocated on first use. NULL: out of memory, and the client is
 * closed.
 */
struct spread *client_need_spread(struct client *client);

/*
 * True if push messages may come to the client: it has subscribed, on its private lane or, on a
 * cluster, by taps.
 */
static inline bool client_is_subscribed(const struct client *client)
{
    const struct lane *lane = client_has_own_lane(client) ? client->lane_user.lane : NULL;
    return (lane != NULL && lane_is_subscribed(lane)) || client_extra(client)->n_subscribed > 0;
}

/* True if calls of the client are in flight, on lane_user.lane or at places. */
static inline bool client_has_calls(const struct client *client)
{
    return client->lane_user.in_flight > 0 || spread_in_flight(client_extra(client)->spread) > 0;
}

/*
 * The client's extra state, for writing; allocated on first use. NULL: out of memory, and the
 * client is closed.
 */
__attribute__((warn_unused_result)) struct extra *client_need_extra(struct client *client);

/* As client_need_extra, but the client stays open without memory. NULL: out of memory. */
struct extra *client_want_extra(struct client *client);

/*
 * Adds a reason to wait. weir takes no request until client_resume has been called for every reason
 * in the set.
 */
void client_wait(struct client *client, enum client_wait reason);

/*
 * Ends the wait for this reason, if there is one, and wakes the link. Requests are taken if no
 * other reason is left.
 */
void client_resume(struct client *client, enum client_wait reason);

/* As client_resume, without waking the link. Only for on_wake, which takes requests next. */
void client_resume_woken(struct client *client, enum client_wait reason);

/*
 * Wakes the link once all of the client's calls are answered. If no call is in flight, the link may
 * never be woken.
 */
void client_want_idle(struct client *client);

/* Makes the client wait until all its calls are answered: WAIT_REPLIES. */
void client_wait_for_replies(struct client *client);

/* True if the client waits for one of the reasons in this set of enum client_wait. */
static inline bool client_waits_for(const struct client *client, unsigned reasons)
{
    return (client->waits & reasons) != 0;
}

/* ---- pins ---- */

static inline bool pin_has(const struct client *client, enum pin pin)
{
    return (client->pins & pin) != 0;
}

/* True if a lasting pin keeps the private lane. */
static inline bool pins_last(const struct client *client)
{
    return (client->pins & PINS_THAT_LAST) != 0;
}

/*
 * Adds a pin: from now on Redis remembers, on the client's lane, the state that the pin stands for.
 */
void pin_add(struct client *client, enum pin pin);

/* Ends a pin that does not last: Redis has forgotten the state that the pin stands for. */
static inline void pin_end(struct client *client, enum pin pin)
{
    client->pins &= (uint16_t)~pin;
}

/* Ends the pins that do not last, after RESET. */
static inline void pins_reset(struct client *client)
{
    client->pins &= PINS_THAT_LAST;
}

/* The client has left its private lane: all pins end. */
static inline void pins_end(struct client *client)
{
    client->pins = 0;
}

/* True if the intake holds a whole request, or bytes that have not been scanned. */
static inline bool client_has_more(const struct client *client)
{
    const struct intake *in = client->intake;
    return in != NULL && (in->has_frame || in->scanned < in->filled);
}

/* Sends bytes to the client. Closes the client if its unread output exceeds output-limit. */
void client_output(struct client *client, const char *data, size_t n);

/*
 * Takes bytes that `source` has sent for the client. The bytes pass now, or are kept until earlier
 * replies have passed. `is_whole`: the bytes end where a frame ends. Only for a client with extra.
 */
void client_output_from(struct client *client, struct reply_source *source, const char *data,
                        size_t n, bool is_whole);

/* As client_output, for replies_flush. Returns false once the client is closed. */
bool client_put_out(void *client, const char *data, size_t n);

/*
 * `more` bytes wait for the client besides its output and `replies`. A sum beyond output-limit
 * closes the client.
 */
void client_limit_unread(struct client *client, uint64_t more);

/*
 * A hop or a compound keeps `n` more bytes of a reply. Kept bytes count as unread, so the call may
 * close the client. Only for a client with extra.
 */
void client_note_kept(struct client *client, size_t n);

/* A hop or a compound no longer keeps `n` bytes of a reply. Only for a client with extra. */
void client_note_kept_less(struct client *client, size_t n);

/*
 * True if the client must not leave yet: a call is unanswered, a message is half read, or a
 * passthrough lane is ending.
 */
bool client_is_owed(const struct client *client);

/* Sends weir's own reply behind all earlier replies, and never inside a message. */
void client_answer(struct client *client, struct slice reply);

/*
 * As client_answer, for the reply to a LIMIT call that Redis has decided: no earlier LIMIT call is
 * undecided.
 */
void client_answer_now(struct client *client, struct slice reply);

/*
 * client_begin_apart: the reply to the client's next request will come from `source`, a compound,
 * not from a lane. The call fixes the reply's position among all replies. Not allowed while a call
 * of client.lane_user is in flight. False: out of memory, and the client is closed.
 *
 * client_answer_apart gives the whole reply. If `reply` is empty, the client gets no reply.
 */
__attribute__((warn_unused_result)) bool client_begin_apart(struct client *client,
                                                            struct reply_source *source);
void client_answer_apart(struct client *client, struct reply_source *source, struct slice reply);

/*
 * Returns a copy of the reply to a client for which no lane could be opened: Redis' whole error
 * reply, or weir's error. The caller frees the copy. NULL: Redis and weir give no text, or memory
 * is out.
 */
char *client_copy_refusal(enum lane_end end, struct slice reply);

/* Frees extra.refusal, if there is one, after the client has got the error. */
void client_forget_refusal(struct client *client);

/* Takes no more requests. Closes the client when all requests are answered and all replies sent. */
void client_leave(struct client *client);

/*
 * As client_leave, but sends nothing more. Closes the client when Redis has run all the client's
 * requests.
 */
void client_drop(struct client *client);

/* Sends nothing more to a client that reads no more. Requests are still taken. */
void client_drop_output(struct client *client);

/*
 * The client's next reply is lost, and no later reply may take its position. Closes the client when
 * its output is sent, or at once if its output is dropped.
 */
void client_cut_for(struct client *client, enum ending_reason reason);

/*
 * For a client that waits for no reply while weir stops: shuts down weir's side, and waits for the
 * client to close.
 */
void client_part(struct client *client);

/*
 * The client has not closed during one tick of the drain. If its output is sent, the client becomes
 * overdue.
 */
void client_note_kept_open(struct client *client);

/*
 * Takes client_part back: weir takes the requests that the client had sent before the shutdown
 * reached it.
 */
void client_return(struct client *client);

void client_close(struct client *client);

/* As client_leave, with weir's reason. The first reason given counts. */
void client_leave_for(struct client *client, enum ending_reason reason);

/* As client_close, with weir's reason. The first reason given counts. */
void client_close_for(struct client *client, enum ending_reason reason);

/* Closes, counts and logs the client after memory ran out. Does nothing if the client is closed. */
void client_close_starved(struct client *client);

/*
 * Gives the client a private lane for HEAVY_NS, since it sends or reads much at a time. Does
 * nothing if memory is out.
 */
void client_note_heavy(struct client *client);

/*
 * Flushes the client's counters for LIMIT TOP to the worker's table. Called once for each read, and
 * before the subject changes.
 */
void client_tell_top(struct client *client);

/*
 * Flushes the client's counters if they hold refusals. The next refusals to be counted are refusals
 * by this limit.
 */
void client_change_refuser(struct client *client, const struct limit *limit);

/*
 * Keeps copies of `n` requests of this command that are about to be sent on a lane that keeps
 * requests (lane.keeps). Empty `bytes`: the requests cannot be sent again. False: out of memory.
 */
__attribute__((warn_unused_result)) bool client_keep(struct client *client,
                                                     const struct command *command,
                                                     struct slice bytes, uint32_t n);

/* Forgets the copies of all requests in flight. */
void client_keep_nothing(struct client *client);

#endif
