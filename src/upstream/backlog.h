/*
 * What one subject has under way from one worker to one node, and which of its riders wait for their turn.
 *
 *     subject -- backlog -- paced rider (requests under way, what it has been granted)
 *                        -- paced rider
 *
 * Work is measured in the time that Redis needs for it: the number of requests times what one of this subject's takes,
 * which schedule.c finds out from when answers come. Part of a schedule, by which all of this is changed; the worker's
 * thread only.
 */
#ifndef WEIR_UPSTREAM_BACKLOG_H
#define WEIR_UPSTREAM_BACKLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "limit/subject.h"

struct rider;
struct schedule;

#define BACKLOG_TOLD 4 /* lessons of which it is remembered what they said */

struct backlog {
    struct list in_table; /* in its bucket of schedule.buckets */
    struct schedule *schedule;
    struct subject *subject;        /* held by each of the riders' clients */
    uint32_t n_riders;              /* paced riders of it; freed with the last */
    uint32_t weight;                /* its share of Redis, beside others' */
    uint8_t lessons;                /* batches that have told of its cost, up to a few */
    uint8_t n_more;                 /* batches in a row that told of far more than was known, ... */
    double least_more;              /* ... and the least of it, as a factor */
    uint8_t n_taught;               /* lessons it has had, served alone, up to a few; ... */
    uint64_t taught_ns;             /* ... and when it had the last */
    uint8_t n_told;                 /* so often they said what one request costs, up to BACKLOG_TOLD times; ... */
    uint64_t told_ns[BACKLOG_TOLD]; /* ... what they said, the last first, ... */
    double spread;                  /* ... and by what part that differs */
    bool is_visited;                /* it is at the head of the round, and has its quantum */
    bool is_low;                    /* served when nobody else waits */
    uint32_t under_way;             /* requests: the sum over its riders */
    uint32_t answered;              /* requests, in schedule.batch */
    uint32_t round_no;              /* the last one in which it had a quantum */
    uint32_t counted;     /* the weight that counts for it while it waits, in schedule.weights; 0: it does not wait */
    uint64_t work_ns;     /* of what is under way, as far as it is expected to be answered; in schedule.work_ns */
    uint64_t learnt_ns;   /* what one request of it seems to cost ... */
    uint64_t cost_ns;     /* ... and what it is taken to: as much as others, unless that is far from it */
    int64_t credit_ns;    /* what it may send at once; below 0: it has had so much more than its share */
    uint64_t taken_ns;    /* the worker's time that it has taken to take its requests, ... */
    uint64_t turn_ns;     /* ... in the turn of the loop that began then */
    uint64_t visited_ns;  /* when it had its last quantum */
    uint64_t moved_ns;    /* when something of it was answered last, or sent while nothing was under way */
    uint64_t patience_ns; /* how long the next answer may take before its work is not counted on any more */
    struct list waiting;  /* paced.in_backlog: the next is first */
    struct list in_turn;  /* in schedule.round or schedule.low while anybody waits */
    struct list in_answered; /* in schedule.batch.answered while answered > 0 */
};

/* A rider whose requests are counted. */
struct paced {
    struct rider *rider;
    struct backlog *backlog;
    struct list in_backlog; /* in backlog.waiting; itself: it does not wait for its turn */
    uint32_t slot;          /* rider.paced */
    uint32_t requests;      /* under way */
    uint32_t granted;       /* requests that it may send now; taken off the credit already */
    uint64_t grant_ns;      /* the credit for one of them */
    uint8_t slice;          /* requests that front/pacing.c takes before it looks at the clock */
    bool is_quiet;          /* it has sent nothing since it was last looked at */
    bool is_deep;           /* it used up what it was last granted */
    bool is_crowding;       /* it waits until fewer of its own requests are under way */
};

#endif
