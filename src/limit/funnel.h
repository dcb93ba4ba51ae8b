/*
 * A funnel: the state of one limit for one subject, GCRA on one 64-bit word.
 *
 * Problem: many workers ask at once whether a command may pass, and what passes in any window w must never exceed
 * burst + rate * w. Mechanism: the word is the theoretical arrival time (TAT, monotonic nanoseconds) at which the
 * funnel is empty again; a take moves it forward by cost * interval when that leaves it within burst * interval of now.
 * A time in the past means empty, so 0 is a fresh funnel and dropping an empty one loses nothing. Price: one compare-
 * and-swap for a pass, one load for a refusal, which writes nothing. Source: ITU-T I.371 (generic cell rate algorithm,
 * virtual scheduling). Rounding: the interval is rounded up to whole nanoseconds, so what is admitted is never more
 * than asked for. Where that would lose more than one in a hundred the rate is fine, and its funnels hold times of
 * whole units: funnel.c.
 */
#ifndef WEIR_LIMIT_FUNNEL_H
#define WEIR_LIMIT_FUNNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define FUNNEL_NEVER UINT64_MAX
#define FUNNEL_RARE __attribute__((cold)) /* rarely called: kept out of the hot code */

struct rate {
    uint64_t count;       /* units ... */
    uint64_t period_ns;   /* ... per this time */
    uint64_t burst;       /* units that pass at once from rest */
    uint64_t interval_ns; /* one unit's time: period / count, rounded up */
    uint64_t plain_burst; /* costs up to this are charged cost * interval; the burst, or 0 of a fine rate */
    uint64_t burst_ns; /* burst * interval; of bytes, charged by the piece, and of fine rates burst * period / count */
    uint64_t near_ns;  /* four fifths of burst_ns: more debt than that is "near the limit" */
};

struct funnel {
    _Atomic uint64_t tat_ns;
};

/*
 * False when a number is 0, or when a full burst would take more than 100 years to drain. That bounds burst_ns, so that
 * no sum below overflows as long as now_ns is below 2^62.
 */
#define RATE_LONGEST_NS (UINT64_C(36525) * 24 * 3600 * NS_PER_S)
__attribute__((warn_unused_result)) bool rate_init(struct rate *rate, uint64_t count, uint64_t period_ns,
                                                   uint64_t burst);

/* The same for a rate of bytes, which is charged for whole pieces, so that nothing is rounded per byte. */
__attribute__((warn_unused_result)) bool rate_init_bytes(struct rate *rate, uint64_t count, uint64_t period_ns,
                                                         uint64_t burst);

/* The time that n units take at this rate, rounded up; at most RATE_LONGEST_NS. */
uint64_t rate_span_ns(const struct rate *rate, uint64_t n);

/*
 * The rule itself: returns 0, and the new value of the word in *next_ns; or how many ns to wait. For costs <=
 * plain_burst.
 */
static inline uint64_t funnel_rule(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns, uint64_t cost,
                                   uint64_t *next_ns)
{
    uint64_t then_ns = (tat_ns > now_ns ? tat_ns : now_ns) + cost * rate->interval_ns;
    uint64_t latest_ns = now_ns + rate->burst_ns;
    if (then_ns > latest_ns)
        return then_ns - latest_ns;
    *next_ns = then_ns;
    return 0;
}

/*
 * Fine rates: less than 100 ns a unit, and not a whole number of them. fine_* are called by the functions of the same
 * name below, for such rates; fine_ask and fine_take also for costs above the burst of any rate.
 */
static inline bool rate_is_fine(const struct rate *rate)
{
    return rate->plain_burst == 0;
}

FUNNEL_RARE uint64_t fine_ask(const struct funnel *funnel, const struct rate *rate, uint64_t now_ns, uint64_t cost);
FUNNEL_RARE uint64_t fine_take(struct funnel *funnel, const struct rate *rate, uint64_t now_ns, uint64_t cost);
FUNNEL_RARE uint64_t fine_queue(const struct funnel *funnel, const struct rate *rate, uint64_t now_ns, uint64_t cost);
FUNNEL_RARE uint64_t fine_enqueue(struct funnel *funnel, const struct rate *rate, uint64_t now_ns, uint64_t cost);
uint64_t fine_room(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns);
FUNNEL_RARE uint64_t fine_fit(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns, uint64_t n);
FUNNEL_RARE uint64_t fine_after(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns, uint64_t n);

/*
 * Take `cost` units at time `now_ns`, from any thread. 0: taken. Otherwise nothing was written, and the answer is the
 * nanoseconds until the same cost would pass, or FUNNEL_NEVER when it is more than the burst.
 *
 * The threads' times need no order among each other: the word never goes back, so an older now_ns only meets more debt.
 */
