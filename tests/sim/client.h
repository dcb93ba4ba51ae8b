/*
 * A simulated client: the requests it has sent, what it knows of its session, and whether it may
 * get each reply.
 *
 * Replies are judged in the order of the requests, and each reply updates the session. So the
 * expectation for the next reply is exact even after refusals. A client's own keys carry the
 * numbers of the client and of the connection; no other client writes these keys.
 */
#ifndef WEIR_SIM_CLIENT_H
#define WEIR_SIM_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "tests/sim/kernel.h"
#include "tests/sim/random.h"
#include "tests/sim/reply.h"

#define OWN_KEYS 8
#define DATABASES 2
#define USERS 4
#define LIMIT_KEYS 3
#define OWN_LIMITS 2
#define TOKEN_ROOM 64
#define EXPECTED_MAX 1024
#define QUEUED_MAX 512
#define SHARED_CHANNELS 4
#define CHANNEL_KINDS 3

struct op;

enum channel_kind_name { CHANNEL, PATTERN, SHARD };

/* One request: a row of ops.h and three numbers, with a meaning that the row defines. */
struct act {
    const struct op *op;
    uint32_t a, b, c;
    uint64_t read_ns; /* when weir had read the request; set when the reply comes */
    bool is_decided;  /* decided by weir's scripts: LIMIT, CL.THROTTLE */
};

struct expected {
    struct act act;
    uint64_t upto;    /* bytes sent on the connection up to the end of this request */
    unsigned pending; /* replies outstanding when the request was sent */
};

/* A list of numbered values. */
#define LIST_MAX 32
struct own_list {
    uint32_t items[LIST_MAX];
    unsigned n;
};

/* The client's own keys in one database. */
struct own {
    uint32_t values[OWN_KEYS]; /* 0: no such key */
    int64_t counters[OWN_KEYS];
    struct own_list lists[OWN_KEYS];
};

/* A value of one letter, repeated. */
struct large {
    size_t size; /* 0: no value */
    char letter;
};

/* What the client knows of its connection from all replies so far. */
struct session {
    bool is_resp3;
    bool is_in;    /* the client has logged in, or need not */
    bool is_named; /* the client has logged in with a name or a password */
    /* when it became a client without a login: by connecting or by RESET */
    uint64_t came_ns;
    bool in_multi, is_voided; /* is_voided: a queued command was refused */
    /* MULTI was refused, and the commands behind it get equal errors */
    bool is_unbegun;
    bool is_executing; /* the reply being judged is an element of EXEC's reply */
    /* is_touched: the client itself has written a key that it watches */
    bool is_watching, is_touched;
    uint8_t watched[DATABASES]; /* watched keys of its own, one bit each */
    unsigned user;              /* 0: default */
    unsigned database;
    uint64_t losses; /* run.losses when the session began */
    struct own own[DATABASES];
    bool is_subscribed[CHANNEL_KINDS][SHARED_CHANNELS];
    unsigned n_subscribed, n_sharded; /* channels and patterns; shard channels */
    struct expected queued[QUEUED_MAX];
    unsigned n_queued;
    bool has_been_silent; /* see ops_script.c */
    int64_t id;           /* CLIENT ID's answer; 0: not asked */
    uint32_t name;        /* 0: none */
    bool is_tracking;     /* CLIENT TRACKING is on */
    /* the client has sent CLIENT CACHING YES, or another client redirects invalidations to it */
    bool may_be_invalidated;
    bool has_redirected; /* another client gets the client's invalidations */
    /* the client watches keys that other clients may write */
    bool has_shared_watch;
    /* value that the client has read of the lock's key; -1: unknown */
    int64_t locked;
    /* a write that Redis replicates has been answered */
    bool has_set;
    bool has_queued_select, may_have_queued_select; /* weir does not know the client's database */
    char tokens[LIMIT_KEYS][TOKEN_ROOM];            /* the client's permits; empty: none */
    /* units used of the client's own limits: see limit_owner */
    uint32_t used[USERS][OWN_LIMITS];
    /* last value read of the counter that all clients share */
    int64_t last_counts[DATABASES];
    struct large large[DATABASES]; /* the client's large value */
    struct cell_key {
        uint32_t used;   /* units used of its own limit by CL.THROTTLE */
        uint64_t losses; /* run.losses when `used` was known; UINT64_MAX: unknown */
    } cells[USERS][DATABASES];
    /* units used of its key of the limit spare, plus one; 0: unknown */
    uint32_t spare_used[USERS];
    /* rates of its own keys of the named limits; 0: the limit's rate */
    uint32_t gate_rates[OWN_LIMITS];
    int64_t n_commands; /* number of commands that COMMAND has listed; 0: not asked */
};

