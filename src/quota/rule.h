/*
 * A rule: an algorithm and its rates, all of which must pass.
 */
#ifndef WEIR_QUOTA_RULE_H
#define WEIR_QUOTA_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/zone.h"
#include "limit/policy/calendar.h"
#include "limit/policy/rate.h"
#include "quota/algorithm.h"

#define QUOTA_RATES_MAX 8

/* The largest number that scripts get: Lua's numbers are doubles, which are exact up to here. */
#define QUOTA_MOST (INT64_C(1) << 53)

/* An exact sliding window stores an entry for each call that passed: at most so many. */
#define QUOTA_LOG_MAX 10000
#define QUOTA_CREDIT_MAX 1000 /* units that one call can give back: each may be an entry */

struct quota_rate {
    int64_t limit;    /* units that pass at once from rest: burst, max_burst + 1, or a window's count */
    int64_t step;     /* funnel: one unit's time in ns, rounded up; window: its length in us; calendar window: 0 */
    uint8_t calendar; /* enum calendar, for fixed windows */
    /* Funnels where rounding `step` up would lose more than 1 %: units, and the time they take in ns. Else 0. */
    int64_t fine_count, fine_period;
};

struct quota_rule {
    uint8_t kind; /* enum quota_kind */
    uint8_t n_rates;
    struct quota_rate rates[QUOTA_RATES_MAX];
    struct zone *zone; /* for calendar windows; NULL: UTC. Whoever owns the rule owns the reference */
    uint64_t zone_id;  /* zone_id(zone); stays valid when the zone is gone */
};

/* Does the algorithm of this name use GCRA? */
static inline bool quota_is_funnel(uint8_t kind)
{
    uint8_t family = quota_algorithm(kind)->family;
    return family == FAMILY_FUNNEL || family == FAMILY_WARM;
}

/* The time that units of a funnel take, in ns, rounded up. Negative units are given back; that is rounded towards 0. */
static inline int64_t quota_span_ns(const struct quota_rate *rate, int64_t units)
{
    if (rate->fine_count == 0)
        return units * rate->step;
    if (units < 0)
        return (int64_t)((__int128)units * rate->fine_period / rate->fine_count);
    return (int64_t)(((__int128)units * rate->fine_period + rate->fine_count - 1) / rate->fine_count);
}

/* The burst as time in ns: less than QUOTA_MOST. */
static inline int64_t quota_burst_ns(const struct quota_rate *rate)
{
    return quota_span_ns(rate, rate->limit);
}

/* How many units fit into this time (>= 0). */
static inline int64_t quota_units(const struct quota_rate *rate, int64_t span_ns)
{
    if (rate->fine_count == 0)
        return span_ns / rate->step;
    return (int64_t)((__int128)span_ns * rate->fine_count / rate->fine_period);
}

/* Has it a calendar window, so that the zone matters? */
bool quota_has_calendar(const struct quota_rule *rule);

bool quota_rule_is_same(const struct quota_rule *a, const struct quota_rule *b);

/* Add a rate to the rule. False: `why` says what is wrong, and the rule is unchanged. */
__attribute__((warn_unused_result)) bool quota_rule_add(struct quota_rule *rule, const struct rate_text *text, char *why,
                                                        size_t why_size);

/*
 * Add a line of a [limit NAME]: its left side is `algorithm` (funnel, bucket, sliding, approx or fixed), its right side
 * `text`. Before the first line n_rates is 0. False: `why` says what is wrong, and the rule is unchanged.
 */
__attribute__((warn_unused_result)) bool quota_limit_parse(struct slice algorithm, struct slice text,
                                                           struct quota_rule *rule, char *why, size_t why_size);

#endif
