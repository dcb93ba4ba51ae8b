/*
 * A funnel: the state of one limit for one subject, GCRA on one 64-bit word.
 *
 * Problem: many workers decide at the same time whether a command passes. The units that pass in
 * any window w must never exceed burst + rate * w.
 *
 * Mechanism: the word is the theoretical arrival time (TAT, monotonic nanoseconds) at which the
 * funnel is empty again. A take moves the TAT forward by cost * interval if the new TAT is at most
 * burst * interval from now. A TAT in the past means an empty funnel. The word of a fresh funnel is
 * therefore 0. Dropping an empty funnel loses nothing.
 *
 * Price: one compare-and-swap for a pass; one load and no write for a refusal.
 *
 * Source: ITU-T I.371 (generic cell rate algorithm, virtual scheduling).
 *
 * Rounding: the interval is rounded up to whole nanoseconds, which never admits more than the rate.
 * A rate that would lose more than one unit in a hundred by this rounding is "fine". Funnels of
 * fine rates hold times of whole units: see funnel.c.
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
    uint64_t count; /* units per period_ns */
    uint64_t period_ns;
    uint64_t burst;       /* units that pass at once when the funnel is empty */
    uint64_t interval_ns; /* time of one unit: period / count, rounded up */
    /* costs up to this value are charged cost * interval; equals burst, or 0 for a fine rate */
    uint64_t plain_burst;
    /* burst * interval; for rates of bytes and fine rates burst * period / count */
    uint64_t burst_ns;
    uint64_t near_ns; /* four fifths of burst_ns: a larger debt is "near the limit" */
};

struct funnel {
    _Atomic uint64_t tat_ns;
};

/*
 * Sets *rate. Returns false if a number is 0, or if a full burst takes more than 100 years to
 * drain. The bound on burst_ns keeps all sums below free of overflow while now_ns is below 2^62.
 */
#define RATE_LONGEST_NS (UINT64_C(36525) * 24 * 3600 * NS_PER_S)
__attribute__((warn_unused_result)) bool rate_init(struct rate *rate, uint64_t count,
                                                   uint64_t period_ns, uint64_t burst);

/* rate_init for a rate of bytes. Bytes are charged by the chunk, which avoids rounding per byte. */
__attribute__((warn_unused_result)) bool rate_init_bytes(struct rate *rate, uint64_t count,
                                                         uint64_t period_ns, uint64_t burst);

/* Time that n units take at this rate, in ns, rounded up; at most RATE_LONGEST_NS. */
uint64_t rate_span_ns(const struct rate *rate, uint64_t n);

/*
 * The GCRA rule, for costs <= plain_burst. Returns 0 and sets *next_ns, the new word; otherwise
 * returns the wait in ns.
 */
static inline uint64_t funnel_rule(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns,
                                   uint64_t cost, uint64_t *next_ns)
{
    uint64_t then_ns = (tat_ns > now_ns ? tat_ns : now_ns) + cost * rate->interval_ns;
    uint64_t latest_ns = now_ns + rate->burst_ns;
    if (then_ns > latest_ns)
        return then_ns - latest_ns;
    *next_ns = then_ns;
    return 0;
}

/*
 * Fine rates: less than 100 ns a unit, and not a whole number of ns. For fine rates, funnel_NAME
 * below calls fine_NAME. For costs above the burst, fine_ask and fine_take are called at any rate.
 */
static inline bool rate_is_fine(const struct rate *rate)
{
    return rate->plain_burst == 0;
}

FUNNEL_RARE uint64_t fine_ask(const struct funnel *funnel, const struct rate *rate, uint64_t now_ns,
                              uint64_t cost);
FUNNEL_RARE uint64_t fine_take(struct funnel *funnel, const struct rate *rate, uint64_t now_ns,
                               uint64_t cost);
FUNNEL_RARE uint64_t fine_queue(const struct funnel *funnel, const struct rate *rate,
                                uint64_t now_ns, uint64_t cost);
FUNNEL_RARE uint64_t fine_enqueue(struct funnel *funnel, const struct rate *rate, uint64_t now_ns,
                                  uint64_t cost);
uint64_t fine_room(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns);
FUNNEL_RARE uint64_t fine_fit(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns,
                              uint64_t n);
FUNNEL_RARE uint64_t fine_after(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns,
                                uint64_t n);

/*
 * Takes `cost` units at time `now_ns`; any thread. Returns 0 if the units are taken. Otherwise
 * nothing is written. The result is then the ns until `cost` would pass, or FUNNEL_NEVER if `cost`
 * exceeds the burst.
 *
 * The clocks of the threads need no common order. The word never goes back, and an older now_ns
 * only sees more debt.
 */
