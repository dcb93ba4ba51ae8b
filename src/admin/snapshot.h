/*
 * The state of weir at one moment, for operators, and the history of these states. A snapshot is
 * collected once a second, then immutable.
 *
 * Snapshots are reference-counted, and any thread may read them. Texts are NUL-terminated. Only
 * `tops`, `events` and names of subjects contain text from clients.
 */
#ifndef WEIR_ADMIN_SNAPSHOT_H
#define WEIR_ADMIN_SNAPSHOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"
#include "limit/figures/counts.h"
#include "limit/figures/journal.h"
#include "limit/figures/top.h"
#include "limit/policy/limit.h"
#include "quota/named.h"
#include "upstream/lane/lane_state.h"

/* ---- the history ---- */

/*
 * The history: one point for every two seconds of the last five minutes, for the process and for
 * each limit.
 *
 * Counters are totals, from which a page that was just opened cannot compute rates. The main thread
 * therefore records every snapshot in a history. Each snapshot gets its rates and a copy of all
 * points, so that readers need no lock. A copy takes 15 KB, and 1.2 KB for each limit.
 */
#define HISTORY_POINTS 150
#define HISTORY_STEP_S 2
#define HISTORY_LIMITS 256 /* only the first limits have points (chosen) */
/*
 * seconds for which a limit keeps a state, for example "refusing", after the state's last cause
 * (chosen)
 */
#define HISTORY_HOLD_S 10

struct snapshot;

/* The series of the process. */
enum series {
    SERIES_COMMANDS, /* all commands per second; the series before SERIES_RATES are rates */
    SERIES_REFUSED,  /* commands refused by limits and blocks */
    SERIES_BLOCKED,  /* commands refused by blocks */
    SERIES_DELAYED,
    SERIES_SHADOWED,
    SERIES_ERRORS,       /* error replies of weir: upstream away, unknown command ... */
    SERIES_REDIS_ERRORS, /* error replies of Redis */
    SERIES_BYTES_IN,     /* from clients */
    SERIES_BYTES_OUT,
    SERIES_RATES,                      /* number of series that are rates */
    SERIES_CONNECTIONS = SERIES_RATES, /* clients at the moment of the point */
    /* requests sent to Redis and not answered yet, at the moment of the point */
    SERIES_IN_FLIGHT,
    /* seconds, over the commands since the previous point, without limits' delays; 0: no command */
    SERIES_LATENCY_P50,
    SERIES_LATENCY_P99,
    /* quantiles of times.upstream over the commands since the previous point */
    SERIES_UPSTREAM_P50,
    SERIES_UPSTREAM_P99,
    SERIES_DELAY_P50, /* quantiles of times.delay */
    SERIES_DELAY_P99,
    SERIES_OVERHEAD_P50, /* quantiles of times.overhead */
    SERIES_OVERHEAD_P99,
    SERIES_WAIT_P50, /* quantiles of times.share: the wait for a fair share */
    SERIES_WAIT_P99,
    SERIES_ITERATION_P99, /* 99th percentile of the iterations of the workers' loops */
    SERIES_COUNT
};

/* The states of a limit. If several states apply, the limit has the last of these states. */
enum limit_state {
    LIMIT_CALM,
    LIMIT_NEAR,
    LIMIT_SHADOWING,
    LIMIT_DELAYING,
    LIMIT_REFUSING,
    LIMIT_STATES
};

/* Totals of a limit's decisions over all workers. */
struct decided {
    uint64_t admitted, delayed, refused, shadowed;
};

/* The points of one limit. */
struct track {
    uint16_t id;             /* limit.id */
    struct decided seen;     /* totals at the last history_note */
    struct decided at_point; /* totals at the last point */
    /* end of each state, monotonic ns; 0: the state never applied */
    uint64_t until_ns[LIMIT_STATES];
    float allowed[HISTORY_POINTS]; /* per second, in the limit's unit */
    float over[HISTORY_POINTS];    /* per second: delayed, refused or shadowed */
};

