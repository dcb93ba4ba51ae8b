#include "limit/rate_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- debt ---- */

typedef unsigned __int128 wide;

#define WIDE_BITS 128

struct unit_time unit_time_of(const struct rate *rate, bool is_bytes)
{
    bool is_exact = is_bytes || rate_is_fine(rate);
    return is_exact ? (struct unit_time){rate->period_ns, rate->count}
                    : (struct unit_time){rate->interval_ns, 1};
}

bool unit_time_is_same(struct unit_time one, struct unit_time other)
{
    return (wide)one.ns * other.units == (wide)other.ns * one.units;
}

uint64_t debt_of_burst(const struct rate *rate, bool is_bytes)
{
    return rate_is_fine(rate) && !is_bytes ? rate_span_ns(rate, rate->burst) : rate->burst_ns;
}

static uint64_t rate_table_common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void rate_table_reduce(uint64_t *a, uint64_t *b)
{
    uint64_t by = rate_table_common_divisor(*a, *b);
    *a /= by;
    *b /= by;
}

/*
 * ceil(n * factor / by), at most RATE_LONGEST_NS. The product may have 192 bits: it is built bit by
 * bit, with the remainder always below `by`.
 */
static uint64_t scale_up(uint64_t n, wide factor, wide by)
{
    wide product;
    if (!__builtin_mul_overflow((wide)n, factor, &product)) {
        wide quotient = product / by + (product % by != 0);
        return quotient < RATE_LONGEST_NS ? (uint64_t)quotient : RATE_LONGEST_NS;
    }
    wide quotient = 0, rest = 0;
    /* invariant: quotient and rest of (the bits of n so far) * factor */
    for (unsigned bit = 64; bit-- > 0;) {
        wide add_quotient = (n >> bit & 1) != 0 ? factor / by : 0,
             add_rest = (n >> bit & 1) != 0 ? factor % by : 0;
        bool carries = rest >= by - rest; /* 2 * rest >= by, without overflow */
        if (quotient > RATE_LONGEST_NS)
            return RATE_LONGEST_NS;
        quotient = 2 * quotient + carries + add_quotient;
        rest = carries ? rest - (by - rest) : 2 * rest;
        carries = rest >= by - add_rest;
        quotient += carries;
        rest = carries ? rest - (by - add_rest) : rest + add_rest;
        if (factor / by > RATE_LONGEST_NS && quotient > 0)
            return RATE_LONGEST_NS;
    }
    quotient += rest != 0;
    return quotient < RATE_LONGEST_NS ? (uint64_t)quotient : RATE_LONGEST_NS;
}

uint64_t debt_at(uint64_t debt_ns, struct unit_time from, struct unit_time to)
{
    rate_table_reduce(&from.units, &from.ns);
    rate_table_reduce(&to.ns, &to.units);
    rate_table_reduce(&from.units, &to.units);
    rate_table_reduce(&to.ns, &from.ns);
    return scale_up(debt_ns, (wide)from.units * to.ns, (wide)from.ns * to.units);
}

struct rate_table *rate_table_new(uint64_t order, const struct slot_rate *known, uint16_t n)
{
    struct rate_table *table = mem_zalloc(1, sizeof *table + n * sizeof table->at[0]);
    atomic_init(&table->references, 1);
    table->order = order;
    table->n = n;
    if (n > 0)
        memcpy(table->at, known, n * sizeof table->at[0]);
    return table;
}

struct rate_table *rate_table_get(struct rate_table *table)
{
    if (table != NULL)
        atomic_fetch_add_explicit(&table->references, 1, memory_order_relaxed);
    return table;
}

void rate_table_put(struct rate_table *table)
{
    if (table != NULL &&
        atomic_fetch_sub_explicit(&table->references, 1, memory_order_acq_rel) == 1)
        free(table);
}

void slot_rate_set(struct slot_rate *slot, const struct limit *limit)
{
    enum unit unit = (enum unit)limit->unit;
    if (limit->action == OVER_DENY || unit_is_gauge(unit))
        return; /* an older debt at that index drains at its old rate */
    slot->rate = limit->rate;
    slot->departures = limit->departures;
    slot->kind = unit_is_bytes(unit) ? SLOT_BYTES : SLOT_UNITS;
}