__attribute__((warn_unused_result)) static inline uint64_t funnel_take(struct funnel *funnel,
                                                                       const struct rate *rate,
                                                                       uint64_t now_ns,
                                                                       uint64_t cost)
{
    if (cost > rate->plain_burst)
        return fine_take(funnel, rate, now_ns, cost);
    uint64_t tat_ns = atomic_load_explicit(&funnel->tat_ns, memory_order_relaxed);
    uint64_t next_ns = 0;
    do {
        uint64_t wait_ns = funnel_rule(rate, tat_ns, now_ns, cost, &next_ns);
        if (wait_ns > 0)
            return wait_ns;
    } while (!atomic_compare_exchange_weak_explicit(&funnel->tat_ns, &tat_ns, next_ns,
                                                    memory_order_relaxed, memory_order_relaxed));
    return 0;
}

/* How many of `n` units would pass one by one if the word is tat_ns; not for rates of bytes. */
static inline uint64_t funnel_fit(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns,
                                  uint64_t n)
{
    if (rate_is_fine(rate))
        return fine_fit(rate, tat_ns, now_ns, n);
    uint64_t debt_ns = tat_ns > now_ns ? tat_ns - now_ns : 0;
    uint64_t room_ns = debt_ns < rate->burst_ns ? rate->burst_ns - debt_ns : 0;
    if (n <= rate->burst && n * rate->interval_ns <= room_ns)
        return n;
    return room_ns / rate->interval_ns;
}

/* The word after n units for which funnel_fit found room. */
static inline uint64_t funnel_after(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns,
                                    uint64_t n)
{
    if (rate_is_fine(rate))
        return fine_after(rate, tat_ns, now_ns, n);
    return (tat_ns > now_ns ? tat_ns : now_ns) + n * rate->interval_ns;
}

/*
 * Has the effect of n calls of funnel_take for one unit, all at now_ns. Returns how many of these
 * calls succeed: always the first ones. Sets *tat_ns to the new word; funnel_wait of *tat_ns is the
 * result of the failed calls. Not for rates of bytes.
 */
static inline uint64_t funnel_take_each(struct funnel *funnel, const struct rate *rate,
                                        uint64_t now_ns, uint64_t n, uint64_t *tat_ns)
{
    uint64_t next_ns, fit;
    *tat_ns = atomic_load_explicit(&funnel->tat_ns, memory_order_relaxed);
    do {
        fit = funnel_fit(rate, *tat_ns, now_ns, n);
        if (fit == 0)
            return 0;
        next_ns = funnel_after(rate, *tat_ns, now_ns, fit);
    } while (!atomic_compare_exchange_weak_explicit(&funnel->tat_ns, tat_ns, next_ns,
                                                    memory_order_relaxed, memory_order_relaxed));
    *tat_ns = next_ns;
    return fit;
}

/* Returns the result that funnel_take would have; writes nothing. */
__attribute__((warn_unused_result)) static inline uint64_t funnel_ask(const struct funnel *funnel,
                                                                      const struct rate *rate,
                                                                      uint64_t now_ns,
                                                                      uint64_t cost)
{
    uint64_t next_ns;
    if (cost > rate->plain_burst)
        return fine_ask(funnel, rate, now_ns, cost);
    return funnel_rule(rate, atomic_load_explicit(&funnel->tat_ns, memory_order_relaxed), now_ns,
                       cost, &next_ns);
}

/* Time in ns until one unit would pass if the word is tat_ns; 0: now. */
static inline uint64_t funnel_wait(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns)
{
    const struct funnel funnel = {tat_ns};
    return funnel_ask(&funnel, rate, now_ns, 1);
}

/*
 * Charges `cost` without a check and returns the new word. Call only after funnel_ask returned 0,
 * under a lock held since that call.
 */
static inline uint64_t funnel_charge(struct funnel *funnel, const struct rate *rate,
                                     uint64_t now_ns, uint64_t cost)
{
    if (cost > rate->plain_burst)
        return fine_enqueue(funnel, rate, now_ns, cost);
    uint64_t tat_ns = atomic_load_explicit(&funnel->tat_ns, memory_order_relaxed);
    uint64_t next_ns = (tat_ns > now_ns ? tat_ns : now_ns) + cost * rate->interval_ns;
    atomic_store_explicit(&funnel->tat_ns, next_ns, memory_order_relaxed);
    return next_ns;
}

/*
 * Charges units that have passed already, whatever the debt; `span_ns` is from rate_span_ns. Any
 * thread.
 */
