/*
 * One decision of the gate: checks limits one by one, charges them, and takes positions in the
 * queues of limits that delay.
 *
 * For gate*.c only, under the locks of the decision. Inline, except for rare parts.
 */
#ifndef WEIR_LIMIT_TRIAL_H
#define WEIR_LIMIT_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "limit/gate_request.h"
#include "limit/figures/registry.h"
#include "limit/funnel.h"
#include "limit/policy/policy.h"
#include "limit/queue.h"
#include "limit/subject.h"

struct trial {
    const struct charge_target *target;
    const struct gate_request *ask;
    struct limit_counters *limit_counters; /* NULL: nothing is charged or counted */
    /*
     * limits (bits) where the command has a position; in other queues the command joins at the head
     */
    uint64_t had;
    bool is_current; /* all limits run at the rates of the policy: see holders_lock */
};

/* Index of the lowest bit of `bits`, which is not 0. */
static inline unsigned lowest(uint64_t bits)
{
    return (unsigned)__builtin_ctzll(bits);
}

static inline const struct limit *trial_limit(const struct trial *trial, unsigned index)
{
    return &trial->target->policy->limits[index];
}

static inline struct funnel *funnel_at(const struct charge_target *target, unsigned index)
{
    const struct limit *limit = &target->policy->limits[index];
    return subject_funnel(target->holders[limit->scope], limit->slot);
}

/* The rate at which the limit's holder runs. */
static inline const struct rate *rate_of(const struct charge_target *target,
                                         const struct limit *limit)
{
    return subject_rate(target->holders[limit->scope], limit);
}

static inline const struct rate *trial_rate(const struct trial *trial, const struct limit *limit)
{
    return trial->is_current ? &limit->rate : rate_of(trial->target, limit);
}

static inline uint64_t trial_units(const struct trial *trial, const struct limit *limit)
{
    return trial->ask->amount[limit->unit];
}

static inline struct queue trial_queue(const struct trial *trial, const struct limit *limit)
{
    return (struct queue){trial->target->holders[limit->scope], limit};
}

/*
 * Converts the holder to the rates of the policy, unless the holder has newer rates. The holder is
 * locked.
 */
FUNNEL_RARE void settle_rarely(const struct policy *policy, struct subject *holder,
                               enum scope scope, uint64_t now_ns);

/* True if the charge target's holder of this scope has the rates of the policy, or is NULL. */
static inline bool is_settled(const struct charge_target *target, enum scope scope)
{
    const struct subject *holder = target->holders[scope];
    return holder == NULL || subject_has_rates(holder, target->policy->rates[scope]);
}

/* Calls settle_rarely for each holder. The holders are locked. */
FUNNEL_RARE void settle_all(const struct charge_target *target, uint64_t now_ns);

/*
 * Locks the subject first, then the policy, always in this order. The funnels of a connection
 * belong to one thread and need no lock. True if all limits run at the rates of the policy;
 * otherwise use rate_of.
 */
static inline bool holders_lock(const struct charge_target *target, uint64_t now_ns)
{
    if (target->holders[PER_SUBJECT] != NULL)
        subject_lock(target->holders[PER_SUBJECT]);
    if (target->holders[PER_POLICY] != NULL)
        subject_lock(target->holders[PER_POLICY]);
    if (is_settled(target, PER_SUBJECT) && is_settled(target, PER_CONNECTION) &&
        is_settled(target, PER_POLICY))
        return true;
    settle_all(target, now_ns);
    return false;
}

static inline void holders_unlock(const struct charge_target *target)
{
    if (target->holders[PER_POLICY] != NULL)
        subject_unlock(target->holders[PER_POLICY]);
    if (target->holders[PER_SUBJECT] != NULL)
        subject_unlock(target->holders[PER_SUBJECT]);
}

static inline void verdict_set(struct verdict *verdict, const struct limit *limit, uint64_t wait_ns)
{
    bool is_gauge = unit_is_gauge((enum unit)limit->unit);
    verdict->limit = limit;
    verdict->wait_ns = is_gauge ? 0 : wait_ns < GATE_NEVER ? (int64_t)wait_ns : GATE_NEVER;
}

/* Counts a charge that has brought the word to tat_ns and left the limit nearly used up. */
static inline void limit_counters_note_near(const struct limit *limit, uint64_t tat_ns,
                                            uint64_t now_ns, struct limit_counters *limit_counters)
{
    if (funnel_is_near(&limit->rate, tat_ns, now_ns))
        counter_add(&limit_counters[limit->id].near, 1);
}

/* Counts a charge of n units, one by one, that has brought the word to tat_ns. */
static inline void limit_counters_note_each(const struct limit *limit, uint64_t tat_ns,
                                            uint64_t now_ns, uint64_t n,
                                            struct limit_counters *limit_counters)
{
    counter_add(&limit_counters[limit->id].admitted, n);
    if (funnel_is_near(&limit->rate, tat_ns, now_ns))
        counter_add(&limit_counters[limit->id].near,
                    funnel_near_of(&limit->rate, tat_ns, now_ns, n));
}

