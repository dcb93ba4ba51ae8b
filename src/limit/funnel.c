/*
 * The rare parts of a funnel: the numbers of a rate, and fine rates. rate_init computes these
 * numbers once. A take then needs one multiplication and no division.
 */
#include "limit/funnel.h"

#define ROUNDED_NS 100 /* rounding up an interval of 100 ns or more loses at most 1 % */

static uint64_t four_fifths(uint64_t ns)
{
    return ns - ns / 5;
}

/* Time in ns that a burst takes without rounding per unit. */
static uint64_t exact_burst_ns(const struct rate *rate)
{
    return (uint64_t)((unsigned __int128)rate->burst * rate->period_ns / rate->count);
}

/*
 * True if rounding each unit up to whole nanoseconds loses too much. A rate above one unit a
 * nanosecond is never fine.
 */
static bool needs_fine(const struct rate *rate)
{
    return rate->interval_ns < ROUNDED_NS && rate->count <= rate->period_ns &&
           rate->period_ns % rate->count != 0;
}

bool rate_init(struct rate *rate, uint64_t count, uint64_t period_ns, uint64_t burst)
{
    if (count == 0 || period_ns == 0 || burst == 0)
        return false;
    if ((unsigned __int128)burst * period_ns > (unsigned __int128)count * RATE_LONGEST_NS)
        return false;
    uint64_t interval_ns = period_ns / count + (period_ns % count != 0);
    /* Rounding up at most doubles the interval, unless the rate is above one unit a nanosecond. */
    if (burst > 2 * RATE_LONGEST_NS / interval_ns)
        return false;
    *rate = (struct rate){
        .count = count, .period_ns = period_ns, .burst = burst, .interval_ns = interval_ns};
    bool is_fine = needs_fine(rate);
    rate->plain_burst = is_fine ? 0 : burst;
    rate->burst_ns = burst * interval_ns;
    rate->near_ns = four_fifths(is_fine ? exact_burst_ns(rate) : rate->burst_ns);
    return true;
}

uint64_t rate_span_ns(const struct rate *rate, uint64_t n)
{
    unsigned __int128 span_ns =
        ((unsigned __int128)n * rate->period_ns + rate->count - 1) / rate->count;
    return span_ns < RATE_LONGEST_NS ? (uint64_t)span_ns : RATE_LONGEST_NS;
}

bool rate_init_bytes(struct rate *rate, uint64_t count, uint64_t period_ns, uint64_t burst)
{
    if (!rate_init(rate, count, period_ns, burst))
        return false;
    uint64_t burst_ns = exact_burst_ns(rate);
    rate->plain_burst = burst;
    rate->burst_ns = burst_ns > rate->interval_ns ? burst_ns : rate->interval_ns;
    rate->near_ns = four_fifths(rate->burst_ns);
    return true;
}

uint64_t funnel_near_of(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns, uint64_t n)
{
    if (!funnel_is_near(rate, tat_ns, now_ns))
        return 0;
    if (n == 1)
        return 1;
    if (rate_is_fine(rate))
        return fine_near_of(rate, tat_ns, now_ns, n);
    uint64_t above_ns = tat_ns - (now_ns + rate->near_ns);
    uint64_t near = (above_ns - 1) / rate->interval_ns + 1;
    return near < n ? near : n;
}

/* ---- fine rates ---- */

/*
 * Rates of less than 100 ns a unit that are not whole nanoseconds. Rounding each unit up would lose
 * too much.
 *
 * Units are numbered from time 0 of the clock. Unit k is due at k * period / count, rounded up to
 * whole nanoseconds. Funnels of fine rates hold only times at which a unit is due. A unit takes at
 * least a nanosecond, and no two units are due at the same time. The word therefore identifies k,
 * sums are made in units, and nothing is lost.
 *
 * The rate holds exactly. A take from an empty funnel begins with the next whole unit. The last
 * unit taken is at most one burst after the last unit due. If a burst is taken in parts, the last
 * unit of the burst may wait for the time of one unit. Price: a few divisions.
 */

typedef unsigned __int128 wide;

/* Time at which unit k is due. */
static uint64_t due_ns(const struct rate *rate, uint64_t k)
{
    return (uint64_t)(((wide)k * rate->period_ns + rate->count - 1) / rate->count);
}

/* The last unit that is due at at_ns. */
static uint64_t last_unit(const struct rate *rate, uint64_t at_ns)
{
    return (uint64_t)((wide)at_ns * rate->count / rate->period_ns);
}

/* The first unit due at or after at_ns, with fractions of a nanosecond counted. */
static uint64_t next_unit(const struct rate *rate, uint64_t at_ns)
{
    return (uint64_t)(((wide)at_ns * rate->count + rate->period_ns - 1) / rate->period_ns);
}

