#include "limit/trial.h"

uint64_t trial_wait_ahead(const struct trial *trial, const struct limit *limit)
{
    const struct queue queue = trial_queue(trial, limit);
    return queue_wait_ahead(&queue, trial_units(trial, limit), trial->ask->now_ns);
}

void trial_count(const struct trial *trial, const struct limit *limit, enum gate what, bool is_shadow)
{
    if (trial->tallies == NULL)
        return;
    struct tally *tally = &trial->tallies[limit->id];
    tally_add(is_shadow ? &tally->shadowed : what == GATE_WAIT ? &tally->delayed : &tally->refused, 1);
}

void settle_rarely(const struct policy *policy, struct subject *holder, enum scope scope, uint64_t now_ns)
{
    struct rate_table *table = subject_is_common(holder) ? policy->common[scope] : policy->rates[scope];
    const struct rate_table *has = atomic_load_explicit(&holder->rates, memory_order_relaxed);
    if (table == NULL || table == has)
        return;
    /* A connection's own holder meets no older rules, but other subjects' rates. */
    if (has == NULL || scope == PER_CONNECTION || table->order > has->order)
        subject_convert(holder, table, now_ns);
}

void settle_all(const struct account *account, uint64_t now_ns)
{
    for (int scope = 0; scope < SCOPE_COUNT; scope++)
        if (account->holders[scope] != NULL)
            settle_rarely(account->policy, account->holders[scope], (enum scope)scope, now_ns);
}
