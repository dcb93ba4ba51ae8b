/*
 * A client: one connection to weir, the requests that it has sent and weir has not taken yet, and the replies that are
 * still to reach it. Two queues, one each way; between them the lane has a third, of calls:
 *
 *   client's socket --> intake --> taken, one at a time --> lane's calls, oldest first --> Redis
 *                       bytes;     by the short way or         the newest may be marked:      |
 *                       at most    the long one                CALL_ENDS_RUN                  |
 *                       INTAKE_MAX                                                            |
 *   client's socket <-- link.out <-- replies <------------------------------------------------+
 *                       bytes;       what came before its turn, and weir's own
 *                       output-limit replies; idle while only one lane answers
 *
 * Requests are taken in order, while the client is open (client_state.h) and waits for nothing. What it waits for is a
 * set, client.waits; each reason is a row of waits.def:
 *
 *   the next request cannot go:        client_wait(REASON) --+--> waits --> set is empty: taken at the end of
 *   what the reason names has come:  client_resume(REASON) --+              the iteration
 *
 * Meanwhile its bytes stay in `intake`; when that is full its socket is not read.
 *
 * Here is what every part of front may do with a client: answer it, have it wait, close it. What its socket and its
 * lane
 * call is in front/client/connection.h, above those parts. A client belongs to its worker's thread; its memory goes
 * in the close callback.
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

/* A request of more bytes than this is not gathered first: it streams to a private lane as it comes. */
#define LARGE_REQUEST 65536
/*
 * Unanswered request bytes of one client on a shared lane, beyond which it gets its own: Redis reads its connections in
 * turns of 16 KiB, and so a flood on one of them holds nobody else up.
 */
#define SHARED_BYTES_MAX 32768
#define SHARED_CALLS_FEW 16 /* unanswered calls that are no flood, however long it goes on */
#define HEAVY_NS (10 * NS_PER_S)

/*
 * Why a client keeps its private lane when no request needs one: what Redis remembers of the client on that lane.
 *
 * A pin that lasts ends with the connection: nothing that the client sends ends it, RESET included, and no other
 * client gets the lane afterwards. The others end with what they are about. See pin_add and so on.
 */

/* ROW(name, whether it lasts) */
#define PINS(ROW)                                                                                                      \
    ROW(WATCH, false)      /* keys are watched */                                                                      \
    ROW(TRACKING, false)   /* CLIENT TRACKING */                                                                       \
    ROW(NO_EVICT, false)   /* CLIENT NO-EVICT */                                                                       \
    ROW(NO_TOUCH, false)   /* CLIENT NO-TOUCH */                                                                       \
    ROW(RESET, false)      /* the lane has been reset for its owner, and RESET is not answered yet */                  \
    ROW(ID, true)          /* other clients may name this one by its id */                                             \
    ROW(UNKNOWN, true)     /* a command that weir does not know has done something */                                  \
    ROW(SESSION, true)     /* a transaction may have changed name, tracking or library */                              \
    ROW(DATABASE, true)    /* SELECT was queued in a transaction: weir does not know the database */                   \
    ROW(WAIT, true)        /* WAIT is about what is written on this lane */                                            \
    ROW(PASSTHROUGH, true) /* replies are not counted */

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
 * Request bytes that have arrived and are not yet taken. An intake may point into memory that is
 * used up before the next read. What is left then is kept in memory of its own.
 */
struct intake {
    struct request_scan scan;
    uint32_t taken, scanned, filled, capacity; /* taken <= scanned <= filled <= capacity */
    bool has_frame;                            /* [taken, scanned) is a whole request that could not go yet */
    uint16_t waits;                            /* set of enum client_wait: what the next one waits for since held_ns */
    uint64_t held_ns;                          /* since when the next one cannot go; 0: it can, as far as is known */
    char *data;
};

/* A request that is too large to gather, on its way: from its first bytes to its last. */
struct passage {
    struct request_scan scan;
    uint64_t tag;    /* of its call: timing_tag(). The fair queue counts the call when its last byte has passed. */
    uint8_t counted; /* as in struct request */
    bool is_refused; /* its bytes are thrown away */
    bool may_block;  /* the fair queue does not wait for its reply */
    bool is_skipped; /* CLIENT REPLY SKIP came just before: its reply is thrown away */
};

/* A client has ended its side while one of its commands may block: is that so? See upstream/node/prober.h. */
struct ending {
    struct probe probe;
    struct client *client;
    uint32_t call; /* position of the call that it asks about, the oldest of the client's lane */
};

