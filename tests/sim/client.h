/*
 * A client: what it has asked, what it knows of its session, and whether each reply is one that it may see.
 *
 * Replies are judged in the order of the requests, and what the client knows changes with each: so whatever was refused
 * on the way, what it expects of the next is exact. Keys of its own carry its number and that of its connection; nobody
 * else writes there.
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

/* What a client does, in three numbers; what they mean is the row's. */
struct act {
    const struct op *op;
    uint32_t a, b, c;
    uint64_t read_ns; /* when weir had read it; set when it is answered */
    bool is_decided;  /* by weir's scripts: LIMIT, CL.THROTTLE */
};

struct expected {
    struct act act;
    uint64_t upto;    /* bytes of its connection, this request's included */
    unsigned pending; /* answers that it waited for when it said this */
};

/* A list of numbered values. */
#define LIST_MAX 32
struct own_list {
    uint32_t items[LIST_MAX];
    unsigned n;
};

/* What lies in one database under its own keys. */
struct own {
    uint32_t values[OWN_KEYS]; /* 0: no such key */
    int64_t counters[OWN_KEYS];
    struct own_list lists[OWN_KEYS];
};

/* One letter, so many times. */
struct large {
    size_t size; /* 0: there is none */
    char letter;
};

/* What it knows of its connection, of all that has been answered. */
struct session {
    bool is_resp3;
    bool is_in;                   /* it has logged in, or need not */
    bool is_named;                /* it has logged in with a name or a password */
    uint64_t came_ns;             /* as a stranger: by connecting or by RESET */
    bool in_multi, is_voided;     /* one queued command was refused */
    bool is_unbegun;              /* MULTI was refused, and so is what follows, in the same words */
    bool is_executing;            /* what is judged is an answer of EXEC's */
    bool is_watching, is_touched; /* what it watches it has written itself */
    uint8_t watched[DATABASES];   /* its own values, a bit for each */
    unsigned user;                /* 0: default */
    unsigned database;
    uint64_t losses; /* run.losses when it began */
    struct own own[DATABASES];
    bool is_subscribed[CHANNEL_KINDS][SHARED_CHANNELS];
    unsigned n_subscribed, n_sharded; /* channels and patterns; shards */
    struct expected queued[QUEUED_MAX];
    unsigned n_queued;
    bool has_been_silent;    /* see ops_script.c */
    int64_t id;              /* CLIENT ID's answer; 0: not asked */
    uint32_t name;           /* 0: none */
    bool is_tracking;        /* CLIENT TRACKING */
    bool may_be_invalidated; /* it has said CLIENT CACHING YES, or another has it told what that one tracks */
    bool has_redirected;     /* another is told what it tracks */
    bool has_shared_watch;   /* what it watches others may write */
    int64_t locked;          /* what it has read there; -1: not known */
    bool has_set;            /* a write that replicas are sent has been answered */
    bool has_queued_select, may_have_queued_select; /* weir does not know its database */
    char tokens[LIMIT_KEYS][TOKEN_ROOM];            /* of places that it holds; empty: none */
    uint32_t used[USERS][OWN_LIMITS];               /* of its own limits: see limit_owner */
    int64_t last_counts[DATABASES];                 /* of the counter that all share */
    struct large large[DATABASES];                  /* its large value */
    struct cell_key {
        uint32_t used;   /* of its own limit by CL.THROTTLE */
        uint64_t losses; /* run.losses when that was known; UINT64_MAX: it is not */
    } cells[USERS][DATABASES];
    uint32_t spare_used[USERS];      /* of its key of the limit spare, and one more; 0: not known */
    uint32_t gate_rates[OWN_LIMITS]; /* of its own keys of the named limits; 0: the limit's */
    int64_t n_commands;              /* that COMMAND has told of; 0: not asked */
};

/* It hears what is said somewhere, and in RESP2 may say little. */
static inline bool is_subscriber(const struct session *session)
{
    return session->n_subscribed + session->n_sharded > 0;
}

/* The same as it will be once all that it has said is answered, as far as can be told: chooses what to say next. */
struct intent {
    bool is_in;
    bool in_multi;
    unsigned n_queued;
    unsigned subscribed; /* a bit for each channel, pattern, shard */
    bool is_resp3;
    bool is_leaving; /* says no more, and may be closed */
    bool is_off;     /* says no more, and hangs up when it has said all */
};

struct client {
    struct party party;
    unsigned number;
    unsigned life;    /* connections so far */
    unsigned address; /* who it is to weir, unless it logs in: see entrance.h */
    struct random chance;
    struct conn *conn; /* NULL: none */
    struct bytes in, out;
    struct reply_reader reader;             /* of what is in `in` */
    size_t out_head, begun;                 /* of `out`: what is sent ends there; the last request begins there */
    uint64_t sent;                          /* bytes, before `out` */
    struct expected expected[EXPECTED_MAX]; /* a ring */
    unsigned first_expected, n_expected;
    struct session session;
    struct intent intent;
    uint32_t numbers;   /* of values, ever */
    uint64_t judged;    /* replies, ever */
    uint64_t acts_ns;   /* when it does something next */
    uint64_t reads_ns;  /* it reads nothing before */
    uint64_t quiet_ns;  /* it says nothing before, but for ... */
    bool follows;       /* a script, as soon as it may: see clients_follow */
    bool is_in_crowd;   /* ... a login, at once */
    bool sees_all;      /* it has asked what everybody says */
    bool has_shut;      /* its side of the connection */
    bool may_be_closed; /* it has forged, or logged in where weir closes who cannot be told apart */
    bool is_lost;       /* it has said what may be answered with anything */
};

void clients_start(unsigned n);
void clients_leave(void); /* all of them, for good */
void clients_stop(void);

/* Nobody says anything before. */
void clients_rest(uint64_t until_ns);

/* All log in at once, and say nothing else before. */
void clients_crowd(uint64_t until_ns);

/* Soon all others that wait for nothing ask for what needs a connection of their own. */
void clients_follow(const struct client *leader);

/* All of them have something to do. */
void clients_wake(void);

/* Those go of whom nobody knows what they wait for. */
void clients_leave_unheard(void);

/* One of them asks one thing. False: all has been asked. */
bool clients_ask_one(void);

/* Somebody still waits for an answer; NULL: nobody. */
const struct client *clients_waiting(void);

/* One that is connected, `pick` says which; NULL: none is. */
struct client *client_picked(uint64_t pick);

/* It is a stranger again, as when it comes; what it may do then, a change of the password may be on the way to change. */
void client_be_stranger(struct client *client);
bool client_is_doubtful(const struct client *client);

/* It leaves. */
void client_hang_up(struct client *client, bool with_reset);

/* It says no more, whatever it was about to say. */
void client_shut(struct client *client);

/* ---- for the rows of ops.h ---- */

void say_begin(struct client *client, unsigned words);
void say_word(struct client *client, struct slice word);
void say_letters(struct client *client, char letter, size_t n); /* a word of one letter, so many times */
__attribute__((format(printf, 2, 3))) void say_text(struct client *client, const char *format, ...);
/* As it is. */
void say_raw(struct client *client, const char *data, size_t n);
/* An answer to `act` will come. */
void expect(struct client *client, const struct act *act);

void say_key(struct client *client, char kind, uint32_t key);
void say_value(struct client *client, uint32_t number);
bool is_value(const struct client *client, uint32_t number, const struct reply *reply);

/* Is a value of somebody else's own keys in it? */
bool has_strange_mark(const struct client *client, struct slice bytes);

#endif
