#include "run/census_limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_IN_S 1e9

_Static_assert(sizeof(((struct snapshot_limit *)0)->policy) > POLICY_NAME_MAX, "a policy's name fits");

static void copy(char *out, size_t room, struct slice text)
{
    snprintf(out, room, "%.*s", (int)text.len, text.at);
}

/* ---- of policies ---- */

void census_sum_tallies(struct snapshot_limit *to, const struct census *census, uint16_t id)
{
    for (unsigned w = 0; census->crew != NULL && w < census->config->workers; w++) {
        const struct tally *tally = &census->settings->tallies[w][id];
        to->admitted += count_read(&tally->admitted);
        to->delayed += count_read(&tally->delayed);
        to->refused += count_read(&tally->refused);
        to->shadowed += count_read(&tally->shadowed);
        to->near += count_read(&tally->near);
    }
}

/* Limits of one line may have the same label: the second becomes label#2. */
static void name_rule(struct snapshot_limit *limits, size_t i, const struct policy *policy, size_t of_policy)
{
    unsigned same = 1;
    for (size_t l = 0; l < of_policy; l++)
        same += strcmp(policy->limits[l].label, policy->limits[of_policy].label) == 0;
    int len = snprintf(limits[i].rule, sizeof limits[i].rule, "%s", policy->limits[of_policy].label);
    if (same > 1)
        snprintf(limits[i].rule + len, sizeof limits[i].rule - (size_t)len, "#%u", same);
}

static void describe(struct snapshot_limit *to, const struct policies *policies, const struct policy *policy,
                     const struct limit *limit)
{
    enum unit unit = (enum unit)limit->unit;
    copy(to->policy, sizeof to->policy, slice_str(policy->name));
    copy(to->unit, sizeof to->unit, unit_name(unit));
    copy(to->scope, sizeof to->scope, scope_name((enum scope)limit->scope));
    copy(to->action, sizeof to->action, action_name((enum action)limit->action));
    limit_print_rate(limit, to->amount);
    to->is_shadow = limit->action == OVER_SHADOW || policies_is_shadow(policies);
    if (limit->action != OVER_DENY) {
        to->burst = limit->rate.burst;
        if (!unit_is_gauge(unit) && limit->rate.period_ns > 0)
            to->per_s = (double)limit->rate.count * NS_IN_S / (double)limit->rate.period_ns;
    }
    to->id = limit->id;
    to->subjects = atomic_load_explicit(&policy->record->subjects, memory_order_relaxed);
}

/* As run/watch.c has seen it; history_note, which sees more of it, may say otherwise. */
static enum limit_state limit_state_of(const struct front_settings *settings, uint16_t id)
{
    if (settings->stopping == NULL)
        return LIMIT_CALM;
    uint8_t stopping = atomic_load_explicit(&settings->stopping[id], memory_order_relaxed);
    if ((stopping & (1 << WHOM_REFUSED | 1 << WHOM_SHADOWED)) != 0)
        return LIMIT_REFUSING;
    return (stopping & 1 << WHOM_DELAYED) != 0 ? LIMIT_DELAYING : LIMIT_CALM;
}

static void take_limit(struct snapshot_limit *to, const struct census *census, const struct policy *policy,
                       const struct limit *limit)
{
    describe(to, governor_rules(census->governor)->policies, policy, limit);
    census_sum_tallies(to, census, limit->id);
    to->state = limit_state_of(census->settings, limit->id);
}

/* ---- those of single subjects ---- */

static bool has_row(const struct snapshot *s, uint16_t id)
{
    for (size_t i = 0; i < s->n_limits; i++)
        if (s->limits[i].id == id)
            return true;
    return false;
}

/* Not as any other row: as name_rule does it. */
static void name_only_own(const struct snapshot *s, struct snapshot_limit *to, const char *label)
{
    unsigned same = 1;
    size_t len = strlen(label);
    for (const struct snapshot_limit *at = s->limits; at < to; at++)
        same += strncmp(at->rule, label, len) == 0 && (at->rule[len] == '\0' || at->rule[len] == '#');
    snprintf(to->rule, sizeof to->rule, "%s", label);
    if (same > 1)
        snprintf(to->rule + len, sizeof to->rule - len, "#%u", same);
}

