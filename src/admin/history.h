/*
 * The last five minutes as a point every two seconds, for the process and for each limit, and the
 * current rates.
 *
 * Problem: counters are totals, and a page just opened has seen no change. Mechanism: the main
 * thread records every snapshot here. The snapshot gets its rates and a copy of all points: readers
 * need no lock. Memory: 15 KB, and 1.2 KB for each limit.
 */
#ifndef WEIR_ADMIN_HISTORY_H
#define WEIR_ADMIN_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "limit/figures/counts.h"

#define HISTORY_POINTS 150
#define HISTORY_STEP_S 2
#define HISTORY_LIMITS 256 /* only the first limits have points (chosen) */
/* how long a limit keeps a state such as "refusing" after its last cause (chosen) */
#define HISTORY_HOLD_S 10

struct snapshot;

/* The series of the process. */
enum series {
    SERIES_COMMANDS, /* all commands per second; the series before SERIES_RATES are rates */
    SERIES_REFUSED,  /* by limits and blocks */
    SERIES_BLOCKED,  /* by blocks */
    SERIES_DELAYED,
    SERIES_SHADOWED,
    SERIES_ERRORS,       /* sent by weir: upstream away, unknown command ... */
    SERIES_REDIS_ERRORS, /* sent by Redis */
    SERIES_BYTES_IN,     /* from clients */
    SERIES_BYTES_OUT,
    SERIES_RATES,                      /* number of series that are rates */
    SERIES_CONNECTIONS = SERIES_RATES, /* clients at the moment of the point */
    /* requests sent to Redis and not answered, at the moment of the point */
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

/* The states of a limit. If several apply, the limit has the last of them. */
enum limit_state { LIMIT_CALM, LIMIT_NEAR, LIMIT_SHADOWING, LIMIT_DELAYING, LIMIT_REFUSING, LIMIT_STATES };

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
    double totals[SERIES_RATES]; /* counters at the newest point, like the histograms below */
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
__attribute__((warn_unused_result)) bool history_note(struct history *history, struct snapshot *snapshot);

/* Returns the newest value, 0 if there is none. */
double history_now(const struct history *history, enum series series);

/* Names in the JSON: "commands_per_second" ...; "ok", "near", "shadowing" ... */
const char *series_name(enum series series);
const char *limit_state_name(enum limit_state state);

#endif
