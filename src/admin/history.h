/*
 * The last five minutes: a point every two seconds, of the process and of each limit; and from it how fast things go now.
 *
 * Problem: counters only say how much there has ever been, and a page that has just been opened has seen nothing. The
 * main thread notes every snapshot here; each snapshot then has its rates, and a copy of all points so far, so that
 * whoever shows it needs no lock. Memory: 9 KB, and 1.2 KB for each limit.
 */
#ifndef WEIR_ADMIN_HISTORY_H
#define WEIR_ADMIN_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/histo.h"

#define HISTORY_POINTS 150
#define HISTORY_STEP_S 2
#define HISTORY_LIMITS 256 /* limits with points of their own: the first ones */
#define HISTORY_HOLD_S 10  /* so long a limit counts as refusing, or nearly, after it was seen to */

struct snapshot;

/* What a point has of the process. */
enum series {
    SERIES_COMMANDS, /* a second, as all that follow, whatever became of them */
    SERIES_REFUSED,
    SERIES_DELAYED,
    SERIES_SHADOWED,
    SERIES_BYTES_IN, /* from clients */
    SERIES_BYTES_OUT,
    SERIES_RATES,                      /* how many of them are rates */
    SERIES_CONNECTIONS = SERIES_RATES, /* clients, at that moment */
    SERIES_LATENCY_P50,                /* seconds, of the commands since the point before; 0: there were none */
    SERIES_LATENCY_P99,
    SERIES_OVERHEAD_P50, /* weir's own part of it */
    SERIES_OVERHEAD_P99,
    SERIES_TURN_P99, /* turns of the workers' loops */
    SERIES_COUNT
};

/* What a limit does at the moment: the last that fits. */
enum limit_state { LIMIT_CALM, LIMIT_NEAR, LIMIT_SHADOWING, LIMIT_DELAYING, LIMIT_REFUSING, LIMIT_STATES };

/* What a limit has decided so far. */
struct decided {
    uint64_t admitted, delayed, refused, shadowed;
};

/* Of one limit. */
struct track {
    uint16_t id;
    struct decided seen;             /* at the last note */
    struct decided at_point;         /* at the last point */
    uint64_t until_ns[LIMIT_STATES]; /* how long it counts as that; 0: it never was */
    float allowed[HISTORY_POINTS];   /* a second, in its own unit */
    float over[HISTORY_POINTS];      /* a second: delayed, refused or shadowed */
};

/* In every list of points the last n are there, the newest at the end. */
struct history {
    uint64_t last;               /* the number of the newest point; the first is 1; 0: there is none */
    size_t n;                    /* points there are */
    uint64_t last_ns;            /* when the newest was taken */
    double totals[SERIES_RATES]; /* at the newest point, as are */
    struct histo requests, overhead, turns;
    float points[SERIES_COUNT][HISTORY_POINTS];
    size_t n_limits; /* tracks[i] is of the snapshot's limit i */
    struct track *tracks;
};

struct history *history_new(void);
void history_free(struct history *history);

/* A new snapshot: set its rates and what its limits do, and take a point when it is time. It gets a copy of all. */
__attribute__((warn_unused_result)) bool history_note(struct history *history, struct snapshot *snapshot);

/* The newest value; 0 where there is none. */
double history_now(const struct history *history, enum series series);

/* "commands_per_second" ...; "ok", "near", "shadowing" ... */
const char *series_name(enum series series);
const char *limit_state_name(enum limit_state state);

#endif