/*
 * The unit that a word in the future stands for; if the word is from another rate, the next unit.
 */
static uint64_t funnel_unit_of(const struct rate *rate, uint64_t tat_ns)
{
    uint64_t k = last_unit(rate, tat_ns - 1) + 1;
    return due_ns(rate, k) == tat_ns ? k : next_unit(rate, tat_ns);
}

/* The last of `cost` units taken now. `cost` is cut to the units of RATE_LONGEST_NS. */
static uint64_t funnel_end_of(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns,
                              uint64_t cost)
{
    uint64_t most = last_unit(rate, RATE_LONGEST_NS);
    uint64_t start = tat_ns > now_ns ? funnel_unit_of(rate, tat_ns) : next_unit(rate, now_ns);
    return start + (cost < most ? cost : most);
}

static uint64_t wait_ns(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns, uint64_t cost)
{
    if (tat_ns <= now_ns && cost <= rate->burst)
        return 0;
    uint64_t end = funnel_end_of(rate, tat_ns, now_ns, cost);
    return end > last_unit(rate, now_ns) + rate->burst ? due_ns(rate, end - rate->burst) - now_ns
                                                       : 0;
}

static uint64_t after_ns(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns, uint64_t cost)
{
    uint64_t then_ns = due_ns(rate, funnel_end_of(rate, tat_ns, now_ns, cost));
    return then_ns < now_ns + RATE_LONGEST_NS ? then_ns : now_ns + RATE_LONGEST_NS;
}

uint64_t fine_ask(const struct funnel *funnel, const struct rate *rate, uint64_t now_ns,
                  uint64_t cost)
{
    return cost > rate->burst ? FUNNEL_NEVER : wait_ns(rate, funnel_word(funnel), now_ns, cost);
}

uint64_t fine_queue(const struct funnel *funnel, const struct rate *rate, uint64_t now_ns,
                    uint64_t cost)
{
    return wait_ns(rate, funnel_word(funnel), now_ns, cost);
}

/*
 * Replaces the word. If another thread has changed the word, sets *tat_ns to the new word and
 * returns false.
 */
static bool funnel_move(struct funnel *funnel, uint64_t *tat_ns, uint64_t next_ns)
{
    return atomic_compare_exchange_weak_explicit(&funnel->tat_ns, tat_ns, next_ns,
                                                 memory_order_relaxed, memory_order_relaxed);
}

uint64_t fine_take(struct funnel *funnel, const struct rate *rate, uint64_t now_ns, uint64_t cost)
{
    uint64_t tat_ns = funnel_word(funnel);
    if (cost > rate->burst)
        return FUNNEL_NEVER;
    do {
        uint64_t left_ns = wait_ns(rate, tat_ns, now_ns, cost);
        if (left_ns > 0)
            return left_ns;
    } while (!funnel_move(funnel, &tat_ns, after_ns(rate, tat_ns, now_ns, cost)));
    return 0;
}

uint64_t fine_enqueue(struct funnel *funnel, const struct rate *rate, uint64_t now_ns,
                      uint64_t cost)
{
    uint64_t tat_ns = funnel_word(funnel);
    uint64_t next_ns;
    do
        next_ns = after_ns(rate, tat_ns, now_ns, cost);
    while (!funnel_move(funnel, &tat_ns, next_ns));
    return next_ns;
}

uint64_t fine_room(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns)
{
    uint64_t full = last_unit(rate, now_ns) + rate->burst;
    uint64_t taken = tat_ns > now_ns ? funnel_unit_of(rate, tat_ns) : last_unit(rate, now_ns);
    return taken < full ? full - taken : 0;
}

/* From an empty funnel one unit always passes. The count begins with the next whole unit. */
uint64_t fine_fit(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns, uint64_t n)
{
    bool is_empty = tat_ns <= now_ns;
    uint64_t full = last_unit(rate, now_ns) + rate->burst;
    uint64_t taken = is_empty ? next_unit(rate, now_ns) : funnel_unit_of(rate, tat_ns);
    uint64_t room = taken < full ? full - taken : is_empty;
    return room < n ? room : n;
}

uint64_t fine_after(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns, uint64_t n)
{
    return after_ns(rate, tat_ns, now_ns, n);
}

uint64_t fine_near_of(const struct rate *rate, uint64_t tat_ns, uint64_t now_ns, uint64_t n)
{
    uint64_t last = funnel_unit_of(rate, tat_ns);
    /* the last unit after which the word is not near the limit */
    uint64_t far = last_unit(rate, now_ns + rate->near_ns);
    uint64_t near = last > far ? last - far : 0;
    return near < n ? near : n;
}
