/* A rule: an algorithm and its rates. A call passes if all rates have room. */
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

/*
 * An exact sliding window stores an entry for each unit that passed: at most this many entries.
 * Chosen.
 */
#define QUOTA_LOG_MAX 10000
/* units that one call can give back; chosen, since each unit may be an entry */
#define QUOTA_CREDIT_MAX 1000

struct quota_rate {
    /* units that pass at once from rest: burst, max_burst + 1, or a window's count */
    int64_t limit;
    /* funnel: one unit's time in ns, rounded up; window: the length in us; calendar window: 0 */
    int64_t step;
    uint8_t calendar; /* enum calendar, for fixed windows */
    /*
     * For funnels where rounding `step` up would lose more than 1 %: units, and the time in ns that
     * these units take. Else 0.
     */
    int64_t fine_count, fine_period;
};

struct quota_rule {
    uint8_t kind; /* enum quota_kind */
    uint8_t n_rates;
    struct quota_rate rates[QUOTA_RATES_MAX];
    /* for calendar windows; NULL: UTC. The owner of the rule owns the reference */
    struct zone *zone;
    uint64_t zone_id; /* zone_id(zone); stays valid after the zone is freed */
};

/* True if the algorithm uses GCRA. */
static inline bool quota_is_funnel(uint8_t kind)
{
    uint8_t family = quota_algorithm(kind)->family;
    return family == FAMILY_FUNNEL || family == FAMILY_WARM;
}

/*
 * Returns the time that units of a funnel take, in ns, rounded up. Negative units are given back,
 * and are rounded towards 0.
 */
static inline int64_t quota_span_ns(const struct quota_rate *rate, int64_t units)
{
    if (rate->fine_count == 0)
        return units * rate->step;
    if (units < 0)
        return (int64_t)((__int128)units * rate->fine_period / rate->fine_count);
    return (int64_t)(((__int128)units * rate->fine_period + rate->fine_count - 1) /
                     rate->fine_count);
}

/* Returns the burst as time in ns: less than QUOTA_MOST. */
static inline int64_t quota_burst_ns(const struct quota_rate *rate)
{
    return quota_span_ns(rate, rate->limit);
}

/* Returns how many units fit into this time (>= 0). */
static inline int64_t quota_units(const struct quota_rate *rate, int64_t span_ns)
{
    if (rate->fine_count == 0)
        return span_ns / rate->step;
    return (int64_t)((__int128)span_ns * rate->fine_count / rate->fine_period);
}

/* True if a rate has a calendar window, so that the zone matters. */
bool quota_has_calendar(const struct quota_rule *rule);

bool quota_rule_is_same(const struct quota_rule *a, const struct quota_rule *b);

/* Adds a rate to the rule. False: `why` says what is wrong, and the rule is unchanged. */
__attribute__((warn_unused_result)) bool quota_rule_add(struct quota_rule *rule,
                                                        const struct rate_text *text, char *why,
                                                        size_t why_size);

/*
 * Adds a line of a [limit NAME]. `algorithm` is the left side of the line (funnel, bucket, sliding,
 * approx or fixed), `text` the right side. Before the first line n_rates is 0. False: `why` says
 * what is wrong, and the rule is unchanged.
 */
__attribute__((warn_unused_result)) bool quota_limit_parse(struct slice algorithm,
                                                           struct slice text,
                                                           struct quota_rule *rule, char *why,
                                                           size_t why_size);

#endif
