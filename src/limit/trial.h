/*
 * A decision being made: what the limits say of it, one by one, and what it charges them.
 *
 * For the gate alone (gate*.c), under the locks of the decision. Inline, but for what is rare.
 */
#ifndef WEIR_LIMIT_TRIAL_H
#define WEIR_LIMIT_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "limit/ask.h"
#include "limit/funnel.h"
#include "limit/ledger.h"
#include "limit/policy.h"
#include "limit/queue.h"
#include "limit/subject.h"

struct trial {
    const struct account *account;
    const struct ask *ask;
    struct tally *tallies; /* NULL: nothing is charged or counted */
    uint64_t had;          /* the limits that delay with which it has had its place; in the others it goes ahead */
};

/* The index of the first limit of a set that is not empty. */
static inline unsigned lowest(uint64_t bits)
{
    return (unsigned)__builtin_ctzll(bits);
}

static inline const struct limit *trial_limit(const struct trial *trial, unsigned index)
{
    return &trial->account->policy->limits[index];
}

static inline struct funnel *funnel_at(const struct account *account, unsigned index)
{
    const struct limit *limit = &account->policy->limits[index];
    return subject_funnel(account->holders[limit->scope], limit->slot);
}

static inline uint64_t trial_units(const struct trial *trial, const struct limit *limit)
{
    return trial->ask->amount[limit->unit];
}

static inline struct queue trial_queue(const struct trial *trial, const struct limit *limit)
{
    return (struct queue){trial->account->holders[limit->scope], limit};
}

/* The subject first, then the policy: everybody in the same order. A connection's funnels are one thread's. */
static inline void holders_lock(const struct account *account)
{
    if (account->holders[PER_SUBJECT])
        subject_lock(account->holders[PER_SUBJECT]);
    if (account->holders[PER_POLICY])
        subject_lock(account->holders[PER_POLICY]);
}

static inline void holders_unlock(const struct account *account)
{
    if (account->holders[PER_POLICY])
        subject_unlock(account->holders[PER_POLICY]);
    if (account->holders[PER_SUBJECT])
        subject_unlock(account->holders[PER_SUBJECT]);
}

static inline void verdict_set(struct verdict *verdict, const struct limit *limit, uint64_t wait_ns)
{
    bool is_gauge = unit_is_gauge((enum unit)limit->unit);
    verdict->limit = limit;
    verdict->wait_ns = is_gauge ? 0 : wait_ns < GATE_NEVER ? (int64_t)wait_ns : GATE_NEVER;
}

/* It has passed and is charged. */
static inline void tally_note_near(const struct limit *limit, uint64_t tat_ns, uint64_t now_ns, struct tally *tallies)
{
    if (funnel_is_near(&limit->rate, tat_ns, now_ns))
        tally_add(&tallies[limit->id].near, 1);
}

/* So many more, or fewer, at this moment. */
static inline void gauges_add(const struct account *account, uint64_t limits, uint64_t n)
{
    for (; n > 0 && limits; limits &= limits - 1)
        gauge_add(funnel_at(account, lowest(limits)), n);
}

static inline void gauges_take(const struct account *account, uint64_t limits, uint64_t n)
{
    for (; n > 0 && limits; limits &= limits - 1)
        gauge_take(funnel_at(account, lowest(limits)), n);
}

#define TRIAL_FULL 1 /* the wait for a number to fall: nobody knows how long; anything else that refuses waits longer */

/* Until it could go from the head of the limit's queue; 0: now. */
FUNNEL_RARE uint64_t trial_wait_ahead(const struct trial *trial, const struct limit *limit);

/* Until it passes this limit; 0: now. */
static inline uint64_t trial_wait(const struct trial *trial, unsigned index)
{
    const struct limit *limit = trial_limit(trial, index);
    struct funnel *funnel = funnel_at(trial->account, index);
    if (unit_is_gauge((enum unit)limit->unit))
        return gauge_value(funnel) >= limit->rate.count ? TRIAL_FULL : 0;
    if (trial->had != 0 && limit_has_places(limit))
        return trial_wait_ahead(trial, limit);
    if (limit->action == OVER_DELAY)
        return funnel_queue(funnel, &limit->rate, trial->ask->now_ns, trial_units(trial, limit));
    return funnel_ask(funnel, &limit->rate, trial->ask->now_ns, trial_units(trial, limit));
}

/* The longest wait of all, and the limit that it is for; 0 when all pass, and then *slowest stays as it is. */
static inline uint64_t trial_longest_wait(const struct trial *trial, uint64_t limits, const struct limit **slowest)
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

static inline bool funnel_at_is_near(const struct limit *limit, const struct funnel *funnel, uint64_t now_ns)
{
    if (unit_is_gauge((enum unit)limit->unit))
        return gauge_value(funnel) > limit->rate.count / 5 * 4 + limit->rate.count % 5 * 4 / 5;
    return funnel_is_near(&limit->rate, funnel_word(funnel), now_ns);
}

/* So many units of it have been charged to this limit. */
static inline void trial_note_admitted(const struct trial *trial, unsigned index, uint64_t units)
{
    const struct limit *limit = trial_limit(trial, index);
    tally_add(&trial->tallies[limit->id].admitted, units);
    if (funnel_at_is_near(limit, funnel_at(trial->account, index), trial->ask->now_ns))
        tally_add(&trial->tallies[limit->id].near, 1);
}

/* It passes these: what they count is charged, but bytes, which are not known yet. */
static inline void trial_charge(const struct trial *trial, uint64_t limits)
{
    for (; trial->tallies && limits; limits &= limits - 1) {
        unsigned i = lowest(limits);
        const struct limit *limit = trial_limit(trial, i);
        if (unit_is_bytes((enum unit)limit->unit))
            continue;
        struct funnel *funnel = funnel_at(trial->account, i);
        uint64_t units = trial_units(trial, limit);
        if (unit_is_gauge((enum unit)limit->unit))
            gauge_add(funnel, 1);
        else if (limit->action == OVER_DELAY)
            funnel_enqueue(funnel, &limit->rate, trial->ask->now_ns, units);
        else
            funnel_charge(funnel, &limit->rate, trial->ask->now_ns, units);
        trial_note_admitted(trial, i, units);
    }
}

/* The limit has delayed or refused it, or would have. */
void trial_count(const struct trial *trial, const struct limit *limit, enum gate what, bool is_shadow);

#endif
