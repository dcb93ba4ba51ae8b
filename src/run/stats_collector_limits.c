/* The limits of a snapshot: their counters, and how much of each is used. */
#include "run/stats_collector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limit/gate.h"

#define NS_IN_S 1e9

_Static_assert(sizeof(((struct snapshot_limit *)0)->policy) > POLICY_NAME_MAX,
               "a policy's name fits");

static void stats_collector_limits_copy(char *out, size_t room, struct slice text)
{
    snprintf(out, room, "%.*s", (int)text.len, text.at);
}

/* ---- limits of policies ---- */

void collector_sum_counters(struct snapshot_limit *to, const struct stats_collector *collector,
                            uint16_t id)
{
    for (unsigned w = 0; collector->pool != NULL && w < collector->config->workers; w++) {
        const struct limit_counters *counters = &collector->settings->limit_counters[w][id];
        to->admitted += count_read(&counters->admitted);
        to->delayed += count_read(&counters->delayed);
        to->refused += count_read(&counters->refused);
        to->shadowed += count_read(&counters->shadowed);
        to->near += count_read(&counters->near);
    }
}

/* Two limits of one policy may have equal labels: the second limit becomes label#2. */
static void name_rule(struct snapshot_limit *limits, size_t i, const struct policy *policy,
                      size_t of_policy)
{
    unsigned same = 1;
    for (size_t l = 0; l < of_policy; l++)
        same += strcmp(policy->limits[l].label, policy->limits[of_policy].label) == 0;
    int len =
        snprintf(limits[i].rule, sizeof limits[i].rule, "%s", policy->limits[of_policy].label);
    if (same > 1)
        snprintf(limits[i].rule + len, sizeof limits[i].rule - (size_t)len, "#%u", same);
}

static void stats_collector_limits_describe(struct snapshot_limit *to,
                                            const struct policies *policies,
                                            const struct policy *policy, const struct limit *limit)
{
    enum unit unit = (enum unit)limit->unit;
    stats_collector_limits_copy(to->policy, sizeof to->policy, slice_str(policy->name));
    stats_collector_limits_copy(to->unit, sizeof to->unit, unit_name(unit));
    stats_collector_limits_copy(to->scope, sizeof to->scope, scope_name((enum scope)limit->scope));
    stats_collector_limits_copy(to->action, sizeof to->action,
                                action_name((enum action)limit->action));
    limit_print_rate(limit, to->amount);
    to->is_shadow = limit->action == OVER_SHADOW || policies_is_shadow(policies);
    if (limit->action != OVER_DENY) {
        to->burst = limit->rate.burst;
        if (!unit_is_gauge(unit) && limit->rate.period_ns > 0)
            to->per_s = (double)limit->rate.count * NS_IN_S / (double)limit->rate.period_ns;
    }
    to->id = limit->id;
    to->subjects = atomic_load_explicit(&policy->policy_state->subjects, memory_order_relaxed);
}

/*
 * Returns the limit's state as run/watch.c has noted it. history_note knows earlier snapshots, and
 * may set another state.
 */
static enum limit_state limit_state_of(const struct front_settings *settings, uint16_t id)
{
    if (settings->stopping == NULL)
        return LIMIT_CALM;
    uint8_t stopping = atomic_load_explicit(&settings->stopping[id], memory_order_relaxed);
    if ((stopping & (1 << OFFENDER_REFUSED | 1 << OFFENDER_SHADOWED)) != 0)
        return LIMIT_REFUSING;
    return (stopping & 1 << OFFENDER_DELAYED) != 0 ? LIMIT_DELAYING : LIMIT_CALM;
}

static void stats_collector_limits_take_limit(struct snapshot_limit *to,
                                              const struct stats_collector *collector,
                                              const struct policy *policy,
                                              const struct limit *limit)
{
    stats_collector_limits_describe(to, config_manager_rules(collector->manager)->policies, policy,
                                    limit);
    collector_sum_counters(to, collector, limit->id);
    to->state = limit_state_of(collector->settings, limit->id);
}

