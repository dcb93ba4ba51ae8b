/* All divisions for a rate are done once, here. A decision then needs multiplications only. */
#include "quota/rule.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/slice.h"
#include "base/why.h"
#include "limit/funnel.h"
#include "limit/policy/rate.h"

bool quota_has_calendar(const struct quota_rule *rule)
{
    for (unsigned i = 0; i < rule->n_rates; i++)
        if (rule->rates[i].calendar != CALENDAR_NONE)
            return true;
    return false;
}

bool quota_rule_is_same(const struct quota_rule *a, const struct quota_rule *b)
{
    if (a->kind != b->kind || a->n_rates != b->n_rates || a->zone_id != b->zone_id)
        return false;
    for (unsigned i = 0; i < a->n_rates; i++)
        if (a->rates[i].limit != b->rates[i].limit || a->rates[i].step != b->rates[i].step ||
            a->rates[i].calendar != b->rates[i].calendar ||
            a->rates[i].fine_count != b->rates[i].fine_count ||
            a->rates[i].fine_period != b->rates[i].fine_period)
            return false;
    return true;
}

/* ---- one rate ---- */

static bool make_funnel(const struct rate_text *text, struct quota_rate *made, char *why,
                        size_t why_size)
{
    struct rate rate;
    uint64_t burst = text->burst > 0 ? text->burst : text->count;
    if (!rate_init(&rate, text->count, text->period_ns, burst) || rate.burst_ns >= QUOTA_MOST - 1)
        return why_set(why, why_size,
                       "a burst of %" PRIu64
                       " at this rate takes more than 104 days to drain: give a smaller burst",
                       burst);
    *made = (struct quota_rate){.limit = (int64_t)rate.burst, .step = (int64_t)rate.interval_ns};
    if (rate_is_fine(&rate)) {
        made->fine_count = (int64_t)rate.count;
        made->fine_period = (int64_t)rate.period_ns;
    }
    return true;
}

static bool make_window(enum quota_kind kind, const struct rate_text *text, struct quota_rate *made,
                        char *why, size_t why_size)
{
    if (text->burst > 0)
        return why_set(why, why_size, "%s takes no burst: its whole count passes at once",
                       quota_algorithm((uint8_t)kind)->name);
    if (kind == QUOTA_SLIDING && text->count > QUOTA_LOG_MAX)
        return why_set(why, why_size,
                       "an exact sliding window counts at most %d units: use APPROX for more",
                       QUOTA_LOG_MAX);
    if (text->count >= QUOTA_MOST)
        return why_set(why, why_size, "the count is too large");
    *made = (struct quota_rate){.limit = (int64_t)text->count,
                                .step = (int64_t)(text->period_ns / NS_PER_US),
                                .calendar = (uint8_t)text->calendar};
    return true;
}

bool quota_rule_add(struct quota_rule *rule, const struct rate_text *text, char *why,
                    size_t why_size)
{
    if (rule->n_rates == QUOTA_RATES_MAX)
        return why_set(why, why_size, "too many rates: at most %d", QUOTA_RATES_MAX);
    if (text->calendar != CALENDAR_NONE && rule->kind != QUOTA_FIXED)
        return why_set(why, why_size, "day, week and month are for FIXED, not %s",
                       quota_algorithm(rule->kind)->name);
    struct quota_rate *rate = &rule->rates[rule->n_rates];
    bool is_window = quota_algorithm(rule->kind)->family == FAMILY_WINDOW;
    bool is_made = is_window ? make_window((enum quota_kind)rule->kind, text, rate, why, why_size)
                             : make_funnel(text, rate, why, why_size);
    rule->n_rates = (uint8_t)(rule->n_rates + is_made);
    return is_made;
}

/* ---- lines of the configuration ---- */

static struct slice algorithm_name(const void *arg, size_t i)
{
    (void)arg;
    return slice_str(quota_algorithm((uint8_t)i)->name);
}

/* Returns how many algorithms have is_named. The rows of these algorithms come first. */
static size_t n_named(void)
{
    uint8_t n = 0;
    while (n < QUOTA_KINDS && quota_algorithm(n)->is_named)
        n++;
    return n;
}

static bool find_algorithm(struct slice name, enum quota_kind *kind, char *why, size_t why_size)
{
    *kind = quota_named_kind(name);
    if (*kind != QUOTA_KINDS)
        return true;
    struct slice near = near_name(name, n_named(), algorithm_name, NULL);
    if (near.len > 0)
        return why_set(why, why_size, "unknown algorithm \"%.*s\" (did you mean %.*s?)",
                       WHY_SLICE(name), WHY_SLICE(near));
    return why_set(why, why_size,
                   "unknown algorithm \"%.*s\": write funnel, bucket, sliding, approx or fixed",
                   WHY_SLICE(name));
}

/* Reads "5/60s burst 10". */
static bool read_rate(struct slice line, struct rate_text *rate, char *why, size_t why_size)
{
    struct slice word;
    if (!split_word(&line, &word))
        return why_set(why, why_size,
                       "a rate is missing: write COUNT/PERIOD, like 1000/s or 5/60s");
    if (!rate_parse(word, RATE_OF_CALENDAR, rate, why, why_size))
        return false;
    while (split_word(&line, &word)) {
        if (!slice_eq_nocase(word, SLICE("burst")))
            return why_set(why, why_size, "unknown clause \"%.*s\": only burst may follow a rate",
                           WHY_SLICE(word));
        if (rate->burst > 0)
            return why_set(why, why_size, "\"burst\" is given twice");
        if (!split_word(&line, &word))
            return why_set(why, why_size, "\"burst\" is the last word: its value is missing");
        if (!rate_parse_burst(word, RATE_OF_UNITS, &rate->burst, why, why_size))
            return false;
    }
    return true;
}

bool quota_limit_parse(struct slice algorithm, struct slice text, struct quota_rule *rule,
                       char *why, size_t why_size)
{
    enum quota_kind kind = QUOTA_KINDS;
    if (!find_algorithm(algorithm, &kind, why, why_size))
        return false;
    if (rule->n_rates > 0 && rule->kind != kind)
        return why_set(why, why_size, "a limit has one algorithm, and this limit already has %s",
                       quota_algorithm(rule->kind)->name);
    struct quota_rule read = *rule;
    read.kind = (uint8_t)kind;
    struct slice part;
    while (split_next(&text, ',', &part)) {
        struct rate_text rate;
        if (!read_rate(part, &rate, why, why_size) || !quota_rule_add(&read, &rate, why, why_size))
            return false;
    }
    *rule = read;
    return true;
}