/* Each array of points uses its last n elements. The newest point is the last element. */
struct history {
    uint64_t last;               /* number of the newest point, from 1; 0: no point yet */
    size_t n;                    /* number of points */
    uint64_t last_ns;            /* time of the newest point */
    double totals[SERIES_RATES]; /* counters at the newest point */
    struct times times;
    struct histo iterations;
    uint64_t blocked;          /* snapshot.blocked_commands at the last history_note */
    uint64_t blocked_until_ns; /* blocks count as active until this time */
    float points[SERIES_COUNT][HISTORY_POINTS];
    size_t n_limits; /* tracks[i] belongs to limit i of the snapshot */
    struct track *tracks;
};

struct history *history_new(void);
void history_free(struct history *history);

/*
 * Records a new snapshot. Sets the snapshot's rates and the states of its limits, takes a point
 * every HISTORY_STEP_S, and gives the snapshot a copy of the history. False if out of memory.
 */
__attribute__((warn_unused_result)) bool history_note(struct history *history,
                                                      struct snapshot *snapshot);

/* Returns the newest value, 0 if there is none. */
double history_now(const struct history *history, enum series series);

/* Names in the JSON: "commands_per_second" ...; "ok", "near", "shadowing" ... */
const char *series_name(enum series series);
const char *limit_state_name(enum limit_state state);

/* ---- the snapshot ---- */

#define SNAPSHOT_TOP 20
#define SNAPSHOT_EVENTS 50
#define SNAPSHOT_TEXT 512
#define SNAPSHOT_RULE (LIMIT_LABEL_MAX + 8)

#define SNAPSHOT_HOLDERS 5
#define SNAPSHOT_OWNS 100

/* One of the subjects with most usage of a limit. */
struct snapshot_holder {
    const struct top_entry *row; /* in snapshot.tops */
    double used;                 /* the subject's usage of the limit, 0 to 1 */
};

/* A line that an operator has set for one subject. */
struct snapshot_own {
    uint16_t id; /* id of the limit; the policy's own line has the same id */
    char rule[SNAPSHOT_RULE];
    char subject[SUBJECT_NAME_MAX + 1];
    char amount[LIMIT_RATE_MAX];
    char action[24];
    uint64_t until_ns; /* monotonic; 0: until revoked */
};

struct snapshot_limit {
    char rule[SNAPSHOT_RULE]; /* for example "free/write" or "free/write#2"; unique */
    char policy[33];
    char amount[LIMIT_RATE_MAX]; /* for example "1000/s" */
    char unit[24], scope[24], action[24];
    bool is_shadow;
    /*
     * the policy itself has no such limit, only lines of single subjects (snapshot.owns); the limit
     * has no rate
     */
    bool is_only_own;
    double per_s; /* units per second; 0: a gauge, or `deny` */
    uint64_t burst;
    uint64_t admitted, delayed, refused, shadowed, near;
    uint64_t subjects; /* subjects of the policy in the table */
    uint16_t id;       /* limit.id */
    /*
     * usage, 0 to 1: the highest usage of a known subject (run/stats_collector_limits.c), or the
     * current rate divided by the limit's rate (set_use in snapshot.c)
     */
    double used;
    char fullest[SUBJECT_NAME_MAX + 1]; /* the subject with most usage; "": none */
    /* for a limit `per subject`: the subjects with most usage, in descending order */
    struct snapshot_holder holders[SNAPSHOT_HOLDERS];
    size_t n_holders;

    /* ---- set by history_note, for the first HISTORY_LIMITS limits ---- */
    double allowed_per_s, over_per_s;
    enum limit_state state;
};

/*
 * True if the current rate shows the usage of a limit. False if the burst is worth more than 5 s of
 * the rate.
 */
static inline bool snapshot_rate_is_fast(double per_s, uint64_t burst)
{
    return per_s > 0 && (double)burst <= 5 * per_s;
}

