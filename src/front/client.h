/*
 * A client, from accept to close: its connection, the requests it has sent and not yet had taken, the replies it waits
 * for.
 *
 * Requests are taken one at a time and in order; while the next one cannot go yet (a lane is not ready, an answer must
 * come first) the client is held: its bytes wait in `intake`, reading stops when that is full, and whatever it waits
 * for wakes its link.
 */
#ifndef WEIR_FRONT_CLIENT_H
#define WEIR_FRONT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/chain.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log_site.h"
#include "base/slice.h"
#include "front/front.h"
#include "front/intake.h"
#include "front/queued.h"
#include "front/replies.h"
#include "front/reply_mode.h"
#include "front/transaction.h"
#include "limit/ip.h"
#include "net/link.h"
#include "resp/scan.h"
#include "upstream/lane.h"

/* A request of more bytes than this is not gathered first: it streams to a private lane as it comes. */
#define LARGE_REQUEST 65536
/*
 * Unanswered request bytes of one client on a shared lane, beyond which it gets its own: Redis reads its connections in
 * turns of 16 KiB, and so a flood on one of them holds nobody else up.
 */
#define SHARED_BYTES_MAX 32768
#define SHARED_CALLS_FEW 16 /* unanswered calls that are no flood, however long it goes on */
#define HEAVY_NS (10 * NS_PER_S)

/* A request that is too large to gather, on its way. */
struct passage {
    struct request_scan scan;
    uint8_t counted; /* as the request's */
    bool is_refused; /* its bytes are thrown away */
    bool is_skipped; /* CLIENT REPLY SKIP came just before */
};

/* What is done for a client that has ended its side while a command of its may block. */
struct ending {
    struct probe probe;
    struct client *client;
};

/* Where a client speaks from; ip has family 0 on a unix socket. */
struct client_address {
    struct ip ip;
    uint16_t port;
};

/* What few clients ever need: made when one first does, so that the many idle ones stay small. */
struct extra {
    struct passage *passage; /* NULL: no large request is passing */
    struct replies replies;  /* not idle: weir's own are among those of its lane ... */
    struct reply_source own; /* ... which is this source */
    struct ending *ending;   /* NULL: none */
    char *refusal;           /* what Redis said when a lane for it could not be opened; NULL: nothing */
    struct order *order;     /* that it waits for; NULL: none */
    struct list asked;       /* struct decision: what Redis decides for it */
    uint32_t n_asked;
    uint64_t heavy_until_ns; /* takes much at a time: has a lane of its own until then; 0: not */
    struct gather *gather;   /* NULL: replies are passed on as they come */
    struct queued queued;
    struct login_step *login;    /* what it waits for at the door; NULL: nothing */
    struct lease kept;           /* on the private lane that it had last */
    struct proxy_header *header; /* being read; NULL: none, or it is whole */
    bool is_announced;           /* by that header: */
    struct client_address announced;
};

/* What is known of the size of the values that a client reads: nothing, soon something, they are not huge. */
enum reader { READER_NEW, READER_ASKS, READER_KNOWN };

struct session;
struct proxy_header;
struct gather;
struct login_step;
struct meter;

/* Of one client, for front/timeouts.h. */
struct waited_for {
    struct list in_list; /* timeouts.handshakes or timeouts.unfinished */
    uint32_t since_ms;   /* there; it wraps, so that only differences say anything */
    uint32_t looked_ms;  /* the same: when it was looked at; front->clients is in this order */
};