__attribute__((warn_unused_result)) static inline uint64_t funnel_take(struct funnel *funnel, const struct rate *rate,
                                                                       uint64_t now_ns, uint64_t cost)
{
    if (cost > rate->plain_burst)
        return fine_take(funnel, rate, now_ns, cost);
    uint64_t tat_ns = atomic_load_explicit(&funnel->tat_ns, memory_order_relaxed);
    uint64_t next_ns = 0;
    do {
        uint64_t wait_ns = funnel_rule(rate, tat_ns, now_ns, cost, &next_ns);
        if (wait_ns > 0)
            return wait_ns;
    } while (!atomic_compare_exchange_weak_explicit(&funnel->tat_ns, &tat_ns, next_ns, memory_order_relaxed,
                                                    memory_order_relaxed));
    return 0;
}

/* How many of `n` units would pass when the word is tat_ns, if each were asked alone; not for rates of bytes. */
static inline uint64_t funnel_fit(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns, uint64_t n)
{
    if (rate_is_fine(rate))
        return fine_fit(rate, tat_ns, now_ns, n);
    uint64_t debt_ns = tat_ns > now_ns ? tat_ns - now_ns : 0;
    uint64_t room_ns = debt_ns < rate->burst_ns ? rate->burst_ns - debt_ns : 0;
    if (n <= rate->burst && n * rate->interval_ns <= room_ns)
        return n;
    return room_ns / rate->interval_ns;
}

/* The word after n units that funnel_fit has found room for. */
static inline uint64_t funnel_after(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns, uint64_t n)
{
    if (rate_is_fine(rate))
        return fine_after(rate, tat_ns, now_ns, n);
    return (tat_ns > now_ns ? tat_ns : now_ns) + n * rate->interval_ns;
}

/*
 * What n calls of funnel_take for one unit at the same time do, one after the other: returns how many of them take it,
 * which are the first ones. *tat_ns is the word then: the others' answer is funnel_wait of it. Not for rates of bytes.
 */
static inline uint64_t funnel_take_each(struct funnel *funnel, const struct rate *rate, uint64_t now_ns, uint64_t n,
                                        uint64_t *tat_ns)
{
    uint64_t next_ns, fit;
    *tat_ns = atomic_load_explicit(&funnel->tat_ns, memory_order_relaxed);
    do {
        fit = funnel_fit(rate, *tat_ns, now_ns, n);
        if (fit == 0)
            return 0;
        next_ns = funnel_after(rate, *tat_ns, now_ns, fit);
    } while (!atomic_compare_exchange_weak_explicit(&funnel->tat_ns, tat_ns, next_ns, memory_order_relaxed,
                                                    memory_order_relaxed));
    *tat_ns = next_ns;
    return fit;
}

/* What funnel_take would answer; writes nothing. */
__attribute__((warn_unused_result)) static inline uint64_t funnel_ask(const struct funnel *funnel,
                                                                      const struct rate *rate, uint64_t now_ns,
                                                                      uint64_t cost)
{
    uint64_t next_ns;
    if (cost > rate->plain_burst)
        return fine_ask(funnel, rate, now_ns, cost);
    return funnel_rule(rate, atomic_load_explicit(&funnel->tat_ns, memory_order_relaxed), now_ns, cost, &next_ns);
}

/* How long, in ns, until one unit would pass when the word is tat_ns; 0: now. */
static inline uint64_t funnel_wait(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns)
{
    const struct funnel funnel = {tat_ns};
    return funnel_ask(&funnel, rate, now_ns, 1);
}

/*
 * Charge without asking: only after funnel_ask returned 0, and under the lock that was held since. Returns the new
 * value of the word.
 */
static inline uint64_t funnel_charge(struct funnel *funnel, const struct rate *rate, uint64_t now_ns, uint64_t cost)
{
    if (cost > rate->plain_burst)
        return fine_enqueue(funnel, rate, now_ns, cost);
    uint64_t tat_ns = atomic_load_explicit(&funnel->tat_ns, memory_order_relaxed);
    uint64_t next_ns = (tat_ns > now_ns ? tat_ns : now_ns) + cost * rate->interval_ns;
    atomic_store_explicit(&funnel->tat_ns, next_ns, memory_order_relaxed);
    return next_ns;
}

/* Charge what has passed already, whatever the debt; `span_ns` is from rate_span_ns. Any thread. */
static inline void funnel_owe(struct funnel *funnel, uint64_t now_ns, uint64_t span_ns)
{
    uint64_t tat_ns = atomic_load_explicit(&funnel->tat_ns, memory_order_relaxed);
    uint64_t next_ns;
    do {
        next_ns = (tat_ns > now_ns ? tat_ns : now_ns) + span_ns;
        if (next_ns > now_ns + RATE_LONGEST_NS)
            next_ns = now_ns + RATE_LONGEST_NS;
    } while (!atomic_compare_exchange_weak_explicit(&funnel->tat_ns, &tat_ns, next_ns, memory_order_relaxed,
                                                    memory_order_relaxed));
}

