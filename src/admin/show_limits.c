/*
 * Metrics about limits, which the label `rule` names; the first METRICS_RULES have series of their own.
 */
#include "admin/show.h"

static void put_decisions(struct sheet *s, const char *rule, const struct snapshot_limit *limit)
{
    put(s, LABELS({"rule", rule}, {"decision", "allowed"}), limit->admitted);
    put(s, LABELS({"rule", rule}, {"decision", "throttled"}), limit->refused);
    put(s, LABELS({"rule", rule}, {"decision", "delayed"}), limit->delayed);
    put(s, LABELS({"rule", rule}, {"decision", "shadow_throttled"}), limit->shadowed);
}

static size_t n_rules(const struct sheet *s)
{
    return s->snapshot->n_limits < METRICS_RULES ? s->snapshot->n_limits : METRICS_RULES;
}

void show_decisions(struct sheet *s)
{
    struct snapshot_limit others = {0};
    for (size_t i = 0; i < n_rules(s); i++)
        put_decisions(s, s->snapshot->limits[i].rule, &s->snapshot->limits[i]);
    for (size_t i = METRICS_RULES; i < s->snapshot->n_limits; i++) {
        others.admitted += s->snapshot->limits[i].admitted;
        others.refused += s->snapshot->limits[i].refused;
        others.delayed += s->snapshot->limits[i].delayed;
        others.shadowed += s->snapshot->limits[i].shadowed;
    }
    put_decisions(s, "_other", &others);
}

void show_rates(struct sheet *s)
{
    for (size_t i = 0; i < n_rules(s); i++)
        put_real(s, LABELS({"rule", s->snapshot->limits[i].rule}), s->snapshot->limits[i].per_s);
}

/* One number for each rule. */
static void put_each(struct sheet *s, uint64_t (*number)(const struct snapshot_limit *limit))
{
    for (size_t i = 0; i < n_rules(s); i++)
        put(s, LABELS({"rule", s->snapshot->limits[i].rule}), number(&s->snapshot->limits[i]));
}

static uint64_t burst(const struct snapshot_limit *limit)
{
    return limit->burst;
}

static uint64_t tracked(const struct snapshot_limit *limit)
{
    return limit->subjects;
}

static uint64_t near(const struct snapshot_limit *limit)
{
    return limit->near;
}

void show_bursts(struct sheet *s)
{
    put_each(s, burst);
}

void show_tracked(struct sheet *s)
{
    put_each(s, tracked);
}

/* The others together under _other. */
void show_near(struct sheet *s)
{
    uint64_t others = 0;
    put_each(s, near);
    for (size_t i = METRICS_RULES; i < s->snapshot->n_limits; i++)
        others += s->snapshot->limits[i].near;
    put(s, LABELS({"rule", "_other"}), others);
}

void show_rules(struct sheet *s)
{
    for (size_t i = 0; i < n_rules(s); i++) {
        const struct snapshot_limit *limit = &s->snapshot->limits[i];
        put(s,
            LABELS({"rule", limit->rule}, {"policy", limit->policy}, {"unit", limit->unit}, {"scope", limit->scope},
                   {"over", limit->action}, {"mode", limit->is_shadow ? "shadow" : "enforce"}),
            1);
    }
}

void show_subjects(struct sheet *s)
{
    put(s, LABELS({"of", "connections"}), s->snapshot->subjects);
    put(s, LABELS({"of", "keys"}), s->snapshot->key_subjects);
}

void show_subjects_limit(struct sheet *s)
{
    put(s, NO_LABELS, s->snapshot->max_subjects);
}

void show_overflow(struct sheet *s)
{
    put(s, NO_LABELS, s->snapshot->is_overflowed);
}

void show_blocks(struct sheet *s)
{
    put(s, NO_LABELS, s->snapshot->blocks);
}

void show_blocked(struct sheet *s)
{
    put(s, NO_LABELS, s->snapshot->blocked_commands);
}

void show_delays(struct sheet *s)
{
    put_histo(s, &s->snapshot->counts.times.delay);
}

void show_share_waits(struct sheet *s)
{
    put_histo(s, &s->snapshot->counts.times.share);
}

/* ---- named limits: the first METRICS_RULES, and all others as _other ---- */

static size_t n_named(const struct sheet *s)
{
    return s->snapshot->n_named < METRICS_RULES ? s->snapshot->n_named : METRICS_RULES;
}

static void put_results(struct sheet *s, const char *name, const uint64_t *results)
{
    static const char *const words[TALLY_RESULTS] = {[TALLY_PASSED] = "passed",
                                                     [TALLY_LIMITED] = "limited",
                                                     [TALLY_SHADOWED] = "shadow_limited",
                                                     [TALLY_ERROR] = "error"};
    for (int r = 0; r < TALLY_RESULTS; r++)
        put(s, LABELS({"limit", name}, {"result", words[r]}), results[r]);
}

void show_named(struct sheet *s)
{
    uint64_t others[TALLY_RESULTS] = {0};
    for (size_t i = 0; i < n_named(s); i++)
        put_results(s, s->snapshot->named[i].name, s->snapshot->named[i].results);
    for (size_t i = METRICS_RULES; i < s->snapshot->n_named; i++)
        for (int r = 0; r < TALLY_RESULTS; r++)
            others[r] += s->snapshot->named[i].results[r];
    put_results(s, "_other", others);
}

void show_named_times(struct sheet *s)
{
    struct histo others = {0};
    for (size_t i = 0; i < n_named(s); i++)
        put_histo_of(s, "limit", s->snapshot->named[i].name, &s->snapshot->named[i].times);
    for (size_t i = METRICS_RULES; i < s->snapshot->n_named; i++)
        counts_add(&others, &s->snapshot->named[i].times, sizeof others);
    put_histo_of(s, "limit", "_other", &others);
}

void show_named_info(struct sheet *s)
{
    for (size_t i = 0; i < n_named(s); i++) {
        const struct snapshot_named *named = &s->snapshot->named[i];
        put(s,
            LABELS({"limit", named->name}, {"algorithm", named->algorithm}, {"rates", named->rates},
                   {"tz", named->zone}, {"penalty", named->penalty}, {"over", named->is_shadow ? "shadow" : "refuse"}),
            1);
    }
}

void show_named_overrides(struct sheet *s)
{
    size_t others = 0;
    for (size_t i = 0; i < n_named(s); i++)
        put(s, LABELS({"limit", s->snapshot->named[i].name}), s->snapshot->named[i].overrides);
    for (size_t i = METRICS_RULES; i < s->snapshot->n_named; i++)
        others += s->snapshot->named[i].overrides;
    put(s, LABELS({"limit", "_other"}), others);
}
