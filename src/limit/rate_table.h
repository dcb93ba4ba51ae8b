/*
 * The rates at which the funnels of one holder run, and what becomes of debts where a rate changes.
 *
 * A funnel's word is a time, so it says how many units are owed only together with the rate it was charged at. Each
 * holder names the table that its words are to be read by (limit/subject.h). When a holder meets a newer table its
 * debts are converted, once, under its lock. A worker that still has older rules finds the newer table there and
 * decides by the rates in it. So no word is ever charged at two rates.
 *
 * Immutable, reference-counted; any thread. Tables are made on one thread, by limit/policy/policy.h.
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
 * Where a rate changes, what is owed stays the same number of units, and runs out at the new rate.
 *
 * Problem: a funnel's word is a time, and the same time is another number of units at another rate. Mechanism: the time
 * left is scaled by the ratio of the two rates, rounded up to whole ns, so that a change never loses a debt and adds
 * less than 1 ns of the new rate's time. Then it is cut to the new burst.
 */

/* The time that units take: `units` of them in `ns`. */
struct unit_time {
    uint64_t ns, units;
};

/* `is_bytes`: the rate is charged by rate_span_ns, not by whole units. */
struct unit_time unit_time_of(const struct rate *rate, bool is_bytes);
bool unit_time_is_same(struct unit_time one, struct unit_time other);

/* The time that the same units take at another rate, rounded up; at most RATE_LONGEST_NS. */
uint64_t debt_at(uint64_t debt_ns, struct unit_time from, struct unit_time to);

/* The longest debt that asking can leave, in ns. */
uint64_t debt_of_burst(const struct rate *rate, bool is_bytes);

#define SLOT_NOWHERE UINT16_MAX

enum slot_kind { SLOT_OTHER, SLOT_UNITS, SLOT_BYTES }; /* SLOT_OTHER: no debt, but a gauge or a departure's word */

/*
 * When a limit's funnel may hold more than its burst. AHEAD and QUEUE_SHADOW: in mode = shadow, where virtual clocks
 * charge in the future.
 */
enum slot_queue {
    SLOT_QUEUE_NONE,   /* never */
    SLOT_AHEAD,        /* in mode = shadow, beside a limit that delays: charged by virtual clocks, without a queue */
    SLOT_QUEUE_SHADOW, /* in mode = shadow, of a limit that delays: the positions that commands would have */
    SLOT_QUEUE         /* of a limit that delays: the positions of commands that wait */
};

/* What the ledger knows of one slot: the rate that its limit had last. */
struct slot_rate {
    struct rate rate;
    uint16_t departures; /* first slot of its departure's words; SLOT_NOWHERE: it has none */
    uint8_t kind;        /* enum slot_kind */
    uint8_t queue;       /* enum slot_queue; SLOT_QUEUE_NONE in the ledger */
};

struct rate_table {
    _Atomic uint32_t references;
    uint16_t n;
    uint64_t order; /* of two tables that one holder meets, the one with the higher number is newer */
    struct slot_rate at[];
};

/* One reference. `known`: n rates by slot, which are copied. */
struct rate_table *rate_table_new(uint64_t order, const struct slot_rate *known, uint16_t n);
struct rate_table *rate_table_get(struct rate_table *table); /* NULL too */
void rate_table_put(struct rate_table *table);               /* NULL too */

/* Set the slot of that limit to the limit's rate, if it has one; before the table is shared. */
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