/* ---- limits of single subjects ---- */

static bool stats_collector_limits_has_row(const struct snapshot *s, uint16_t id)
{
    for (size_t i = 0; i < s->n_limits; i++)
        if (s->limits[i].id == id)
            return true;
    return false;
}

/* Writes a rule name that no other row has: label, label#2 ... as name_rule does. */
static void name_only_own(const struct snapshot *s, struct snapshot_limit *to, const char *label)
{
    unsigned same = 1;
    size_t len = strlen(label);
    for (const struct snapshot_limit *at = s->limits; at < to; at++)
        same +=
            strncmp(at->rule, label, len) == 0 && (at->rule[len] == '\0' || at->rule[len] == '#');
    snprintf(to->rule, sizeof to->rule, "%s", label);
    if (same > 1)
        snprintf(to->rule + len, sizeof to->rule - len, "#%u", same);
}

/* Adds a row for a limit that single subjects have and their policy lacks. */
static void add_only_own(struct snapshot *s, const struct stats_collector *collector,
                         const struct policy *policy, const struct limit *limit)
{
    struct snapshot_limit *to = &s->limits[s->n_limits++];
    name_only_own(s, to, limit->label);
    stats_collector_limits_take_limit(to, collector, policy, limit);
    to->is_only_own = true;
    to->per_s = 0;
    to->burst = 0;
    to->amount[0] = '\0';
}

static void add_own(struct snapshot *s, const struct stats_collector *collector,
                    const struct variant *variant, const struct limit *limit)
{
    if (s->n_all_owns++ >= SNAPSHOT_OWNS)
        return;
    struct snapshot_own *own = &s->owns[s->n_owns++];
    own->id = limit->id;
    own->until_ns = limit->until_ns;
    stats_collector_limits_copy(own->rule, sizeof own->rule, slice_str(limit->label));
    stats_collector_limits_copy(own->subject, sizeof own->subject, slice_str(variant->subject));
    stats_collector_limits_copy(own->action, sizeof own->action,
                                action_name((enum action)limit->action));
    limit_print_rate(limit, own->amount);
    if (!stats_collector_limits_has_row(s, limit->id))
        add_only_own(s, collector, variant->policy, limit);
}

static void take_owns(struct snapshot *s, const struct stats_collector *collector)
{
    const struct variants *variants =
        exceptions_variants(config_manager_rules(collector->manager)->exceptions);
    for (size_t i = 0; i < variants->n; i++)
        for (size_t l = 0; l < variants->at[i].policy->n_limits; l++)
            if (variants->at[i].policy->limits[l].is_own)
                add_own(s, collector, &variants->at[i], &variants->at[i].policy->limits[l]);
}

bool collector_take_limits(struct snapshot *s, const struct stats_collector *collector)
{
    const struct rules *rules = config_manager_rules(collector->manager);
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
            stats_collector_limits_take_limit(&of_policy[l], collector, policy, &policy->limits[l]);
        }
    }
    take_owns(s, collector);
    return true;
}

/* ---- named limits ---- */

bool collector_take_named(struct snapshot *s, const struct stats_collector *collector)
{
    const struct named *named = config_manager_rules(collector->manager)->named;
    s->n_named = named_count(named);
    s->named = calloc(s->n_named + 1, sizeof *s->named);
    if (s->named == NULL)
        return false;
    for (size_t i = 0; i < s->n_named; i++) {
        const struct named_limit *limit = named_at(named, i);
        stats_collector_limits_copy(s->named[i].name, sizeof s->named[i].name,
                                    slice_str(limit->name));
        stats_collector_limits_copy(s->named[i].rates, sizeof s->named[i].rates,
                                    slice_str(limit->rates));
        s->named[i].algorithm = quota_algorithm(limit->rule.kind)->name;
        s->named[i].is_shadow = limit->is_shadow;
        if (quota_has_calendar(&limit->rule))
            stats_collector_limits_copy(s->named[i].zone, sizeof s->named[i].zone,
                                        slice_str(zone_name(limit->rule.zone)));
        if (limit->penalty_text != NULL)
            stats_collector_limits_copy(s->named[i].penalty, sizeof s->named[i].penalty,
                                        slice_str(limit->penalty_text));
        s->named[i].overrides = shared_set_count_living(limit->overrides, s->taken_ns);
        for (int r = 0; r < NAMED_RESULTS; r++)
            s->named[i].results[r] = count_read(&limit->counters->results[r]);
        counts_add(&s->named[i].times, &limit->counters->times, sizeof s->named[i].times);
    }
    return true;
}