/* What few clients ever need: made when one first does, so that the many idle ones stay small. */
struct extra {
    struct passage *passage;     /* NULL: no large request is passing */
    struct replies replies;      /* not idle: replies of weir's own wait for earlier ones of the lane ... */
    struct reply_source own;     /* ... which is this source: rider.lane, whichever that is */
    struct ending *ending;       /* NULL: none */
    char *refusal;               /* Redis' error when a lane for the client could not be opened; heap; NULL: none */
    struct order *order;         /* the client waits for its result; the main thread's; NULL: none */
    struct list asked;           /* struct decision: LIMIT calls that Redis decides, oldest first */
    uint32_t n_asked;            /* how many */
    uint64_t heavy_until_ns;     /* it sends or reads much at a time: a private lane until then; 0: no */
    uint64_t huge_until_ns;      /* it reads huge values: few of its calls are under way until then; 0: no */
    struct gather *gather;       /* NULL: replies are passed on as they come */
    uint32_t pause_ms;           /* of the last CLIENT PAUSE ... WRITE that was queued in MULTI; 0: none */
    uint8_t hopes;               /* how often it has waited for a lane that somebody else only keeps */
    struct outage *outage;       /* it waits for a connection to Redis, or has for its next request; NULL: it has not */
    uint64_t told_ns;            /* when a command heard last that no connection could be had; 0: none has */
    struct login_step *login;    /* AUTH or HELLO AUTH on its way through the door; NULL: none */
    struct lease kept;           /* on the private lane that the client had last */
    struct read_side *read_side; /* where it reads; NULL: from the home node alone; see front/client/read_side.h */
    struct unanswered unanswered; /* its requests under way on lanes that keep (client_keep) */
    struct again *again;          /* of what came back to it (again.h); NULL: nothing has */
    struct link_peer reached;     /* where it connected, as its PROXY header says; family 0: it does not */
    struct proxy_header *header;  /* of the PROXY protocol, being read; heap; NULL: none, or it is whole */
    struct compounds *compounds;  /* on a cluster: its requests that became several (compound.h); NULL: none yet */
    uint32_t n_compounds;         /* how many of these */
    struct subscriptions *subscriptions; /* on a cluster: what it has subscribed to (subscribe.h); NULL: nothing */
    uint32_t n_subscribed;               /* of those, as Redis counts them: channels, patterns and shard channels */
    struct carry *carry;   /* on a cluster: what is under way on its own lane (carried.h); NULL: nothing was */
    struct spread *spread; /* on a cluster: its places and hops (spread.h); NULL: none yet */
    uint64_t kept_bytes;   /* of replies that hops and compounds keep, whole or in part: replies have them later */
};

/* What is known of the size of the values that a client reads on shared lanes. */
enum reader {
    READER_NEW,   /* nothing */
    READER_ASKS,  /* its first read is on its way, and the next waits for the answer */
    READER_KNOWN, /* that was not huge */
};

