/*
 * One decision of the gate: asks limits one by one, charges them, and takes places in the queues of those that delay.
 *
 * For gate*.c only, under the locks of the decision. Inline, except for what is rare.
 */
#ifndef WEIR_LIMIT_TRIAL_H
#define WEIR_LIMIT_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "limit/ask.h"
#include "limit/figures/ledger.h"
#include "limit/funnel.h"
#include "limit/policy/policy.h"
#include "limit/queue.h"
#include "limit/subject.h"

struct trial {
    const struct account *account;
    const struct ask *ask;
    struct tally *tallies; /* NULL: nothing is charged or counted */
    uint64_t had;          /* limits (bits) that it has a place with already; in the others' queues it is put ahead */
    bool is_current;       /* all limits run at the rates that the policy says: holders_lock */
};

/* The index of the first limit in a set (a word of bits), which is not empty. */
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

/* As it is for the limit's holder. */
static inline const struct rate *rate_of(const struct account *account, const struct limit *limit)
{
    return subject_rate(account->holders[limit->scope], limit);
}

static inline const struct rate *trial_rate(const struct trial *trial, const struct limit *limit)
{
    return trial->is_current ? &limit->rate : rate_of(trial->account, limit);
}

static inline uint64_t trial_units(const struct trial *trial, const struct limit *limit)
{
    return trial->ask->amount[limit->unit];
}

static inline struct queue trial_queue(const struct trial *trial, const struct limit *limit)
{
    return (struct queue){trial->account->holders[limit->scope], limit};
}

/* The holder is locked: have it the rates of the account's policy, or newer ones. */
FUNNEL_RARE void settle_rarely(const struct policy *policy, struct subject *holder, enum scope scope, uint64_t now_ns);

/* True if that holder has the rates of the account's policy. */
static inline bool is_settled(const struct account *account, enum scope scope)
{
    const struct subject *holder = account->holders[scope];
    return holder == NULL || subject_has_rates(holder, account->policy->rates[scope]);
}

/* The holders are locked: bring each to the rates of the policy, or leave it with newer ones. */
FUNNEL_RARE void settle_all(const struct account *account, uint64_t now_ns);

/*
 * The subject first, then the policy: always in this order. A connection's funnels belong to one thread: no lock.
 * True if all limits run at the rates that the policy says: else at those of rate_of.
 */
static inline bool holders_lock(const struct account *account, uint64_t now_ns)
{
    if (account->holders[PER_SUBJECT] != NULL)
        subject_lock(account->holders[PER_SUBJECT]);
    if (account->holders[PER_POLICY] != NULL)
        subject_lock(account->holders[PER_POLICY]);
    if (is_settled(account, PER_SUBJECT) && is_settled(account, PER_CONNECTION) && is_settled(account, PER_POLICY))
        return true;
    settle_all(account, now_ns);
    return false;
}

static inline void holders_unlock(const struct account *account)
{
    if (account->holders[PER_POLICY] != NULL)
        subject_unlock(account->holders[PER_POLICY]);
    if (account->holders[PER_SUBJECT] != NULL)
        subject_unlock(account->holders[PER_SUBJECT]);
}

static inline void verdict_set(struct verdict *verdict, const struct limit *limit, uint64_t wait_ns)
{
    bool is_gauge = unit_is_gauge((enum unit)limit->unit);
    verdict->limit = limit;
    verdict->wait_ns = is_gauge ? 0 : wait_ns < GATE_NEVER ? (int64_t)wait_ns : GATE_NEVER;
}

/* After a charge that has brought the word to tat_ns: count it if the limit is nearly used up. */
static inline void tally_note_near(const struct limit *limit, uint64_t tat_ns, uint64_t now_ns, struct tally *tallies)
{
    if (funnel_is_near(&limit->rate, tat_ns, now_ns))
        tally_add(&tallies[limit->id].near, 1);
}

/* After a charge of n units, one by one, that has brought the word to tat_ns. */
static inline void tally_note_each(const struct limit *limit, uint64_t tat_ns, uint64_t now_ns, uint64_t n,
                                   struct tally *tallies)
{
    tally_add(&tallies[limit->id].admitted, n);
    if (funnel_is_near(&limit->rate, tat_ns, now_ns))
        tally_add(&tallies[limit->id].near, funnel_near_of(&limit->rate, tat_ns, now_ns, n));
}

/* Add n to, or take n from, all gauges in the set `limits`. */
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

#define TRIAL_FULL                                                                                                     \
    1 /* ns to wait for a full gauge, which is unknown: the least, so that any other limit's wait counts */

/* How long, in ns, it would wait at the head of the limit's queue; 0: it can go now. */
FUNNEL_RARE uint64_t trial_wait_ahead(const struct trial *trial, const struct limit *limit);

/* How long, in ns, until it passes this limit; 0: now. */
static inline uint64_t trial_wait(const struct trial *trial, unsigned index)
{
    const struct limit *limit = trial_limit(trial, index);
    struct funnel *funnel = funnel_at(trial->account, index);
    if (unit_is_gauge((enum unit)limit->unit))
        return gauge_value(funnel) >= limit->rate.count ? TRIAL_FULL : 0;
    if (trial->had != 0 && limit_has_places(limit))
        return trial_wait_ahead(trial, limit);
    if (limit->action == OVER_DELAY)
        return funnel_queue(funnel, trial_rate(trial, limit), trial->ask->now_ns, trial_units(trial, limit));
    return funnel_ask(funnel, trial_rate(trial, limit), trial->ask->now_ns, trial_units(trial, limit));
}

/* The longest wait for a limit of the set, and which limit that is; 0: it passes all, and *slowest is unchanged. */
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

/* Count that so many units were charged to the limit. */
static inline void trial_note_admitted(const struct trial *trial, unsigned index, uint64_t units)
{
    const struct limit *limit = trial_limit(trial, index);
    tally_add(&trial->tallies[limit->id].admitted, units);
    if (funnel_at_is_near(limit, funnel_at(trial->account, index), trial->ask->now_ns))
        tally_add(&trial->tallies[limit->id].near, 1);
}

/* It passes: charge all limits of the set, except those on bytes, which are charged later. */
static inline void trial_charge(const struct trial *trial, uint64_t limits)
{
    for (; trial->tallies != NULL && limits; limits &= limits - 1) {
        unsigned i = lowest(limits);
        const struct limit *limit = trial_limit(trial, i);
        if (unit_is_bytes((enum unit)limit->unit))
            continue;
        struct funnel *funnel = funnel_at(trial->account, i);
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

/* Count that the limit has delayed or refused it (`what`), or in shadow mode would have. */
void trial_count(const struct trial *trial, const struct limit *limit, enum gate what, bool is_shadow);

/* ---- the places of one command in the queues of the limits that delay it ---- */

/* Which of `delays` (limits, as bits) it has a place with already, or has waited for. */
uint64_t gate_places_had(const struct trial *trial, uint64_t delays);

/*
 * GATE_WAIT: it must wait in one of the queues of `delays`. It takes a place in the longest one only: the others are
 * not charged before it can go.
 */
enum gate gate_places_wait(const struct trial *trial, uint64_t delays, struct verdict *verdict);

/* It goes: charge the limits in `delays` that are not charged yet, and leave all queues. */
void gate_places_depart(const struct trial *trial, uint64_t delays, struct turn *turn);

#endif