static inline bool snapshot_limit_is_fast(const struct snapshot_limit *limit)
{
    return snapshot_rate_is_fast(limit->per_s, limit->burst);
}

/* True if the limit denies the commands. A limit that denies has no rate and no usage. */
static inline bool snapshot_limit_denies(const struct snapshot_limit *limit)
{
    return strcmp(limit->action, "deny") == 0;
}

/* A named limit. */
struct snapshot_named {
    char name[NAMED_NAME_MAX + 1]; /* unique */
    const char *algorithm;         /* static */
    char rates[256];               /* as written, truncated */
    char zone[64];                 /* time zone of the limit's calendar windows; "": none */
    char penalty[64];              /* as written; "": none */
    bool is_shadow;
    size_t overrides; /* number of keys that have rates of their own */
    uint64_t results[NAMED_RESULTS];
    struct histo times;
};

/* State of a node of the upstream. */
enum node_state {
    NODE_UP,
    NODE_BUSY,   /* up, running a script */
    NODE_PAUSED, /* up, and CLIENT PAUSE delays commands */
    NODE_SILENT, /* connected, but does not answer */
    NODE_AWAY,
};

struct snapshot_health {
    enum node_state state;
    uint64_t silence_ns; /* how long weir's probe is unanswered; 0: answered, or no probe */
    uint64_t oldest_ns;  /* how long the oldest non-blocking command is unanswered; 0: none */
};

#define SNAPSHOT_TRIES 16

/* An address of a node's host name. */
struct snapshot_try {
    char address[160];
    char why[128]; /* error of the last connection attempt; "": in use, or never tried */
};

/* What weir sends to a node. */
enum node_use {
    USED_FOR_NOTHING,
    USED_FOR_READS,
    USED_FOR_SLOTS, /* a master of a cluster, which serves some slots */
    USED_FOR_ALL,   /* the master, or the only server */
};

#define SNAPSHOT_NO_LAG UINT64_MAX

/* A node of the upstream. */
struct snapshot_node {
    char address[SNAPSHOT_TEXT]; /* as configured; unique */
    char in_use[160];            /* resolved address in use; "": none */
    const char *role;            /* "master", "replica", "unknown" */
    struct snapshot_try tries[SNAPSHOT_TRIES];
    unsigned n_tries;
    enum node_use use;
    /* epoch in which sentinels named the master, or config epoch in a cluster; 0: none */
    uint64_t epoch;
    unsigned slots;        /* slots that the node of a cluster serves */
    unsigned slots_moving; /* known slots that migrate from or to the node */
    /* lag of a replica behind its master; SNAPSHOT_NO_LAG: unknown, or no replica */
    uint64_t lag_ms;
    /* bytes of the replication stream that the replica lacks; valid with lag_ms */
    uint64_t behind_bytes;
    uint64_t changed_unix_ms; /* last change of role or reachability; 0: never */
    struct snapshot_health health;
    char why[256]; /* why a node that answers cannot be used; "": usable, or not answering */
    /* what the node denies to weir: a bit for each enum lack (upstream/lane/lack.h) */
    uint32_t lacks;
    struct lane_counts lanes;
};

static inline bool node_state_is_up(enum node_state state)
{
    return state < NODE_SILENT;
}

/* "all", "slots", "reads", "nothing" */
const char *node_use_name(enum node_use use);

/* "up", "busy", "paused", "silent", "away" */
const char *node_state_name(enum node_state state);

struct snapshot_listener {
    char name[SNAPSHOT_TEXT];
    uint64_t open;
    bool is_admin; /* the admin socket, which does not count against max-clients */
};

struct snapshot_top {
    struct top_entry rows[SNAPSHOT_TOP];
    size_t n;
};

struct snapshot {
    _Atomic unsigned holders;

