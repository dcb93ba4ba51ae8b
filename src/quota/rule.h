/*
 * A rule: one of the algorithms that Redis decides by for weir, with the rates of which all must pass; and the grammar
 * it is written in, "5/60s, 100/d".
 */
#ifndef WEIR_QUOTA_RULE_H
#define WEIR_QUOTA_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/zone.h"
#include "limit/calendar.h"
#include "quota/algorithm.h"

#define QUOTA_RATES_MAX 8

/* The largest number that a script is given: Lua has doubles, which hold every integer up to here. */
#define QUOTA_MOST (INT64_C(1) << 53)

/* An exact sliding window remembers each call that passed: at most so many, and so many units by one call. */
#define QUOTA_LOG_MAX 10000
#define QUOTA_CREDIT_MAX 1000 /* units given back by one call: each may be an entry */

struct quota_rate {
    int64_t limit; /* units that pass at once from rest: burst, max_burst + 1, a window's count */
    int64_t step;  /* of a funnel one unit's time in ns, rounded up; of a window its length in us; of the calendar 0 */
    uint8_t calendar; /* enum calendar, of a fixed window */
    /* Of a funnel whose step would lose more than one in a hundred: so many units per this time, in ns. Else 0. */
    int64_t fine_count, fine_period;
};

struct quota_rule {
    uint8_t kind; /* enum quota_kind */
    uint8_t n_rates;
    struct quota_rate rates[QUOTA_RATES_MAX];
    struct zone *zone; /* whose calendar; NULL: UTC. Its owner is whoever owns the rule */
    uint64_t zone_id;  /* of it, which is still known when it is gone */
};

/* Is it GCRA, whatever it is called? */
static inline bool quota_is_funnel(uint8_t kind)
{
    uint8_t family = quota_algorithm(kind)->family;
    return family == FAMILY_FUNNEL || family == FAMILY_WARM;
}

/* The time of so many units of a funnel, rounded up. Below zero it is what they give back, which is rounded down. */
static inline int64_t quota_span_ns(const struct quota_rate *rate, int64_t units)
{
    if (rate->fine_count == 0)
        return units * rate->step;
    if (units < 0)
        return (int64_t)((__int128)units * rate->fine_period / rate->fine_count);
    return (int64_t)(((__int128)units * rate->fine_period + rate->fine_count - 1) / rate->fine_count);
}

/* What passes at once, as time: less than QUOTA_MOST. */
static inline int64_t quota_burst_ns(const struct quota_rate *rate)
{
    return quota_span_ns(rate, rate->limit);
}

/* How many units take no longer than this time, which is not below zero. */
static inline int64_t quota_units(const struct quota_rate *rate, int64_t span_ns)
{
    if (rate->fine_count == 0)
        return span_ns / rate->step;
    return (int64_t)((__int128)span_ns * rate->fine_count / rate->fine_period);
}

/* Does the clock of a zone have a say in it? */
bool quota_has_calendar(const struct quota_rule *rule);

bool quota_rule_is_same(const struct quota_rule *a, const struct quota_rule *b);

/* A rate as it is written. */
struct quota_draft {
    uint64_t count, period_ns;
    enum calendar calendar; /* then there is no period */
    uint64_t burst;         /* 0: not given */
};

/* "5/60s", "1000/month": count and period or calendar; all else is 0. */
__attribute__((warn_unused_result)) bool quota_draft_parse(struct slice text, struct quota_draft *draft, char *why,
                                                           size_t why_size);

/* One more rate for rule->kind. False: `why` says what is wrong with it, and the rule is as it was. */
__attribute__((warn_unused_result)) bool quota_rule_add(struct quota_rule *rule, const struct quota_draft *draft,
                                                        char *why, size_t why_size);

/*
 * One line of a [limit NAME]: its left side, which is funnel, bucket, sliding, approx or fixed, and `text`, its right.
 * For the first line n_rates is 0; another line adds to it. False: the rule is as it was, and `why` says what is wrong.
 */
__attribute__((warn_unused_result)) bool quota_limit_parse(struct slice algorithm, struct slice text,
                                                           struct quota_rule *rule, char *why, size_t why_size);

#endif
