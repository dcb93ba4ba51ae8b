#include "limit/trial.h"

uint64_t trial_wait_ahead(const struct trial *trial, const struct limit *limit)
{
    const struct queue queue = trial_queue(trial, limit);
    return queue_wait_ahead(&queue, trial_units(trial, limit), trial->ask->now_ns);
}

void trial_count(const struct trial *trial, const struct limit *limit, enum gate what,
                 bool is_shadow)
{
    if (trial->limit_counters == NULL)
        return;
    struct limit_counters *counters = &trial->limit_counters[limit->id];
    counter_add(is_shadow           ? &counters->shadowed
                : what == GATE_WAIT ? &counters->delayed
                                    : &counters->refused,
                1);
}

void settle_rarely(const struct policy *policy, struct subject *holder, enum scope scope,
                   uint64_t now_ns)
{
    struct rate_table *table =
        subject_is_common(holder) ? policy->common[scope] : policy->rates[scope];
    const struct rate_table *has = atomic_load_explicit(&holder->rates, memory_order_relaxed);
    if (table == NULL || table == has)
        return;
    /*
     * The holder of a connection never meets older rules, but may meet the rates of other subjects.
     */
    if (has == NULL || scope == PER_CONNECTION || table->order > has->order)
        subject_convert(holder, table, now_ns);
}

void settle_all(const struct charge_target *target, uint64_t now_ns)
{
    for (int scope = 0; scope < SCOPE_COUNT; scope++)
        if (target->holders[scope] != NULL)
            settle_rarely(target->policy, target->holders[scope], (enum scope)scope, now_ns);
}

/* ---- positions ---- */

/* The position of the command in the limit's queue; NULL: none. */
static struct kept_position *position_with(struct queue_positions *positions,
                                           const struct limit *limit)
{
    for (unsigned i = 0; i < positions->n; i++)
        if (positions->kept[i].id == limit->id)
            return &positions->kept[i];
    return NULL;
}

uint64_t gate_positions_had(const struct trial *trial, uint64_t delays)
{
    const struct queue_positions *positions = trial->ask->positions;
    uint64_t had = 0;
    for (; delays; delays &= delays - 1) {
        uint16_t id = trial_limit(trial, lowest(delays))->id;
        bool has_had = trial->ask->waited_for == id + 1U;
        for (unsigned i = 0; positions != NULL && i < positions->n; i++)
            has_had |= positions->kept[i].id == id;
        had |= has_had ? delays & -delays : 0;
    }
    return had;
}

/*
 * Takes and charges a position. The subject is locked, and the charge builds on the current word.
 */
static struct kept_position take_position(const struct trial *trial, unsigned index)
{
    const struct limit *limit = trial_limit(trial, index);
    const struct queue queue = trial_queue(trial, limit);
    uint64_t units = trial_units(trial, limit);
    uint64_t now_ns = trial->ask->now_ns;
    const struct kept_position position =
        trial->had != 0 ? queue_join_ahead(&queue, units, now_ns)
                        : queue_join(&queue, units, now_ns, trial_wait(trial, index));
    trial_note_admitted(trial, index, units);
    return position;
}

/*
 * A dry decision keeps no position. Limits on bytes have no positions, since the bytes are not
 * known yet.
 */
static void keep_position(const struct trial *trial, unsigned index,
                          struct queue_positions *positions)
{
    if (trial->limit_counters == NULL || !limit_has_positions(trial_limit(trial, index)) ||
        positions->n >= QUEUE_POSITIONS_MAX)
        return;
    positions->kept[positions->n] = take_position(trial, index);
    queue_wait(&positions->kept[positions->n++]);
}

void gate_positions_depart(const struct trial *trial, uint64_t delays,
                           struct queue_positions *positions)
{
    for (; trial->limit_counters != NULL && delays; delays &= delays - 1) {
        const struct limit *limit = trial_limit(trial, lowest(delays));
        if (!limit_has_positions(limit))
            continue;
        const struct queue queue = trial_queue(trial, limit);
        struct kept_position *own = position_with(positions, limit);
        struct kept_position position;
        if (own != NULL && own->has_gone)
            continue;
        if ((trial->had & delays & -delays) == 0)
            position = take_position(trial, lowest(delays));
        else
            position = own != NULL && own->holder != NULL
                           ? *own
                           : queue_last(&queue, trial_units(trial, limit));
        if (own != NULL && own->holder != NULL)
            queue_wait_no_more(own);
        if (own != NULL)
            own->has_gone = true;
        (void)queue_look(&position);
        queue_go(&position, trial->ask->now_ns);
    }
}

/*
 * For a command with positions that are due, after this command or other commands were late.
 * GATE_PASS: the command may go now. GATE_WAIT: the command keeps its positions. The command is no
 * longer refused, since the command has been given a time to go.
 *
 * A command with a moved position waits again even if it could go now, so that the alarms of
 * earlier commands ring first.
 */
static FUNNEL_RARE enum gate trial_wait_on(const struct trial *trial, struct verdict *verdict)
{
    uint64_t now_ns = trial->ask->now_ns;
    uint64_t latest_ns = 0;
    enum gate gate = GATE_PASS;
    for (uint64_t had = trial->had; had; had &= had - 1) {
        struct kept_position *position =
            position_with(&verdict->positions, trial_limit(trial, lowest(had)));
        if (position == NULL || position->holder == NULL || position->has_gone)
            continue;
        bool is_moved = queue_look(position);
        uint64_t until_ns = queue_until(position);
        if ((!is_moved && until_ns <= now_ns) || until_ns < latest_ns)
            continue;
        latest_ns = until_ns;
        verdict->limit = trial_limit(trial, lowest(had));
        /* negative if the alarms of earlier commands must ring first */
        verdict->wait_ns = (int64_t)(until_ns - now_ns);
        gate = GATE_WAIT;
    }
    return gate;
}

/*
 * The positions of the command are due, but other queues delay it. The command joins the other
 * queues at the head.
 */
static FUNNEL_RARE void go_ahead(const struct trial *trial, uint64_t others,
                                 struct queue_positions *positions)
{
    for (uint64_t had = trial->limit_counters != NULL ? trial->had : 0; had; had &= had - 1) {
        struct kept_position *position = position_with(positions, trial_limit(trial, lowest(had)));
        if (position != NULL && position->holder != NULL && !position->has_gone)
            queue_keep(position);
    }
    for (; others; others &= others - 1)
        if (trial_wait(trial, lowest(others)) > 0)
            keep_position(trial, lowest(others), positions);
}

enum gate gate_positions_wait(const struct trial *trial, uint64_t delays, struct verdict *verdict)
{
    const struct limit *slowest = NULL;
    uint64_t others = delays & ~trial->had;
    if (trial->had != 0 && trial_wait_on(trial, verdict) == GATE_WAIT)
        return GATE_WAIT;
    uint64_t wait_ns = trial_longest_wait(trial, others, &slowest);
    if (wait_ns == 0)
        return GATE_PASS;
    if (trial->had != 0)
        go_ahead(trial, others, &verdict->positions);
    else
        keep_position(trial, (unsigned)(slowest - trial->target->policy->limits),
                      &verdict->positions);
    trial_count(trial, slowest, GATE_WAIT, false);
    verdict_set(verdict, slowest, wait_ns);
    return GATE_WAIT;
}
