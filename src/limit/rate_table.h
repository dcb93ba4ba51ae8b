/*
 * The rates at which the funnels of one holder run, and the conversion of debts when a rate
 * changes.
 *
 * The word of a funnel is a time. Only the rate at which a word was charged tells how many units
 * are owed. Each holder therefore names the table for its words (limit/subject.h). When a holder
 * meets a newer table its debts are converted, once, under its lock. A worker with older rules
 * finds the newer table at the holder, and decides by the rates of that table. No word is ever
 * charged at two rates.
 *
 * Immutable, reference-counted, any thread. limit/policy/policy.h makes the tables, on one thread.
 */
#ifndef WEIR_LIMIT_RATE_TABLE_H
#define WEIR_LIMIT_RATE_TABLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "limit/funnel.h"
#include "limit/policy/limit.h"

/*
 * ---- debts ----
 *
 * When a rate changes, a debt keeps its number of units and drains at the new rate.
 *
 * Problem: the word of a funnel is a time, and at another rate that time means another number of
 * units. Mechanism: the remaining time is scaled by the ratio of the two rates and rounded up to
 * whole ns. A change never loses debt, and adds less than 1 ns at the new rate. Then the debt is
 * cut to the new burst.
 */

/* The time of units: `units` units take `ns`. */
struct unit_time {
    uint64_t ns, units;
};

/* `is_bytes`: the rate is charged by rate_span_ns, not by whole units. */
struct unit_time unit_time_of(const struct rate *rate, bool is_bytes);
bool unit_time_is_same(struct unit_time one, struct unit_time other);

/*
 * Converts a debt: the time in ns that its units take at rate `to`, rounded up; at most
 * RATE_LONGEST_NS.
 */
uint64_t debt_at(uint64_t debt_ns, struct unit_time from, struct unit_time to);

/* The longest debt in ns that a checked charge can leave. */
uint64_t debt_of_burst(const struct rate *rate, bool is_bytes);

#define SLOT_NOWHERE UINT16_MAX

/* SLOT_OTHER: no debt, but a gauge or a word of a departure */
enum slot_kind { SLOT_OTHER, SLOT_UNITS, SLOT_BYTES };

/*
 * When the funnel of a limit may hold more than its burst. SLOT_AHEAD and SLOT_QUEUE_SHADOW occur
 * in mode = shadow, where virtual clocks charge in the future.
 */
enum slot_queue {
    SLOT_QUEUE_NONE, /* never */
    /* mode = shadow, beside a limit that delays: charged by virtual clocks, no queue */
    SLOT_AHEAD,
    /* mode = shadow, a limit that delays: the positions that commands would have */
    SLOT_QUEUE_SHADOW,
    SLOT_QUEUE /* a limit that delays: the positions of waiting commands */
};

/* The rate of the limit with that index. In struct policy_state: the last rate at that index. */
struct slot_rate {
    struct rate rate;
    uint16_t departures; /* first index of the departure's words; SLOT_NOWHERE: none */
    uint8_t kind;        /* enum slot_kind */
    uint8_t queue;       /* enum slot_queue; in struct policy_state always SLOT_QUEUE_NONE */
};

struct rate_table {
    _Atomic uint32_t references;
    uint16_t n;
    uint64_t order; /* of two tables, the one with the higher order is newer */
    struct slot_rate at[];
};

/* Makes a table with one reference. `known`: n rates by index, which are copied. */
struct rate_table *rate_table_new(uint64_t order, const struct slot_rate *known, uint16_t n);
struct rate_table *rate_table_get(struct rate_table *table); /* accepts NULL */
void rate_table_put(struct rate_table *table);               /* accepts NULL */

/*
 * Sets the entry to the rate of the limit, if the limit has a rate. Call before the table is
 * shared.
 */
void slot_rate_set(struct slot_rate *slot, const struct limit *limit);

static inline struct unit_time slot_unit_time(const struct slot_rate *slot)
{
    return unit_time_of(&slot->rate, slot->kind == SLOT_BYTES);
}

static inline uint64_t slot_burst_ns(const struct slot_rate *slot)
{
    return debt_of_burst(&slot->rate, slot->kind == SLOT_BYTES);
}

#endif
