#include "run/commands/fullness.h"

#include <stdio.h>

#include "limit/gate.h"

#define NS_IN_S 1e9

/* The sources. */
struct look {
    struct subjects *tables[2];
    uint64_t now_ns;
    uint32_t block_id; /* what blocks refuse is no use of a limit */
    const struct policy *policy;
    const struct exceptions *exceptions;
    struct snapshot_limit *limits; /* the policy's */
    struct snapshot_limit *end;    /* of all */
};

/* ---- the fullest of each limit ---- */

static bool is_same(const struct top_entry *a, const struct top_entry *b)
{
    return slice_eq(slice_of(a->subject, a->subject_len), slice_of(b->subject, b->subject_len));
}

/* Its place among the holders; a subject is there once, with the most that is known of it. */
static void rank_holder(struct snapshot_limit *limit, const struct top_entry *row, double used)
{
    size_t at = 0;
    while (at < limit->n_holders && !is_same(limit->holders[at].row, row))
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

/* `row`: who it is; NULL: everybody of the policy. */
static void raise_to(struct snapshot_limit *limit, double used, const struct top_entry *row)
{
    struct slice who = row != NULL ? slice_of(row->subject, row->subject_len) : SLICE("");
    used = used < 1 ? used : 1;
    if (row != NULL && used > 0)
        rank_holder(limit, row, used);
    if (used <= limit->used)
        return;
    limit->used = used;
    snprintf(limit->fullest, sizeof limit->fullest, "%.*s", (int)who.len, who.at);
}

/* How much of a funnel is used: 1 when nothing more would pass; above 1 it is in debt. */
static double used_of(const struct account *account, unsigned index, uint64_t now_ns)
{
    const struct limit *limit = &account->policy->limits[index];
    struct standing standing = gate_standing(account, index, now_ns);
    if (unit_is_gauge((enum unit)limit->unit))
        return 1 - (double)standing.remaining / (double)limit->rate.burst;
    return (double)standing.reset_after_ns / (double)rate_span_ns(&limit->rate, limit->rate.burst);
}

/* With a burst of 1 the funnel is full after every command: that says nothing. */
static bool says_something(const struct limit *limit, enum scope scope)
{
    return limit->scope == scope && limit->action != OVER_DENY && limit->rate.burst > 1;
}

/* The row of that limit; NULL: it has none. Those of the policy, then those that only single subjects have. */
static struct snapshot_limit *row_of(const struct look *look, uint16_t id)
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

/* By what binds the holder: a subject may have lines of its own. */
static void look_at_funnels(const struct look *look, const struct policy *bound, struct subject *holder,
                            enum scope scope, const struct top_entry *top)
{
    struct account account = {.policy = bound};
    account.holders[scope] = holder;
    for (unsigned i = 0; i < bound->n_limits; i++) {
        struct snapshot_limit *row =
            says_something(&bound->limits[i], scope) ? row_of(look, bound->limits[i].id) : NULL;
        if (row != NULL)
            raise_to(row, used_of(&account, i, look->now_ns), top);
    }
}

static const struct policy *what_binds(const struct look *look, const struct top_entry *top)
{
    return exceptions_bind(look->exceptions, look->policy, slice_of(top->subject, top->subject_len));
}

static void look_at_subject(const struct look *look, struct subjects *table, const struct top_entry *top)
{
    struct subject *subject = subject_find(table, slice_of(top->subject, top->subject_len));
    if (subject == NULL)
        return;
    if (subject->record == look->policy->record)
        look_at_funnels(look, what_binds(look, top), subject, PER_SUBJECT, top);
    subject_put(table, subject);
}

/* For a limit on all commands the subject's rate counts too, since its commands may come one by one. */
static void look_at_rate(const struct look *look, const struct top_entry *top)
{
    const struct policy *bound = what_binds(look, top);
    for (unsigned i = 0; i < bound->n_limits; i++) {
        const struct limit *limit = &bound->limits[i];
        bool is_whole = limit->unit == UNIT_COMMANDS && slice_eq(class_name(limit->class), SLICE("all"));
        if (!is_whole || limit->scope != PER_SUBJECT || limit->action == OVER_DENY)
            continue;
        double per_s = (double)limit->rate.count * NS_IN_S / (double)limit->rate.period_ns;
        struct snapshot_limit *row = snapshot_rate_is_fast(per_s, limit->rate.burst) ? row_of(look, limit->id) : NULL;
        if (row != NULL)
            raise_to(row, (double)top->per_s / per_s, top);
    }
}

static void look_at_top(const struct look *look, const struct snapshot_top *top, bool is_of_commands)
{
    for (size_t i = 0; i < top->n; i++) {
        const struct top_entry *row = &top->rows[i];
        if (!slice_eq(slice_of(row->policy, row->policy_len), slice_str(look->policy->name)))
            continue;
        look_at_subject(look, look->tables[0], row);
        look_at_subject(look, look->tables[1], row);
        if (is_of_commands && (row->refused_by == TOP_NO_LIMIT || row->refused_by != look->block_id))
            look_at_rate(look, row);
    }
}

void fullness_look(struct snapshot *snapshot, const struct rules *rules, struct subjects *subjects,
                   struct subjects *key_subjects)
{
    const struct policies *policies = rules->policies;
    struct look look = {.tables = {subjects, key_subjects},
                        .now_ns = snapshot->taken_ns,
                        .block_id = snapshot->block_id,
                        .exceptions = rules->exceptions,
                        .limits = snapshot->limits,
                        .end = snapshot->limits + snapshot->n_limits};
    for (size_t p = 0; p < policies_count(policies); p++) {
        look.policy = policies_at(policies, p);
        if (look.policy->record->everybody != NULL)
            look_at_funnels(&look, look.policy, look.policy->record->everybody, PER_POLICY, NULL);
        for (int by = 0; by < TOP_BY_COUNT; by++)
            look_at_top(&look, &snapshot->tops[by], by == TOP_COMMANDS);
        look.limits += look.policy->n_limits;
    }
}
