/*
 * A run: its numbers, all drawn from the seed, and what it comes to.
 */
#ifndef WEIR_SIM_RUN_H
#define WEIR_SIM_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/kernel.h"
#include "tests/sim/limits.h"
#include "tests/sim/memory.h"
#include "tests/sim/redis.h"

enum run_phase {
    RUN_ACTS,    /* clients do as they like, and things go wrong */
    RUN_SETTLES, /* nothing goes wrong any more, clients only wait for what they have asked */
    RUN_STOPS,   /* weir is told to stop */
};

/* Who may give orders. */
enum operators { OPERATORS_NONE, OPERATORS_ALL, OPERATORS_USER };
#define OPERATOR 1 /* the user */

#define PLAN_CONFIG 4096
#define PASSWORD "open sesame"        /* Redis' own, where it wants one */
#define OTHER_PASSWORD "close sesame" /* and the one that it may come to want */
#define PASSWORD_PATH "/proc/self/fd/901"

#define REGIMES_MAX 3

/* A configuration of weir. */
struct regime {
    char config[PLAN_CONFIG];
    struct planned_limits limits;
};

/* What the seed has chosen. */
struct plan {
    uint64_t seed;
    uint64_t steps; /* of clients' commands, before it settles */
    unsigned clients;
    unsigned workers;
    unsigned pipeline; /* commands of a client at once, at most */
    uint64_t think_ns; /* of a client between two of these, at most */
    uint64_t tick_ns, turn_ns, command_ns;
    unsigned redis_turn;
    uint64_t fault_ns;        /* between two faults, at most; 0: nothing goes wrong */
    uint64_t fault_steps;     /* the same in steps of the world */
    bool stops_amid;          /* of what clients do */
    bool stops_at_once;       /* SIGINT, not SIGTERM */
    bool has_password;        /* Redis wants one, of everybody */
    bool knows_password;      /* weir does */
    bool may_change_password; /* Redis, that wants one or none */
    bool has_slow;            /* scripts that take time */
    bool has_huge;            /* values that all clients read, and leave unread for seconds */
    bool has_user_keys;       /* each user's LIMIT keys are its own */
    bool gives_back; /* clients reset, credit and ban: for which weir forgets whatever it remembers of refusals */
    bool has_limits;
    enum operators operators; /* if any, what they change binds others too */
    bool may_close;           /* a client that does nothing wrong, or refuse it a connection */
    bool may_mix;             /* there is not room for all subjects: some share funnels now and then */
    bool identifies;          /* weir knows clients by other than user and address: no law is about that */
    bool may_refuse;          /* by a limit that is not among the next */
    struct planned_limits limits;
    struct regime others[REGIMES_MAX - 1]; /* that a reload may bring, besides config and limits */
    unsigned n_regimes;                    /* with that one */
    uint32_t named; /* limits: a bit for each of named_limit_lines, the same in all configurations */
    bool has_operator;
    bool has_name;      /* the upstream is a name: moves.h */
    unsigned masters;   /* of a cluster: see masters.h; 0: there is none */
    bool has_pairs;     /* then clients say commands with several keys of one slot */
    unsigned servers;   /* a master and its replicas: see deployment.h; 0: one server */
    bool has_sentinels; /* that tell which of them is the master */
    bool has_reads;     /* from replicas */
    bool is_pure;       /* and nothing else goes wrong around weir */
    bool has_aborts;    /* see aborts.h */
    bool has_hangs;     /* of Redis, in such a run, and weir has an upstream-timeout */
    bool has_free;      /* FREE_ADDRESS is bound by no limit */
    unsigned entrances; /* see entrance.h */
    uint32_t inflight;  /* calls of one connection that may be under way; 0: any number */
    uint32_t value_max; /* bytes */
    struct planned_memory memory;
    struct odds odds;
    struct redis_config redis;
    char config[PLAN_CONFIG];
};

struct run {
    struct plan plan;
    enum run_phase phase;
    uint64_t commands; /* that clients have said */
    uint64_t replies;  /* that have been judged */
    uint64_t faults;
    uint32_t oldest, newest; /* versions of Redis that there have been */
    uint64_t losses;         /* times that Redis has lost its data */
    uint64_t passwords;      /* times that it has changed its own: the odd ones are the other one */
    uint64_t clock_steps;    /* times that its date has jumped */
    uint64_t changed_ns;     /* when either was last */
    uint64_t settle_ns;      /* when it began to, or somebody has asked something since */
    uint64_t stop_ns;        /* when weir was told to */
    uint64_t calm_ns;        /* when nobody waited for anything any more; 0: somebody does */
    bool is_calm;            /* nothing is under way but what one client asks */
    bool is_faultless;       /* nothing that could close a connection has happened yet, but refusals of memory */
};

extern struct run run;

/* Nothing has been short so far that weir needs to serve a client. */
static inline bool run_is_whole(void)
{
    return run.is_faultless && !memory_was_short();
}

void plan_make(struct plan *plan, uint64_t seed, uint64_t steps);

/* In that way weir is to be refused memory. */
void plan_refuse(struct plan *plan, const struct planned_memory *memory);

/* Before the first: what the C library, weir and the model of Redis make once and keep for good. */
void run_prepare(void);

/* Returns the exit status. */
int run_all(const struct plan *plan);

/*
 * What a run came to, told to the process that started it. Empty and 0 at the start; a run that crashes leaves both.
 * The blame is one line without numbers, so that a shorter run can be compared.
 */
#define BLAME_ROOM 256
struct outcome {
    char blame[BLAME_ROOM]; /* empty: nothing failed */
    uint64_t digest;        /* of the whole trace */
    uint64_t commands;      /* of clients */
};
void run_share_outcome(struct outcome *out);

/* Before run_fail. */
void run_blame(const char *what, const char *why);

/* Somebody has seen what may not be: said with the seed and the last events, and the process ends. */
__attribute__((format(printf, 2, 3), noreturn)) void run_fail(unsigned conn, const char *format, ...);

/* Redis is of the plan's version now. */
void run_note_version(void);

#endif