/* Adds n to all gauges in the set `limits`. gauges_take subtracts n. */
static inline void gauges_add(const struct charge_target *target, uint64_t limits, uint64_t n)
{
    for (; n > 0 && limits; limits &= limits - 1)
        gauge_add(funnel_at(target, lowest(limits)), n);
}

static inline void gauges_take(const struct charge_target *target, uint64_t limits, uint64_t n)
{
    for (; n > 0 && limits; limits &= limits - 1)
        gauge_take(funnel_at(target, lowest(limits)), n);
}

/*
 * The wait in ns that stands for a full gauge. The real wait is unknown. With the smallest value,
 * any other limit's wait is longer.
 */
#define TRIAL_FULL 1

/* Time in ns that the command would wait at the head of the limit's queue; 0: passes now. */
FUNNEL_RARE uint64_t trial_wait_ahead(const struct trial *trial, const struct limit *limit);

/* Time in ns until the command passes this limit; 0: now. */
static inline uint64_t trial_wait(const struct trial *trial, unsigned index)
{
    const struct limit *limit = trial_limit(trial, index);
    struct funnel *funnel = funnel_at(trial->target, index);
    if (unit_is_gauge((enum unit)limit->unit))
        return gauge_value(funnel) >= limit->rate.count ? TRIAL_FULL : 0;
    if (trial->had != 0 && limit_has_positions(limit))
        return trial_wait_ahead(trial, limit);
    if (limit->action == OVER_DELAY)
        return funnel_queue(funnel, trial_rate(trial, limit), trial->ask->now_ns,
                            trial_units(trial, limit));
    return funnel_ask(funnel, trial_rate(trial, limit), trial->ask->now_ns,
                      trial_units(trial, limit));
}

/*
 * The longest wait in ns for a limit of the set. Sets *slowest to that limit. 0: the command passes
 * all limits, and *slowest is unchanged.
 */
static inline uint64_t trial_longest_wait(const struct trial *trial, uint64_t limits,
                                          const struct limit **slowest)
{
    uint64_t longest_ns = 0;
    for (; limits; limits &= limits - 1) {
        unsigned i = lowest(limits);
        uint64_t wait_ns = trial_wait(trial, i);
        if (wait_ns > longest_ns) {
            longest_ns = wait_ns;
            *slowest = trial_limit(trial, i);
        }
    }
    return longest_ns;
}

static inline bool funnel_at_is_near(const struct limit *limit, const struct funnel *funnel,
                                     uint64_t now_ns)
{
    if (unit_is_gauge((enum unit)limit->unit))
        return gauge_value(funnel) > limit->rate.count / 5 * 4 + limit->rate.count % 5 * 4 / 5;
    return funnel_is_near(&limit->rate, funnel_word(funnel), now_ns);
}

/* Counts units charged to the limit. */
static inline void trial_note_admitted(const struct trial *trial, unsigned index, uint64_t units)
{
    const struct limit *limit = trial_limit(trial, index);
    counter_add(&trial->limit_counters[limit->id].admitted, units);
    if (funnel_at_is_near(limit, funnel_at(trial->target, index), trial->ask->now_ns))
        counter_add(&trial->limit_counters[limit->id].near, 1);
}

/*
 * The command passes: charges all limits of the set except limits on bytes, which are charged
 * later.
 */
static inline void trial_charge(const struct trial *trial, uint64_t limits)
{
    for (; trial->limit_counters != NULL && limits; limits &= limits - 1) {
        unsigned i = lowest(limits);
        const struct limit *limit = trial_limit(trial, i);
        if (unit_is_bytes((enum unit)limit->unit))
            continue;
        struct funnel *funnel = funnel_at(trial->target, i);
        uint64_t units = trial_units(trial, limit);
        if (unit_is_gauge((enum unit)limit->unit))
            gauge_add(funnel, 1);
        else if (limit->action == OVER_DELAY)
            funnel_enqueue(funnel, trial_rate(trial, limit), trial->ask->now_ns, units);
        else
            funnel_charge(funnel, trial_rate(trial, limit), trial->ask->now_ns, units);
        trial_note_admitted(trial, i, units);
    }
}

/*
 * Counts that the limit has delayed or refused the command (`what`), or would have in shadow mode.
 */
void trial_count(const struct trial *trial, const struct limit *limit, enum gate what,
                 bool is_shadow);

/* ---- positions of one command in the queues of limits that delay ---- */

/* The limits among `delays` (bits) where the command has a position, or has waited. */
uint64_t gate_positions_had(const struct trial *trial, uint64_t delays);

/*
 * GATE_WAIT: the command must wait in a queue of `delays`. The command takes a position in the
 * longest queue only. The other limits are charged when the command goes.
 */
enum gate gate_positions_wait(const struct trial *trial, uint64_t delays, struct verdict *verdict);

/* The command goes: charges the limits in `delays` not charged yet, and leaves all queues. */
void gate_positions_depart(const struct trial *trial, uint64_t delays,
                           struct queue_positions *positions);

#endif