/* The time that `cost` units, also more than the burst, take in a queue; at most RATE_LONGEST_NS. */
static inline uint64_t funnel_queue_span(const struct rate *rate, uint64_t cost)
{
    return cost > RATE_LONGEST_NS / rate->interval_ns ? RATE_LONGEST_NS : cost * rate->interval_ns;
}

/*
 * How many ns `cost` units would wait at the end of the queue; 0: they may go at once. More than the burst is allowed:
 * it waits the longer. To take that place call funnel_enqueue.
 */
static inline uint64_t funnel_queue(const struct funnel *funnel, const struct rate *rate, uint64_t now_ns,
                                    uint64_t cost)
{
    if (rate_is_fine(rate))
        return fine_queue(funnel, rate, now_ns, cost);
    uint64_t tat_ns = atomic_load_explicit(&funnel->tat_ns, memory_order_relaxed);
    uint64_t then_ns = (tat_ns > now_ns ? tat_ns : now_ns) + funnel_queue_span(rate, cost);
    uint64_t latest_ns = now_ns + rate->burst_ns;
    return then_ns > latest_ns ? then_ns - latest_ns : 0;
}

/* Take the place at the end of the queue. Any thread. */
static inline void funnel_enqueue(struct funnel *funnel, const struct rate *rate, uint64_t now_ns, uint64_t cost)
{
    if (rate_is_fine(rate))
        fine_enqueue(funnel, rate, now_ns, cost);
    else
        funnel_owe(funnel, now_ns, funnel_queue_span(rate, cost));
}

/* Undo a charge that moved the word from begin_ns to end_ns. False: others have charged since, and it stays. */
static inline bool funnel_take_back(struct funnel *funnel, uint64_t begin_ns, uint64_t end_ns)
{
    return atomic_compare_exchange_strong_explicit(&funnel->tat_ns, &end_ns, begin_ns, memory_order_relaxed,
                                                   memory_order_relaxed);
}

/* How many units would pass now; not for rates of bytes. */
static inline uint64_t funnel_room(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns)
{
    if (rate_is_fine(rate))
        return fine_room(rate, tat_ns, now_ns);
    uint64_t debt_ns = tat_ns > now_ns ? tat_ns - now_ns : 0;
    return debt_ns < rate->burst_ns ? (rate->burst_ns - debt_ns) / rate->interval_ns : 0;
}

/* Is more than four fifths of the burst used when the word is tat_ns? */
static inline bool funnel_is_near(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns)
{
    return tat_ns > now_ns + rate->near_ns;
}

/* Of the `n` units that have brought the word to tat_ns, one by one: how many left it near the limit? */
uint64_t funnel_near_of(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns, uint64_t n);
uint64_t fine_near_of(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns, uint64_t n);

static inline uint64_t funnel_word(const struct funnel *funnel)
{
    return atomic_load_explicit(&funnel->tat_ns, memory_order_relaxed);
}

/*
 * For a take in steps: load the word, work out the next one, replace it unless another thread has (then *tat_ns is its
 * new value). Other loads that are made between the two happen in this order.
 */
static inline uint64_t funnel_peek(const struct funnel *funnel)
{
    return atomic_load_explicit(&funnel->tat_ns, memory_order_acquire);
}

static inline bool funnel_replace(struct funnel *funnel, uint64_t *tat_ns, uint64_t next_ns)
{
    return atomic_compare_exchange_weak_explicit(&funnel->tat_ns, tat_ns, next_ns, memory_order_acq_rel,
                                                 memory_order_acquire);
}

/* For a refusal in steps: true if the word is *tat_ns still; else that is its new value. */
static inline bool funnel_is_still(const struct funnel *funnel, uint64_t *tat_ns)
{
    uint64_t seen_ns = *tat_ns;
    *tat_ns = funnel_peek(funnel);
    return *tat_ns == seen_ns;
}

/* ---- the same word as a gauge: calls in flight, connections ---- */

static inline uint64_t gauge_value(const struct funnel *gauge)
{
    return atomic_load_explicit(&gauge->tat_ns, memory_order_relaxed);
}

static inline void gauge_add(struct funnel *gauge, uint64_t n)
{
    atomic_fetch_add_explicit(&gauge->tat_ns, n, memory_order_relaxed);
}

static inline void gauge_take(struct funnel *gauge, uint64_t n)
{
    atomic_fetch_sub_explicit(&gauge->tat_ns, n, memory_order_relaxed);
}

/* Does it hold no debt? Then it may be forgotten. */
static inline bool funnel_is_empty(const struct funnel *funnel, uint64_t now_ns)
{
    return atomic_load_explicit(&funnel->tat_ns, memory_order_relaxed) <= now_ns;
}

#endif
