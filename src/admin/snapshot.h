/*
 * The state of weir at one moment, for operators: collected once a second, then immutable.
 *
 * Reference-counted; any thread. Text in it is NUL-terminated. Only `tops` and `events` contain text that comes from
 * clients.
 */
#ifndef WEIR_ADMIN_SNAPSHOT_H
#define WEIR_ADMIN_SNAPSHOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "admin/history.h"
#include "limit/figures/counts.h"
#include "limit/figures/journal.h"
#include "limit/figures/top.h"
#include "limit/policy/limit.h"
#include "quota/named.h"
#include "upstream/lane/lane_state.h"

#define SNAPSHOT_TOP 20
#define SNAPSHOT_EVENTS 50
#define SNAPSHOT_TEXT 512
#define SNAPSHOT_RULE (LIMIT_LABEL_MAX + 8)

#define SNAPSHOT_HOLDERS 5
#define SNAPSHOT_OWNS 100

/* Of the heaviest subjects one that uses a limit. */
struct snapshot_holder {
    const struct top_entry *row; /* in snapshot.tops */
    double used;                 /* 0 to 1 */
};

/* A line that an operator has set for one subject. */
struct snapshot_own {
    uint16_t id; /* of the limit, which its policy's line, if there is one, has too */
    char rule[SNAPSHOT_RULE];
    char subject[SUBJECT_NAME_MAX + 1];
    char amount[LIMIT_RATE_MAX];
    char action[24];
    uint64_t until_ns; /* monotonic; 0: until it is taken back */
};

struct snapshot_limit {
    char rule[SNAPSHOT_RULE]; /* "free/write", "free/write#2": no two are the same */
    char policy[33];
    char amount[LIMIT_RATE_MAX]; /* "1000/s" */
    char unit[24], scope[24], action[24];
    bool is_shadow;
    bool is_only_own; /* no line of its policy: lines of single subjects alone, in snapshot.owns; without a rate */
    double per_s;     /* its rate; 0: a gauge, or `deny` */
    uint64_t burst;
    uint64_t admitted, delayed, refused, shadowed, near;
    uint64_t subjects; /* of its policy, in the table now */
    uint16_t id;       /* limit.id */
    double
        used; /* 0 to 1: of the fullest subject that is known, or with one holder by its rate (run/census_limits.c) */
    char fullest[SUBJECT_NAME_MAX + 1];               /* that subject; "": none */
    struct snapshot_holder holders[SNAPSHOT_HOLDERS]; /* `per subject`: the fullest, fullest first */
    size_t n_holders;

    /* ---- set by history_note, for the first HISTORY_LIMITS ---- */
    double allowed_per_s, over_per_s;
    enum limit_state state;
};

/* Does the current rate say how much of a limit is used? Not where the burst lasts for minutes or hours. */
static inline bool snapshot_rate_is_fast(double per_s, uint64_t burst)
{
    return per_s > 0 && (double)burst <= 5 * per_s;
}

static inline bool snapshot_limit_is_fast(const struct snapshot_limit *limit)
{
    return snapshot_rate_is_fast(limit->per_s, limit->burst);
}

/* It has no rate, and nobody shares anything. */
static inline bool snapshot_limit_denies(const struct snapshot_limit *limit)
{
    return strcmp(limit->action, "deny") == 0;
}

/* A named limit. */
struct snapshot_named {
    char name[NAMED_NAME_MAX + 1]; /* no two are the same */
    const char *algorithm;         /* static */
    char rates[256];               /* as written; cut */
    char zone[64];                 /* of its calendar windows; "": none */
    char penalty[64];              /* as written; "": none */
    bool is_shadow;
    size_t overrides; /* how many keys have rates of their own now */
    uint64_t results[TALLY_RESULTS];
    struct histo times;
};

/* How a node of the upstream is. */
enum node_state {
    NODE_UP,
    NODE_BUSY,   /* up, and runs a script */
    NODE_PAUSED, /* up, and CLIENT PAUSE holds commands back */
    NODE_SILENT, /* connected, and does not answer */
    NODE_AWAY,
};

struct snapshot_health {
    enum node_state state;
    uint64_t silence_ns; /* how long weir's own question has had no answer; 0: it has one, or nothing is asked */
    uint64_t oldest_ns;  /* how long the oldest command that does not block has had none; 0: no such one waits */
};

#define SNAPSHOT_TRIES 16

/* An address of a node's name. */
struct snapshot_try {
    char address[160];
    char why[128]; /* what happened when it was dialled last; "": it is in use, or there was no reason to dial it */
};

/* What weir sends to a node. */
enum node_use {
    USED_FOR_NOTHING,
    USED_FOR_READS,
    USED_FOR_SLOTS, /* it is a master of a cluster, which serves some of the slots */
    USED_FOR_ALL,   /* it is the master, or the only one */
};

