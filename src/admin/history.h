/*
 * The last five minutes: a point every two seconds, for the process and for each limit; and current rates.
 *
 * Problem: counters only give totals, and a page that has just been opened has seen nothing. Mechanism: the main thread
 * notes every snapshot here; the snapshot gets its rates and a copy of all points, so that whoever shows it needs no
 * lock. Memory: 15 KB, and 1.2 KB for each limit.
 */
#ifndef WEIR_ADMIN_HISTORY_H
#define WEIR_ADMIN_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "limit/figures/counts.h"

#define HISTORY_POINTS 150
#define HISTORY_STEP_S 2
#define HISTORY_LIMITS 256 /* how many limits, the first ones, have points */
#define HISTORY_HOLD_S 10  /* how long a limit keeps the state "refusing" (or another) after it last did so */

struct snapshot;

/* The values in a point of the process. */
enum series {
    SERIES_COMMANDS, /* all commands a second; those up to SERIES_RATES are rates too */
    SERIES_REFUSED,  /* by limits and by blocks */
    SERIES_BLOCKED,  /* of these by blocks */
    SERIES_DELAYED,
    SERIES_SHADOWED,
    SERIES_ERRORS,       /* that weir answered: the upstream is away, an unknown command ... */
    SERIES_REDIS_ERRORS, /* that Redis answered */
    SERIES_BYTES_IN,     /* from clients */
    SERIES_BYTES_OUT,
    SERIES_RATES,                      /* how many series are rates */
    SERIES_CONNECTIONS = SERIES_RATES, /* clients, at that moment */
    SERIES_IN_FLIGHT,                  /* requests sent to Redis and not answered, at that moment */
    SERIES_LATENCY_P50, /* in seconds, of the commands since the point before, limits' delays left out; 0: none */
    SERIES_LATENCY_P99,
    SERIES_UPSTREAM_P50, /* the same of times.upstream */
    SERIES_UPSTREAM_P99,
    SERIES_DELAY_P50, /* the same of times.delay */
    SERIES_DELAY_P99,
    SERIES_OVERHEAD_P50, /* the same of times.overhead */
    SERIES_OVERHEAD_P99,
    SERIES_WAIT_P50, /* the same of times.share: waiting for one's fair share */
    SERIES_WAIT_P99,
    SERIES_TURN_P99, /* the same of the turns of the workers' loops */
    SERIES_COUNT
};

/* What a limit does now: the last that applies. */
enum limit_state { LIMIT_CALM, LIMIT_NEAR, LIMIT_SHADOWING, LIMIT_DELAYING, LIMIT_REFUSING, LIMIT_STATES };

/* Totals of a limit's decisions, summed over the workers. */
struct decided {
    uint64_t admitted, delayed, refused, shadowed;
};

/* The points of one limit. */
struct track {
    uint16_t id;                     /* limit.id */
    struct decided seen;             /* totals at the last history_note */
    struct decided at_point;         /* totals at the last point */
    uint64_t until_ns[LIMIT_STATES]; /* until when each state holds; 0: it never did */
    float allowed[HISTORY_POINTS];   /* a second, in the limit's unit */
    float over[HISTORY_POINTS];      /* a second: delayed, refused or shadowed */
};

/* In every array of points the last n are used, the newest at the end. */
struct history {
    uint64_t last;               /* the number of the newest point, from 1; 0: none yet */
    size_t n;                    /* how many points there are */
    uint64_t last_ns;            /* when the newest was taken */
    double totals[SERIES_RATES]; /* the counters at the newest point, as are the histograms */
    struct times times;
    struct histo turns;
    uint64_t blocked;          /* snapshot.blocked_commands at the last history_note */
    uint64_t blocked_until_ns; /* until when blocks are told to refuse */
    float points[SERIES_COUNT][HISTORY_POINTS];
    size_t n_limits; /* tracks[i] belongs to snapshot->limits[i] */
    struct track *tracks;
};

struct history *history_new(void);
void history_free(struct history *history);

/*
 * Note a new snapshot: set its rates and the states of its limits, take a point when it is time, and give it a copy of
 * the history. False: out of memory.
 */
__attribute__((warn_unused_result)) bool history_note(struct history *history, struct snapshot *snapshot);

/* The newest value; 0 if there is none. */
double history_now(const struct history *history, enum series series);

/* "commands_per_second" ...; "ok", "near", "shadowing" ... */
const char *series_name(enum series series);
const char *limit_state_name(enum limit_state state);

#endif