struct client {
    struct link link;
    struct rider rider;
    struct front *front;
    struct list in_front;
    struct waited_for waited_for;
    struct intake *intake;      /* NULL: nothing is waiting */
    struct extra *extra;        /* NULL: it has needed nothing of that yet; see client_extra */
    struct session *session;    /* NULL: nothing but the address is known */
    struct subject *subject;    /* never NULL from admission to close */
    const struct policy *bound; /* NULL: unlimited */
    struct meter *meter;        /* NULL: its limits need none */
    struct lease shared;        /* on the lane of its session */
    uint32_t epoch;             /* in which it came; see node_epoch */
    uint32_t n_commands;        /* for LIMIT TOP, since it was told last */
    uint32_t n_refused;
    uint32_t n_bytes;
    uint32_t n_broken;      /* commons.n_broken when wrote_elsewhere began */
    uint16_t greeted_bytes; /* sent before its first command that is not of class control */
    uint8_t silent_looks;   /* since bytes passed last, either way: see front/timeouts.c ... */
    uint8_t holds;          /* HOLD_*: why its private lane is still needed */
    struct reply_mode reply_mode;
    struct transaction transaction;
    uint8_t entrance;          /* its number, see client_entrance */
    uint8_t reason;            /* enum ending_reason: why it is leaving */
    bool was_active : 1;       /* ... or since the last look */
    uint8_t reader : 2;        /* enum reader: what it has read on shared lanes */
    bool wrote_elsewhere : 1;  /* it may have written on another lane than the one that it has now */
    bool is_unproven : 1;      /* ... and has asked WAIT of this one all the same */
    bool wrote_here : 1;       /* it may have written on its own lane */
    bool is_urgent : 1;        /* its own lane is in whatever database: for one call */
    bool has_private_lane : 1; /* rider.lane is its own, or is being opened */
    bool is_dressed : 1;       /* its own lane bears its name, or the one that is kept for it */
    bool is_lane_new : 1;      /* its own lane was lent to it just now, and has had no request of its yet */
    uint8_t hopes : 3;         /* how often it has waited for a lane that somebody else only keeps */
    bool wants_new_lane : 1;   /* the lane it was to get had had another owner, and was not clean */
    bool was_refused : 1;      /* the lane it waited for could not be opened */
    bool is_stalled : 1;       /* nothing is read or taken: it holds too much memory, see front/memory_pressure.h */
    bool is_held : 1;          /* no request is taken until an answer has come */
    bool is_leaving : 1;       /* nothing more is taken; closed when all is answered and sent */
    bool is_eof : 1;
    bool is_announcing : 1; /* the header that says who it is has not come whole: see front/proxied.h */
    bool is_raw : 1;
    bool overflows : 1;        /* it shares a subject until there is room for its own */
    bool is_keyed : 1;         /* the key of a command may say whose limits bind it */
    bool counts_bytes_out : 1; /* its policy has limits on them */
    bool counts_calls : 1;     /* and on calls in flight */
    bool is_fresh : 1;         /* has come, or its handshake has ended, since weir looked who may be let go */
    bool is_parted : 1;        /* has been told that nothing more will come; it may go by itself ... */
    bool is_overdue : 1;       /* ... and has not, for a while */
};

/* What is done by parts above the client: front.client_ops, given at the start. */
struct client_ops {
    /* Who is closed, and why, for the log. */
    void (*log_closed)(const struct client *client, enum log_site site, const char *why);
    /* A reply of weir's own, behind what Redis is still to decide for it (client_extra()->n_asked > 0). */
    void (*answer_behind)(struct client *client, struct slice reply);
    /* Nothing more is taken from it: its connection ends once all is answered. */
    void (*on_leaving)(struct client *client);
    /* It has just been closed: each part gives back what it holds for it. */
    void (*on_close)(struct client *client);
};

static inline const struct entrance *client_entrance(const struct client *client)
{
    return client->front->entrances[client->entrance];
}

/* To look at; never NULL. */
static inline const struct extra *client_extra(const struct client *client)
{
    static const struct extra nothing;
    return client->extra != NULL ? client->extra : &nothing;
}

/* To change. NULL: there was no memory, and the client is closed. */
__attribute__((warn_unused_result)) struct extra *client_need_extra(struct client *client);

/* The same; out of memory it goes on. */
struct extra *client_want_extra(struct client *client);

/* No request is taken until an answer has come. And it has: what waits is taken at the end of the turn. */
void client_hold(struct client *client);
void client_go_on(struct client *client);

/* Where it comes from: as its proxy has announced, or else its peer. */
struct client_address client_address(const struct client *client);

/* Has it sent bytes that wait? */
static inline bool client_has_more(const struct client *client)
{
    const struct intake *in = client->intake;
    return in != NULL && (in->has_frame || in->scanned < in->filled);
}

/* Output of any kind; may close the client when it is more than output-limit. */
void client_output(struct client *client, const char *data, size_t n);

/* The same as an outlet (see replies_flush): false once it is closed. */
bool client_put_out(void *client, const char *data, size_t n);

/* `more` bytes are waiting for it besides its output: it is closed if all is more than output-limit. */
void client_limit_unread(struct client *client, uint64_t more);

/* Is there something that it has to hear before it leaves? */
bool client_is_owed(const struct client *client);

/* weir's own reply, in its place: after all earlier calls, and inside no message. */
void client_answer(struct client *client, struct slice reply);

/* The same for the reply to what Redis has decided: nothing that was asked before it is left unanswered. */
void client_answer_now(struct client *client, struct slice reply);

/* What it has queued since MULTI will not be carried out, or has been. */
void client_forget_queued(struct client *client);

/* What Redis said against it, if it did, has been told. */
void client_forget_refusal(struct client *client);

/* Take nothing more; close when everything is answered and sent. */
void client_leave(struct client *client);

/* The same for one that nothing is owed, because weir stops; closed when it closes. */
void client_part(struct client *client);

void client_close(struct client *client);

/* The same for a reason that is not the client's own. The first reason that is given counts. */
void client_leave_for(struct client *client, enum ending_reason reason);
void client_close_for(struct client *client, enum ending_reason reason);
bool client_is_closed(const struct client *client);

/* What it needs to go on the system has no memory for: closed, counted and told of. Safe on one that is closed. */
void client_close_starved(struct client *client);

/* It takes much at a time: for a while it has a lane of its own, if there is memory to note that. */
void client_note_heavy(struct client *client);

#endif