/* True if the client is subscribed. In RESP2 it may then send only few commands. */
static inline bool is_subscriber(const struct session *session)
{
    return session->n_subscribed + session->n_sharded > 0;
}

/* An estimate of the session after all outstanding replies, which chooses what to send next. */
struct intent {
    bool is_in;
    bool in_multi;
    unsigned n_queued;
    unsigned subscribed; /* one bit for each channel, pattern and shard channel */
    bool is_resp3;
    bool is_leaving; /* sends no more requests, and may be closed */
    bool is_off;     /* sends no more requests, and disconnects once all output is sent */
};

struct client {
    struct party party;
    unsigned number;
    unsigned life;    /* number of connections so far */
    unsigned address; /* the client's subject for weir without a login: see listen_address.h */
    struct random chance;
    struct conn *conn; /* NULL: not connected */
    struct bytes in, out;
    struct reply_reader reader; /* state of the parser over `in` */
    /* offsets in `out`: sent up to out_head; the last request begins at `begun` */
    size_t out_head, begun;
    uint64_t sent;                          /* bytes sent before `out` */
    struct expected expected[EXPECTED_MAX]; /* a ring */
    unsigned first_expected, n_expected;
    struct session session;
    struct intent intent;
    uint32_t numbers;  /* number of values written, ever */
    uint64_t judged;   /* number of replies judged, ever */
    uint64_t acts_ns;  /* when the client next sends something */
    uint64_t reads_ns; /* the client reads nothing before this time */
    /* the client sends nothing before this time, except for follows and is_in_crowd */
    uint64_t quiet_ns;
    bool follows;     /* sends a script as soon as possible: see clients_follow */
    bool is_in_crowd; /* sends a login at once */
    bool sees_all;    /* has sent MONITOR */
    bool has_shut;    /* has half-closed its connection */
    /* the client has forged replies, or logged in where weir closes clients with equal logins */
    bool may_be_closed;
    bool is_lost; /* the client has sent something with unknown replies */
};

void clients_start(unsigned n);
void clients_leave(void); /* disconnects all clients, for good */
void clients_stop(void);

/* No client sends anything before `until_ns`. */
void clients_rest(uint64_t until_ns);

/* All clients log in at once, and send nothing else before `until_ns`. */
void clients_crowd(uint64_t until_ns);

/* Soon all other idle clients send a request that needs a private lane. */
void clients_follow(const struct client *leader);

/* Lets every client take its next step. */
void clients_wake(void);

/* Disconnects the clients with an unknown number of outstanding replies. */
void clients_leave_unheard(void);

/* One client sends one request. False: every client has sent all of its requests. */
bool clients_ask_one(void);

/* A client that still waits for a reply; NULL: none. */
const struct client *clients_waiting(void);

/* A connected client, chosen by `pick`; NULL: none is connected. */
struct client *client_picked(uint64_t pick);

/*
 * be_stranger: the client has no login again, as after connecting. is_doubtful: a change of the
 * password may be under way, so what the client may do is not known.
 */
void client_be_stranger(struct client *client);
bool client_is_doubtful(const struct client *client);

/* Disconnects. */
void client_hang_up(struct client *client, bool with_reset);

/* Half-closes the connection, even if a request is not sent in full. */
void client_shut(struct client *client);

/* ---- for the rows of ops.h ---- */

void say_begin(struct client *client, unsigned words);
void say_word(struct client *client, struct slice word);
void say_letters(struct client *client, char letter, size_t n); /* a word of one letter, n times */
__attribute__((format(printf, 2, 3))) void say_text(struct client *client, const char *format, ...);
/* Bytes without framing. */
void say_raw(struct client *client, const char *data, size_t n);
/* Notes that a reply to `act` will come. */
void expect(struct client *client, const struct act *act);

void say_key(struct client *client, char kind, uint32_t key);
void say_value(struct client *client, uint32_t number);
bool is_value(const struct client *client, uint32_t number, const struct reply *reply);

/* True if the bytes contain a value of another client's own keys. */
bool has_strange_mark(const struct client *client, struct slice bytes);

#endif
