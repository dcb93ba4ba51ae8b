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