    uint64_t taken_ns; /* by base/clock.h */
    uint64_t unix_ms;
    uint64_t started_unix_ms;
    const char *version, *libuv, *hiredis; /* static strings */
    /* name that operators have given this weir, valid for the life of the process; "": none */
    const char *name;
    int pid;
    const char *config_path; /* valid for the life of the process; NULL: no file */
    unsigned workers;
    bool is_private; /* lanes = private */
    bool is_shadow;  /* mode = shadow */
    bool is_draining;
    char not_ready[SNAPSHOT_TEXT]; /* why weir is not ready; "": ready */
    /* which slots of a cluster are served; "": all slots, or weir is not ready */
    char partly[SNAPSHOT_TEXT];

    char upstream[SNAPSHOT_TEXT];  /* address of the default node */
    struct snapshot_health health; /* worst of all nodes */
    struct lane_counts lanes;      /* sum over all nodes */
    bool is_replicated;            /* several servers; one server at a time is the master */
    bool is_cluster;               /* several masters share the slots */
    unsigned slots_served;         /* slots of a cluster that have a master */
    unsigned slots_up;             /* slots of a cluster with a reachable master */
    struct snapshot_node *nodes;   /* empty until sentinels have named a node */
    size_t n_nodes;

    uint64_t reloads, failed_reloads;
    uint64_t reloaded_unix_ms;        /* time of the last successful reload, or of the start */
    bool is_reload_good;              /* the last reload succeeded */
    char reload_error[SNAPSHOT_TEXT]; /* why the last reload failed */

    uint64_t memory_bytes, memory_limit_bytes; /* as counted by run/memory.h; limit 0: no limit */
    unsigned memory_step;                      /* enum ladder_step */

    unsigned max_clients;
    unsigned max_lanes;
    struct snapshot_listener listeners[COUNTED_LISTENERS];
    size_t n_listeners;
    struct counts counts;
    /* iterations of the workers' loops */
    struct histo iterations;
    uint64_t client_read, client_written, upstream_read, upstream_written; /* bytes */
    uint64_t client_pauses, upstream_pauses;

    size_t subjects, key_subjects; /* current sizes of the two tables */
    size_t max_subjects;           /* most subjects of each table */
    bool is_overflowed;            /* an overflow subject has been used */

    size_t blocks; /* number of subjects that an operator has blocked */
    uint64_t blocked_commands;
    /* top_entry.refused_by of blocked subjects; TOP_NO_LIMIT: no subject has been blocked */
    uint32_t block_id;
    /* a block has refused a command in the last HISTORY_HOLD_S; set by history_note */
    bool is_block_active;

    struct snapshot_limit *limits;
    size_t n_limits;
    struct snapshot_own *owns; /* the first SNAPSHOT_OWNS of n_all_owns lines */
    size_t n_owns, n_all_owns;
    struct snapshot_named *named;
    size_t n_named;
    struct snapshot_top tops[TOP_BY_COUNT];
    struct journal_event events[SNAPSHOT_EVENTS];
    size_t n_events;
    struct history *history; /* owned; set by history_note */
};

/* Returns an empty snapshot with one reference, NULL if out of memory. */
struct snapshot *snapshot_new(void);
struct snapshot *snapshot_get(struct snapshot *snapshot);
void snapshot_put(struct snapshot *snapshot);

/* Returns the default node, NULL if no node is a master. */
const struct snapshot_node *snapshot_default_node(const struct snapshot *snapshot);

/* Returns the number of clients that count against max_clients. Operators do not count. */
uint64_t snapshot_clients(const struct snapshot *snapshot);

/* ---- the lines that operators have set for single subjects, for display beside limits ---- */

/*
 * Appends for example "5/s for user:ann, 9/s for user:bob and 3 more". Appends nothing if no
 * operator has set a line of that limit.
 */
void own_lines_name(struct text *out, const struct snapshot *snapshot,
                    const struct snapshot_limit *limit);

/* True if a subject has a line of that limit. */
bool own_lines_has(const struct snapshot *snapshot, const struct snapshot_limit *limit);

/* Returns how many commands per second the line refuses for its subject. */
uint64_t own_lines_refused(const struct snapshot *snapshot, const struct snapshot_own *own);

#endif
