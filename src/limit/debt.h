/*
 * Debts where a rate changes: what is owed stays the same number of units, and runs out at the new rate.
 *
 * Problem: a funnel's word is a time, and the same time is another number of units at another rate. Mechanism: the time
 * left is scaled by the ratio of the two rates, rounded up to whole ns, so that a change never loses a debt and adds
 * less than 1 ns of the new rate's time. Then it is cut to the new burst.
 */
#ifndef WEIR_LIMIT_DEBT_H
#define WEIR_LIMIT_DEBT_H

#include <stdbool.h>
#include <stdint.h>

#include "limit/funnel.h"

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

#endif