/* The policy has no such line: what single subjects have of it is a row of its own. */
static void add_only_own(struct snapshot *s, const struct census *census, const struct policy *policy,
                         const struct limit *limit)
{
    struct snapshot_limit *to = &s->limits[s->n_limits++];
    name_only_own(s, to, limit->label);
    take_limit(to, census, policy, limit);
    to->is_only_own = true;
    to->per_s = 0;
    to->burst = 0;
    to->amount[0] = '\0';
}

static void add_own(struct snapshot *s, const struct census *census, const struct variant *variant,
                    const struct limit *limit)
{
    if (s->n_all_owns++ >= SNAPSHOT_OWNS)
        return;
    struct snapshot_own *own = &s->owns[s->n_owns++];
    own->id = limit->id;
    own->until_ns = limit->until_ns;
    copy(own->rule, sizeof own->rule, slice_str(limit->label));
    copy(own->subject, sizeof own->subject, slice_str(variant->subject));
    copy(own->action, sizeof own->action, action_name((enum action)limit->action));
    limit_print_rate(limit, own->amount);
    if (!has_row(s, limit->id))
        add_only_own(s, census, variant->policy, limit);
}

static void take_owns(struct snapshot *s, const struct census *census)
{
    const struct variants *variants = exceptions_variants(governor_rules(census->governor)->exceptions);
    for (size_t i = 0; i < variants->n; i++)
        for (size_t l = 0; l < variants->at[i].policy->n_limits; l++)
            if (variants->at[i].policy->limits[l].is_own)
                add_own(s, census, &variants->at[i], &variants->at[i].policy->limits[l]);
}

bool census_take_limits(struct snapshot *s, const struct census *census)
{
    const struct rules *rules = governor_rules(census->governor);
    size_t n_owns = exceptions_variants(rules->exceptions)->n > 0 ? SNAPSHOT_OWNS : 0;
    size_t n = 0;
    for (size_t p = 0; p < policies_count(rules->policies); p++)
        n += policies_at(rules->policies, p)->n_limits;
    s->limits = calloc(n + n_owns + 1, sizeof *s->limits);
    s->owns = calloc(n_owns + 1, sizeof *s->owns);
    if (s->limits == NULL || s->owns == NULL)
        return false;
    for (size_t p = 0; p < policies_count(rules->policies); p++) {
        const struct policy *policy = policies_at(rules->policies, p);
        struct snapshot_limit *of_policy = s->limits + s->n_limits;
        for (size_t l = 0; l < policy->n_limits; l++, s->n_limits++) {
            name_rule(of_policy, l, policy, l);
            take_limit(&of_policy[l], census, policy, &policy->limits[l]);
        }
    }
    take_owns(s, census);
    return true;
}

/* ---- named ones ---- */

bool census_take_named(struct snapshot *s, const struct census *census)
{
    const struct named *named = governor_rules(census->governor)->named;
    s->n_named = named_count(named);
    s->named = calloc(s->n_named + 1, sizeof *s->named);
    if (s->named == NULL)
        return false;
    for (size_t i = 0; i < s->n_named; i++) {
        const struct named_limit *limit = named_at(named, i);
        copy(s->named[i].name, sizeof s->named[i].name, slice_str(limit->name));
        copy(s->named[i].rates, sizeof s->named[i].rates, slice_str(limit->rates));
        s->named[i].algorithm = quota_algorithm(limit->rule.kind)->name;
        s->named[i].is_shadow = limit->is_shadow;
        if (quota_has_calendar(&limit->rule))
            copy(s->named[i].zone, sizeof s->named[i].zone, slice_str(zone_name(limit->rule.zone)));
        if (limit->penalty_text != NULL)
            copy(s->named[i].penalty, sizeof s->named[i].penalty, slice_str(limit->penalty_text));
        s->named[i].overrides = shared_set_count_living(limit->overrides, s->taken_ns);
        for (int r = 0; r < TALLY_RESULTS; r++)
            s->named[i].results[r] = count_read(&limit->tally->results[r]);
        counts_add(&s->named[i].times, &limit->tally->times, sizeof s->named[i].times);
    }
    return true;
}