static inline void funnel_owe(struct funnel *funnel, uint64_t now_ns, uint64_t span_ns)
{
    uint64_t tat_ns = atomic_load_explicit(&funnel->tat_ns, memory_order_relaxed);
    uint64_t next_ns;
    do {
        next_ns = (tat_ns > now_ns ? tat_ns : now_ns) + span_ns;
        if (next_ns > now_ns + RATE_LONGEST_NS)
            next_ns = now_ns + RATE_LONGEST_NS;
    } while (!atomic_compare_exchange_weak_explicit(&funnel->tat_ns, &tat_ns, next_ns,
                                                    memory_order_relaxed, memory_order_relaxed));
}

/*
 * Time in ns that `cost` units take in a queue; at most RATE_LONGEST_NS. `cost` may exceed the
 * burst.
 */
static inline uint64_t funnel_queue_span(const struct rate *rate, uint64_t cost)
{
    return cost > RATE_LONGEST_NS / rate->interval_ns ? RATE_LONGEST_NS : cost * rate->interval_ns;
}

/*
 * Time in ns that `cost` units would wait at the end of the queue; 0: no wait. A cost above the
 * burst is allowed, and waits longer. funnel_enqueue takes the position.
 */
static inline uint64_t funnel_queue(const struct funnel *funnel, const struct rate *rate,
                                    uint64_t now_ns, uint64_t cost)
{
    if (rate_is_fine(rate))
        return fine_queue(funnel, rate, now_ns, cost);
    uint64_t tat_ns = atomic_load_explicit(&funnel->tat_ns, memory_order_relaxed);
    uint64_t then_ns = (tat_ns > now_ns ? tat_ns : now_ns) + funnel_queue_span(rate, cost);
    uint64_t latest_ns = now_ns + rate->burst_ns;
    return then_ns > latest_ns ? then_ns - latest_ns : 0;
}

/* Charges `cost` units at the end of the queue. Any thread. */
static inline void funnel_enqueue(struct funnel *funnel, const struct rate *rate, uint64_t now_ns,
                                  uint64_t cost)
{
    if (rate_is_fine(rate))
        fine_enqueue(funnel, rate, now_ns, cost);
    else
        funnel_owe(funnel, now_ns, funnel_queue_span(rate, cost));
}

/*
 * Undoes a charge that moved the word from begin_ns to end_ns. Returns false, and changes nothing,
 * if another charge came later.
 */
static inline bool funnel_take_back(struct funnel *funnel, uint64_t begin_ns, uint64_t end_ns)
{
    return atomic_compare_exchange_strong_explicit(&funnel->tat_ns, &end_ns, begin_ns,
                                                   memory_order_relaxed, memory_order_relaxed);
}

/* How many units would pass now; not for rates of bytes. */
static inline uint64_t funnel_room(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns)
{
    if (rate_is_fine(rate))
        return fine_room(rate, tat_ns, now_ns);
    uint64_t debt_ns = tat_ns > now_ns ? tat_ns - now_ns : 0;
    return debt_ns < rate->burst_ns ? (rate->burst_ns - debt_ns) / rate->interval_ns : 0;
}

/* True if more than four fifths of the burst are used when the word is tat_ns. */
static inline bool funnel_is_near(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns)
{
    return tat_ns > now_ns + rate->near_ns;
}

/*
 * After `n` units have brought the word to tat_ns, one by one: returns how many of the units left
 * the word near the limit. fine_near_of does this for fine rates.
 */
uint64_t funnel_near_of(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns, uint64_t n);
uint64_t fine_near_of(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns, uint64_t n);

static inline uint64_t funnel_word(const struct funnel *funnel)
{
    return atomic_load_explicit(&funnel->tat_ns, memory_order_relaxed);
}

/*
 * For a take in steps: load the word, compute the next word, replace the word. funnel_replace
 * returns false if another thread changed the word, and sets *tat_ns to the new word. The acquire
 * order keeps other loads between the load of the word and its replacement in place.
 */
static inline uint64_t funnel_peek(const struct funnel *funnel)
{
    return atomic_load_explicit(&funnel->tat_ns, memory_order_acquire);
}

static inline bool funnel_replace(struct funnel *funnel, uint64_t *tat_ns, uint64_t next_ns)
{
    return atomic_compare_exchange_weak_explicit(&funnel->tat_ns, tat_ns, next_ns,
                                                 memory_order_acq_rel, memory_order_acquire);
}

/*
 * For a refusal in steps: true if the word is still *tat_ns. Otherwise *tat_ns is set to the new
 * word.
 */
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

/* True if the funnel holds no debt. An empty funnel may be dropped. */
static inline bool funnel_is_empty(const struct funnel *funnel, uint64_t now_ns)
{
    return atomic_load_explicit(&funnel->tat_ns, memory_order_relaxed) <= now_ns;
}

#endif