/* ---- usage of limits ---- */

/* One policy, and the sources from which the usage of its limits is read. */
struct look {
    struct subjects *tables[2];
    uint64_t now_ns;
    uint32_t block_id; /* limit id of refusals by blocks, which use no limit */
    const struct policy *policy;
    const struct exceptions *exceptions;
    struct snapshot_limit *limits; /* the first row of the policy */
    struct snapshot_limit *end;    /* the end of all rows */
};

/* ---- the subjects that use a limit most ---- */

static bool stats_collector_limits_is_same(const struct top_entry *a, const struct top_entry *b)
{
    return slice_eq(slice_of(a->subject, a->subject_len), slice_of(b->subject, b->subject_len));
}

/*
 * Inserts the subject among the limit's holders, highest usage first. A subject is listed once,
 * with its highest usage.
 */
static void rank_holder(struct snapshot_limit *limit, const struct top_entry *row, double used)
{
    size_t at = 0;
    while (at < limit->n_holders && !stats_collector_limits_is_same(limit->holders[at].row, row))
        at++;
    if (at == limit->n_holders) {
        if (at == SNAPSHOT_HOLDERS && limit->holders[--at].used >= used)
            return;
        limit->n_holders = at + 1;
    } else if (limit->holders[at].used >= used) {
        return;
    }
    for (; at > 0 && limit->holders[at - 1].used < used; at--)
        limit->holders[at] = limit->holders[at - 1];
    limit->holders[at] = (struct snapshot_holder){row, used};
}

/*
 * Raises the limit's usage to `used`. `row`: the subject that uses it; NULL: all subjects of the
 * policy.
 */
static void raise_to(struct snapshot_limit *limit, double used, const struct top_entry *row)
{
    struct slice fullest_name = row != NULL ? slice_of(row->subject, row->subject_len) : SLICE("");
    used = used < 1 ? used : 1;
    if (row != NULL && used > 0)
        rank_holder(limit, row, used);
    if (used <= limit->used)
        return;
    limit->used = used;
    snprintf(limit->fullest, sizeof limit->fullest, "%.*s", (int)fullest_name.len, fullest_name.at);
}

/*
 * Returns how much of a funnel is used: 1 when nothing more would pass, above 1 when the funnel is
 * in debt.
 */
static double stats_collector_limits_used_of(const struct charge_target *target, unsigned index,
                                             uint64_t now_ns)
{
    const struct limit *limit = &target->policy->limits[index];
    struct standing standing = gate_standing(target, index, now_ns);
    if (unit_is_gauge((enum unit)limit->unit))
        return 1 - (double)standing.remaining / (double)limit->rate.burst;
    return (double)standing.reset_after_ns / (double)rate_span_ns(&limit->rate, limit->rate.burst);
}

/*
 * True if the limit's usage is meaningful. With a burst of 1 the funnel is full after every
 * command.
 */
static bool says_something(const struct limit *limit, enum scope scope)
{
    return limit->scope == scope && limit->action != OVER_DENY && limit->rate.burst > 1;
}

/*
 * Returns the row of the limit with this id: the policy's rows first, then rows that only single
 * subjects have. NULL: none.
 */
static struct snapshot_limit *stats_collector_limits_row_of(const struct look *look, uint16_t id)
{
    for (unsigned i = 0; i < look->policy->n_limits; i++)
        if (look->limits[i].id == id)
            return &look->limits[i];
    struct snapshot_limit *at = look->end;
    while (at > look->limits && at[-1].is_only_own)
        if ((--at)->id == id)
            return at;
    return NULL;
}

