/* A run: its plan, drawn from the seed, and its result. */
#ifndef WEIR_SIM_RUN_H
#define WEIR_SIM_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/kernel.h"
#include "tests/sim/limits.h"
#include "tests/sim/memory.h"
#include "tests/sim/redis.h"

enum run_phase {
    RUN_ACTS,    /* clients send requests and faults strike */
    RUN_SETTLES, /* no more faults; clients only wait for replies */
    RUN_STOPS,   /* weir was told to stop */
};

/* The clients with admin rights. */
enum operators { OPERATORS_NONE, OPERATORS_ALL, OPERATORS_USER };
#define OPERATOR 1 /* the user with admin rights */

#define PLAN_CONFIG 4096
#define PASSWORD "open sesame"        /* of Redis' default user, where one is required */
#define OTHER_PASSWORD "close sesame" /* the other password that Redis may require */
#define PASSWORD_PATH "/proc/self/fd/901"

#define REGIMES_MAX 3

/* A configuration of weir. */
struct regime {
    char config[PLAN_CONFIG];
    struct planned_limits limits;
};

/* The choices of the seed. */
struct plan {
    uint64_t seed;
    uint64_t steps; /* commands of clients before the run settles */
    unsigned clients;
    unsigned workers;
    unsigned pipeline; /* most commands of a client at once */
    uint64_t think_ns; /* longest pause of a client between two bursts */
    uint64_t tick_ns, turn_ns, command_ns;
    unsigned redis_turn;
    uint64_t fault_ns;        /* longest time between two faults; 0: no faults */
    uint64_t fault_steps;     /* most steps of the world between two faults */
    bool stops_amid;          /* the stop comes while clients are active */
    bool stops_at_once;       /* by SIGINT instead of SIGTERM */
    bool has_password;        /* Redis requires a password */
    bool knows_password;      /* weir knows the password */
    bool may_change_password; /* Redis' password may be set or removed */
    bool has_slow;            /* scripts that take time */
    bool has_huge;            /* values that all clients read, and leave unread for seconds */
    bool has_user_keys;       /* each user has LIMIT keys of its own */
    /* clients use RESET, CREDIT and BAN, after which weir forgets remembered refusals */
    bool gives_back;
    bool has_limits;
    enum operators operators; /* changes by operators bind other clients too */
    bool may_close;           /* weir may close or refuse a client that does nothing wrong */
    bool may_mix;             /* there is no room for all subjects, so some share funnels */
    /* weir identifies clients by more than user and address; limits are not judged then */
    bool identifies;
    bool may_refuse; /* weir may refuse by a limit that is not in `limits` */
    struct planned_limits limits;
    /* configurations for reloads, besides config and limits */
    struct regime others[REGIMES_MAX - 1];
    unsigned n_regimes; /* number of configurations, including the first */
    /* named limits: a bit for each of named_limit_lines, equal in all configurations */
    uint32_t named;
    bool has_operator;
    bool has_name;      /* the upstream is a name: moves.h */
    unsigned masters;   /* of a cluster: see masters.h; 0: no cluster */
    bool has_pairs;     /* clients of a cluster send commands with several keys of one slot */
    unsigned servers;   /* a master and its replicas: see deployment.h; 0: one server */
    bool has_sentinels; /* sentinels tell which server is the master */
    bool has_reads;     /* reads go to replicas */
    bool is_pure;       /* only servers fail */
    bool has_aborts;    /* see aborts.h */
    bool has_hangs;     /* Redis hangs in a run with aborts, and weir has an upstream-timeout */
    bool has_free;      /* FREE_ADDRESS is bound by no limit */
    unsigned entrances; /* bits: see listen_address.h */
    uint32_t inflight;  /* most calls of one connection in flight; 0: any number */
    uint32_t value_max; /* bytes */
    struct planned_memory memory;
    struct odds odds;
    struct redis_config redis;
    char config[PLAN_CONFIG];
};

struct run {
    struct plan plan;
    enum run_phase phase;
    uint64_t commands; /* sent by clients */
    uint64_t replies;  /* judged */
    uint64_t faults;
    uint32_t oldest, newest; /* versions of Redis so far */
    uint64_t losses;         /* how often Redis has lost its data */
    /* how often Redis has changed its password: odd numbers mean OTHER_PASSWORD */
    uint64_t passwords;
    uint64_t clock_steps; /* how often Redis' clock has jumped */
    uint64_t changed_ns;  /* time of the last loss or clock step */
    /* start of the current wait for replies: when settling began, or the last request was sent */
    uint64_t settle_ns;
    uint64_t stop_ns; /* when weir was told to stop */
    uint64_t calm_ns; /* when no reply was outstanding for the first time; 0: not yet */
    bool is_calm;     /* nothing is in flight but one request */
    /* nothing that may close a connection has happened yet, apart from refusals of memory */
    bool is_faultless;
};

extern struct run run;

/* True if weir has had all that it needs to serve clients so far. */
static inline bool run_is_whole(void)
{
    return run.is_faultless && !memory_was_short();
}

void plan_make(struct plan *plan, uint64_t seed, uint64_t steps);

/* Plans refusals of memory. */
void plan_refuse(struct plan *plan, const struct planned_memory *memory);

/*
 * Creates what the C library, weir and the model of Redis create once and keep. To be called before
 * the first run.
 */
void run_prepare(void);

/* Returns the exit status. */
int run_all(const struct plan *plan);

/*
 * The result of a run, for the process that started it. Empty and 0 at the start; a run that
 * crashes leaves both. The blame is one line without numbers, comparable with that of a shorter
 * run.
 */
#define BLAME_ROOM 256
struct outcome {
    char blame[BLAME_ROOM]; /* empty: nothing failed */
    uint64_t digest;        /* of the whole trace */
    uint64_t commands;      /* of clients */
};
void run_share_outcome(struct outcome *out);

/* Sets the blame. Before run_fail. */
void run_blame(const char *what, const char *why);

/* A law is broken: prints the seed and the last events, and ends the process. */
__attribute__((format(printf, 2, 3), noreturn)) void run_fail(unsigned conn, const char *format,
                                                              ...);

/* Notes that Redis has the plan's version now. */
void run_note_version(void);

#endif