/* The client's private lane: rider.lane, or NULL while that is being opened or has been lost. */
enum own_lane {
    OWN_NONE,      /* the client has none */
    OWN_WANTS_NEW, /* none: that it was to get had had another owner, and was not clean */
    OWN_NEW,       /* lent to the client just now, and has had no request of its yet */
    OWN_USED,
    OWN_URGENT_NEW, /* as OWN_NEW, in whatever database: for one call */
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

#define ACTIVE_BITS 20 /* for what is noted at each read: a shift in the place of a division */

/* Of one client, for front/client/timeouts.h. */
struct waited_for {
    struct list in_list; /* in timeouts.handshakes while it is shaking, in timeouts.unfinished afterwards */
    union {
        uint32_t since_ms; /* when it was put there, came, or ended its handshake; wraps: only differences count */
        uint32_t written;  /* of one that only reads on: the bytes to it when it was looked at; it wraps, too */
    };
    uint32_t looked_ms; /* the same: when it was looked at; front->clients is in this order */
    uint32_t came_s;    /* when it came */
    uint32_t active_mi; /* when bytes passed last, in 2^ACTIVE_BITS ns; it wraps, too */
};

struct client {
    struct link link;
    struct rider rider;
    struct front *front;
    struct list in_front;
    struct waited_for waited_for;
    struct intake *intake;       /* bytes that wait; NULL: none */
    struct extra *extra;         /* NULL: nothing of that has been needed; see client_extra */
    struct session *session;     /* NULL: as it connected: no login, RESP2, database 0 */
    struct subject *subject;     /* never NULL from the moment when its address is known to close */
    const struct policy *bound;  /* the policy that binds it; NULL: unlimited */
    struct meter *meter;         /* NULL: its limits need none */
    struct unbound *unbound;     /* NULL: it is bound, see front/client/unbound.h */
    struct lease shared;         /* on the shared lane of its session */
    uint32_t epoch;              /* of its node, when it came; see node_epoch */
    uint32_t n_commands;         /* for LIMIT TOP, since client_tell_top: commands, ... */
    uint32_t n_bytes;            /* ... and bytes both ways */
    uint32_t wrote_at;           /* it may have written where WAIT does not count: wait_coverage.h; 0: it has not */
    uint16_t n_refused;          /* ... of commands those refused, ... */
    uint16_t refused_by;         /* ... by the limit with this id, plus one; 0: none yet */
    uint16_t greeted_bytes : 13; /* bytes sent before its first command that is not of class control */
    uint16_t reader : 2;         /* enum reader: what it has read on shared lanes */
    uint16_t was_active : 1;     /* bytes have passed since the last look of front/client/timeouts.c */
    uint16_t pins;               /* enum pin: why it keeps its private lane */
    uint16_t waits;              /* set of enum client_wait; written by client_wait and client_resume alone */
    struct reply_mode reply_mode;
    struct transaction transaction;
    uint8_t entrance;         /* its number, see client_entrance */
    uint8_t state : 3;        /* enum client_state; written by client_move alone */
    uint8_t reason : 5;       /* enum ending_reason: why its connection ends */
    uint8_t output : 3;       /* enum client_output */
    uint8_t silent_looks : 4; /* looks of front/client/timeouts.c since bytes passed last, either way */
    uint8_t generation : 1;   /* front.generation, of the rules by which it is bound */
    uint8_t own_lane : 3;     /* enum own_lane; written by lane_choice.c alone */
    bool is_dressed : 1;      /* its own lane bears its name, or the one that is kept for it */
    bool was_refused : 1;     /* the lane it waited for could not be opened */
    bool is_eof : 1;          /* it has ended its side */
    bool is_carrying : 1; /* on a cluster: a call on its own lane may come back, or has; written by carried.h alone */
    bool is_keyed : 1;    /* the key of a command may say whose limits bind it */
};

/* What is done by parts above the client: front.client_ops, given at the start. */
struct client_ops {
    /* Who is closed, and why, for the log. */
    void (*log_closed)(const struct client *client, enum log_site site, const char *why);
    /* A reply of weir's own, behind what Redis is still to decide for it (client_extra()->n_asked > 0). */
    void (*answer_behind)(struct client *client, struct slice reply);
    /* Bytes for it while requests have come back to it (again.h): they follow those. */
    void (*put_behind)(struct client *client, const char *data, size_t n);
    /* On a cluster: as rider_ops.on_not_run, of a call at that place. */
    bool (*on_not_run)(struct place *place, const struct call *call, enum not_run row, struct slice reply);
    /* Calls of its at a place are lost with their lane. */
    void (*on_place_lost)(struct client *client);
    /* As compound_by_keys. */
    bool (*by_keys)(struct client *client, struct slice request, void (*done)(void *arg, struct slice reply),
                    void *arg);
    /* Nothing more is taken from it: its connection ends once all is answered. */
    void (*on_leaving)(struct client *client);
    /* It has just been closed, and was in state `was`: each part gives back what it holds for it. */
    void (*on_close)(struct client *client, enum client_state was);
};

static inline const struct entrance *client_entrance(const struct client *client)
{
    return client->front->entrances[client->entrance];
}

/* True if it came by the operators' socket. */
static inline bool client_is_operator(const struct client *client)
{
    return client_entrance(client)->is_admin;
}

/* True if it is an operator's connection: by the socket, or by its policy. */
static inline bool client_may_administer(const struct client *client)
{
    return client_is_operator(client) || (client->bound != NULL && client->bound->is_admin);
}

/* True if masters share the slots of what the client's requests go to. */
static inline bool client_is_on_cluster(const struct client *client)
{
    return client->front->nodes.commons.upstream->is_cluster;
}

/* Bytes have passed, either way: the client is not idle. */
static inline void client_note_active(struct client *client)
{
    client->was_active = true;
    client->waited_for.active_mi = (uint32_t)(client->front->loop->now_ns >> ACTIVE_BITS);
}

/* True if a limit that binds the client is in that unit. */
static inline bool client_counts(const struct client *client, enum unit unit)
{
    return client->bound != NULL && client->bound->of_unit[unit] != 0;
}

/* True if rider.lane is the client's own, or is being opened for it. */
static inline bool client_has_own_lane(const struct client *client)
{
    return client->own_lane >= OWN_NEW;
}

/* True if its own lane is in whatever database, for one call. */
static inline bool client_is_urgent(const struct client *client)
{
    return client->own_lane >= OWN_URGENT_NEW;
}

/* True if the rules before the present ones bind the client: binding_renew has not been called since they changed. */
static inline bool client_has_old_rules(const struct client *client)
{
    return client->generation != client->front->generation;
}

/* The rules that bind the client. */
static inline struct rules *client_rules(const struct client *client)
{
    return client_has_old_rules(client) ? client->front->rules_before : client->front->rules;
}

/* Its handshake is done: its requests are taken from now on. */
void client_admit(struct client *client);

/* True if its PROXY header or its TLS handshake is not done. */
static inline bool client_is_shaking(const struct client *client)
{
    return client->state == CLIENT_SHAKING;
}

/* True if no request of its is taken any more. */
static inline bool client_is_leaving(const struct client *client)
{
    return client->state >= CLIENT_DRAINING;
}

/* True if weir has ended its side because it stops, and the client has not ended its own. */
static inline bool client_is_parted(const struct client *client)
{
    return client->output == OUTPUT_ENDED || client->output == OUTPUT_OVERDUE;
}

static inline bool client_is_closed(const struct client *client)
{
    return client->state == CLIENT_CLOSED;
}

/* To read only; never NULL. */
static inline const struct extra *client_extra(const struct client *client)
{
    static const struct extra nothing;
    return client->extra != NULL ? client->extra : &nothing;
}

/* The same; made when first needed. NULL: out of memory, and the client is closed. */
struct spread *client_need_spread(struct client *client);

/* True if messages may come to the client unasked: it has subscribed, on its own lane or, on a cluster, by taps. */
static inline bool client_is_subscribed(const struct client *client)
{
    const struct lane *lane = client_has_own_lane(client) ? client->rider.lane : NULL;
    return (lane != NULL && lane_is_subscribed(lane)) || client_extra(client)->n_subscribed > 0;
}

/* True if calls of its are in flight, on its own rider's lane or at places. */
static inline bool client_has_calls(const struct client *client)
{
    return client->rider.in_flight > 0 || spread_in_flight(client_extra(client)->spread) > 0;
}

/* To change; made when first needed. NULL: out of memory, and the client is closed. */
__attribute__((warn_unused_result)) struct extra *client_need_extra(struct client *client);

/* The same; NULL: out of memory, and the client goes on without. */
struct extra *client_want_extra(struct client *client);

/* No request is taken until client_resume has been called for this reason, and for all others. */
void client_wait(struct client *client, enum client_wait reason);

/* The client waits no longer for that, or never did: its link is woken, and its requests are taken if nothing else is waited for. */
void client_resume(struct client *client, enum client_wait reason);

/* As client_resume, in on_wake alone: requests are taken next. */
void client_resume_woken(struct client *client, enum client_wait reason);

/* Have its link woken once none of its calls is in flight; at once or never if none is. */
void client_want_idle(struct client *client);

/* Wait until all calls are answered: WAIT_REPLIES. */
void client_wait_for_replies(struct client *client);

/* True if the client waits for one of these, a set of enum client_wait. */
static inline bool client_waits_for(const struct client *client, unsigned reasons)
{
    return (client->waits & reasons) != 0;
}

/* ---- pins ---- */

static inline bool pin_has(const struct client *client, enum pin pin)
{
    return (client->pins & pin) != 0;
}

/* True if nothing that the client sends takes its lane from it. */
static inline bool pins_last(const struct client *client)
{
    return (client->pins & PINS_THAT_LAST) != 0;
}

/* Redis remembers this of the client on its lane from now on. */
void pin_add(struct client *client, enum pin pin);

/* Redis no longer does. Only of a pin that does not last. */
static inline void pin_end(struct client *client, enum pin pin)
{
    client->pins &= (uint16_t)~pin;
}

/* RESET: pins that do not last end. */
static inline void pins_reset(struct client *client)
{
    client->pins &= PINS_THAT_LAST;
}

/* The client has left its lane: all pins end. */
static inline void pins_end(struct client *client)
{
    client->pins = 0;
}

/* Do bytes of the client wait that are not a part of a request alone? */
static inline bool client_has_more(const struct client *client)
{
    const struct intake *in = client->intake;
    return in != NULL && (in->has_frame || in->scanned < in->filled);
}

/* Send bytes to the client. It is closed when what it has not read is more than output-limit. */
void client_output(struct client *client, const char *data, size_t n);

/*
 * Bytes that `source` has sent for the client, in their place among its replies: sent now, or kept
 * until their turn. `is_whole`: they end where a frame does. Of a client with extra.
 */
void client_output_from(struct client *client, struct reply_source *source, const char *data, size_t n, bool is_whole);

/* The same as an outlet (see replies_flush): false once it is closed. */
bool client_put_out(void *client, const char *data, size_t n);

/*
 * `more` bytes wait for the client besides its output and its replies: with all of them more than output-limit closes
 * it.
 */
void client_limit_unread(struct client *client, uint64_t more);

/*
 * More of a reply is kept by a hop or a compound: it counts as unread. The client may be closed.
 * client_note_kept_less: it is not kept any more. Of a client with extra.
 */
void client_note_kept(struct client *client, size_t n);
void client_note_kept_less(struct client *client, size_t n);

/* Does a call of the client's, the message that is being read, or the end of a raw lane come before it may leave? */
bool client_is_owed(const struct client *client);

/* weir's own reply, in its place: after all earlier calls, and inside no message. */
void client_answer(struct client *client, struct slice reply);

/* The same for the reply to what Redis has decided: nothing that was asked before it is left unanswered. */
void client_answer_now(struct client *client, struct slice reply);

/*
 * The reply to the client's next request comes from `source`, which is no lane: a compound's. Its position in the
 * client's
 * order begins here, and ends with client_answer_apart, which gives the whole reply; empty: none is heard. False: out
 * of memory, the client is closed. Not while a call of main's is in flight.
 */
__attribute__((warn_unused_result)) bool client_begin_apart(struct client *client, struct reply_source *source);
void client_answer_apart(struct client *client, struct reply_source *source, struct slice reply);

/*
 * What the client hears when a lane could not be opened: Redis' whole error reply, or weir's words. On the heap.
 * NULL: there is no text, or no memory.
 */
char *client_copy_refusal(enum lane_end end, struct slice reply);

/* Redis' error (extra.refusal), if there is one, has been told to the client. */
void client_forget_refusal(struct client *client);

/* Take no more requests; close when all is answered and sent. */
void client_leave(struct client *client);

/* The same, but nothing more is sent: close when Redis has carried out all that has been asked. */
void client_drop(struct client *client);

/* Nothing more is sent to the client, which reads no more. Its requests are still taken. */
void client_drop_output(struct client *client);

/*
 * Its next answer is lost, and none that comes later may stand in its place: close when what it has been told is
 * sent, at once if nothing is sent to it any more.
 */
void client_cut_for(struct client *client, enum ending_reason reason);

/*
 * The same because weir stops, for a client that nothing is owed: it reads the end of weir's side, and closes its own.
 */
void client_part(struct client *client);

/* One tick of the drain has passed, and the client has not closed its side: it is overdue once its output is sent. */
void client_note_kept_open(struct client *client);

/* client_part has come too late: what the client had sent by then is served. */
void client_return(struct client *client);

void client_close(struct client *client);

/* The same for a reason that is not the client's own. The first reason that is given counts. */
void client_leave_for(struct client *client, enum ending_reason reason);
void client_close_for(struct client *client, enum ending_reason reason);

/* Out of memory: the client is closed, counted and named in the log. Safe on one that is closed. */
void client_close_starved(struct client *client);

/* The client sends or reads much at a time: a private lane for HEAVY_NS, if there is memory to note that. */
void client_note_heavy(struct client *client);

/*
 * What has gathered for LIMIT TOP goes to the worker's table: once for each read, and before the
 * subject changes.
 */
void client_tell_top(struct client *client);

/* What has gathered goes there. What is refused next is refused by this limit. */
void client_change_refuser(struct client *client, const struct limit *limit);

/*
 * `n` requests of this command are about to be called on a lane that keeps (lane.keeps). Empty
 * `bytes`: they cannot be sent again. False: out of memory.
 */
__attribute__((warn_unused_result)) bool client_keep(struct client *client, const struct command *command,
                                                     struct slice bytes, uint32_t n);

/* No request that is under way is kept any more. */
void client_keep_nothing(struct client *client);

#endif