/*
 * Reads the holder's funnels. `bound`: the policy that binds the holder, perhaps with lines for
 * this subject alone.
 */
static void look_at_funnels(const struct look *look, const struct policy *bound,
                            struct subject *holder, enum scope scope, const struct top_entry *top)
{
    struct charge_target target = {.policy = bound};
    target.holders[scope] = holder;
    for (unsigned i = 0; i < bound->n_limits; i++) {
        struct snapshot_limit *row = says_something(&bound->limits[i], scope)
                                         ? stats_collector_limits_row_of(look, bound->limits[i].id)
                                         : NULL;
        if (row != NULL)
            raise_to(row, stats_collector_limits_used_of(&target, i, look->now_ns), top);
    }
}

static const struct policy *what_binds(const struct look *look, const struct top_entry *top)
{
    return exceptions_bind(look->exceptions, look->policy,
                           slice_of(top->subject, top->subject_len));
}

static void look_at_subject(const struct look *look, struct subjects *table,
                            const struct top_entry *top)
{
    struct subject *subject = subject_find(table, slice_of(top->subject, top->subject_len));
    if (subject == NULL)
        return;
    if (subject->policy_state == look->policy->policy_state)
        look_at_funnels(look, what_binds(look, top), subject, PER_SUBJECT, top);
    subject_put(table, subject);
}

/*
 * Raises the usage of limits on all commands to the subject's rate. The funnel alone shows too
 * little: commands that come one by one leave the funnel empty.
 */
static void look_at_rate(const struct look *look, const struct top_entry *top)
{
    const struct policy *bound = what_binds(look, top);
    for (unsigned i = 0; i < bound->n_limits; i++) {
        const struct limit *limit = &bound->limits[i];
        bool is_whole =
            limit->unit == UNIT_COMMANDS && slice_eq(class_name(limit->class), SLICE("all"));
        if (!is_whole || limit->scope != PER_SUBJECT || limit->action == OVER_DENY)
            continue;
        double per_s = (double)limit->rate.count * NS_IN_S / (double)limit->rate.period_ns;
        struct snapshot_limit *row = snapshot_rate_is_fast(per_s, limit->rate.burst)
                                         ? stats_collector_limits_row_of(look, limit->id)
                                         : NULL;
        if (row != NULL)
            raise_to(row, (double)top->per_s / per_s, top);
    }
}

static void look_at_top(const struct look *look, const struct snapshot_top *top,
                        bool is_of_commands)
{
    for (size_t i = 0; i < top->n; i++) {
        const struct top_entry *row = &top->rows[i];
        if (!slice_eq(slice_of(row->policy, row->policy_len), slice_str(look->policy->name)))
            continue;
        look_at_subject(look, look->tables[0], row);
        look_at_subject(look, look->tables[1], row);
        if (is_of_commands &&
            (row->refused_by == TOP_NO_LIMIT || row->refused_by != look->block_id))
            look_at_rate(look, row);
    }
}

void collector_take_usage(struct snapshot *snapshot, const struct stats_collector *collector)
{
    const struct rules *rules = config_manager_rules(collector->manager);
    const struct policies *policies = rules->policies;
    struct look look = {
        .tables = {collector->settings->subjects, collector->settings->key_subjects},
        .now_ns = snapshot->taken_ns,
        .block_id = snapshot->block_id,
        .exceptions = rules->exceptions,
        .limits = snapshot->limits,
        .end = snapshot->limits + snapshot->n_limits};
    for (size_t p = 0; p < policies_count(policies); p++) {
        look.policy = policies_at(policies, p);
        if (look.policy->policy_state->everybody != NULL)
            look_at_funnels(&look, look.policy, look.policy->policy_state->everybody, PER_POLICY,
                            NULL);
        for (int by = 0; by < TOP_BY_COUNT; by++)
            look_at_top(&look, &snapshot->tops[by], by == TOP_COMMANDS);
        look.limits += look.policy->n_limits;
    }
}