#define SNAPSHOT_NO_LAG UINT64_MAX

/* A node of the upstream. */
struct snapshot_node {
    char address[SNAPSHOT_TEXT]; /* as configured; no two are the same */
    char in_use[160];            /* where that leads; "": nowhere */
    const char *role;            /* "master", "replica", "unknown" */
    struct snapshot_try tries[SNAPSHOT_TRIES];
    unsigned n_tries;
    enum node_use use;
    uint64_t epoch;           /* by which sentinels name it the master, or its config epoch in a cluster; 0: none */
    unsigned slots;           /* of a cluster, that it serves */
    unsigned slots_moving;    /* of these, and of others', that are on their way from it or to it, as far as is known */
    uint64_t lag_ms;          /* of a replica, behind the master; SNAPSHOT_NO_LAG: not known, or none */
    uint64_t behind_bytes;    /* what the replica lacks of what its master has told; with lag_ms */
    uint64_t changed_unix_ms; /* when its role changed last, or whether it can be reached; 0: never */
    struct snapshot_health health;
    char why[256];  /* why it cannot be served though it answers; "": it can, or does not answer */
    uint32_t lacks; /* what weir does not get of it: a bit for each enum lack (upstream/lane/lack.h) */
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
    bool is_admin; /* the operators' socket: it takes no places of clients */
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
    const char *version, *libuv, *hiredis; /* static */
    const char *name; /* what operators call this weir, as long as the process lives; "": nothing */
    int pid;
    const char *config_path; /* as long as the process lives; NULL: no file */
    unsigned workers;
    bool is_private; /* lanes = private */
    bool is_shadow;  /* mode = shadow */
    bool is_draining;
    char not_ready[SNAPSHOT_TEXT]; /* why it is not ready; "": it is */
    char partly[SNAPSHOT_TEXT];    /* of a cluster, which part of the slots is served; "": all, or it is not ready */

    char upstream[SNAPSHOT_TEXT];  /* the home node's address */
    struct snapshot_health health; /* the worst of all nodes */
    struct lane_counts lanes;      /* summed over all nodes */
    bool is_replicated;            /* several servers, of which one at a time is the master */
    bool is_cluster;               /* several masters share the slots */
    unsigned slots_served;         /* of a cluster, that have a master */
    unsigned slots_up;             /* of these, those with a master that can be reached */
    struct snapshot_node *nodes;   /* none before sentinels have named any */
    size_t n_nodes;

    uint64_t reloads, failed_reloads;
    uint64_t reloaded_unix_ms;        /* the last successful reload, or the start */
    bool is_reload_good;              /* the last reload succeeded */
    char reload_error[SNAPSHOT_TEXT]; /* why it did not */

    uint64_t memory_bytes, memory_limit_bytes; /* as run/memory.h counts; limit 0: none */
    unsigned memory_step;                      /* enum ladder_step */

    unsigned max_clients;
    unsigned max_lanes;
    struct snapshot_listener listeners[COUNTED_LISTENERS];
    size_t n_listeners;
    struct counts counts;
    struct histo turns;                                                    /* of the workers' loops */
    uint64_t client_read, client_written, upstream_read, upstream_written; /* bytes */
    uint64_t client_pauses, upstream_pauses;

    size_t subjects, key_subjects; /* in the two tables now */
    size_t max_subjects;           /* for each table */
    bool is_overflowed;            /* an overflow subject has been used */

    size_t blocks; /* how many subjects an operator has blocked */
    uint64_t blocked_commands;
    uint32_t block_id;    /* top_entry.refused_by of those whom blocks refuse; TOP_NO_LIMIT: nobody has been blocked */
    bool is_block_active; /* a block has refused something in the last HISTORY_HOLD_S; set by history_note */

    struct snapshot_limit *limits;
    size_t n_limits;
    struct snapshot_own *owns; /* the first SNAPSHOT_OWNS */
    size_t n_owns, n_all_owns;
    struct snapshot_named *named;
    size_t n_named;
    struct snapshot_top tops[TOP_BY_COUNT];
    struct journal_event events[SNAPSHOT_EVENTS];
    size_t n_events;
    struct history *history; /* owned; set by history_note */
};

struct snapshot *snapshot_new(void); /* empty, one reference; NULL: out of memory */
struct snapshot *snapshot_get(struct snapshot *snapshot);
void snapshot_put(struct snapshot *snapshot);

/* The node that commands go to. NULL: none is the master. */
const struct snapshot_node *snapshot_home(const struct snapshot *snapshot);

/* How many clients are connected, of max_clients; operators are none. */
uint64_t snapshot_clients(const struct snapshot *snapshot);

#endif
