/* Works out a rate's numbers once, so that a take needs one multiplication and no division. */
#include "limit/funnel.h"

#define ROUNDED_NS 100 /* rounding such an interval up loses less than 1 % */

static uint64_t four_fifths(uint64_t ns)
{
    return ns - ns / 5;
}

/* How long a burst takes that is not rounded unit by unit. */
static uint64_t exact_burst_ns(const struct rate *rate)
{
    return (uint64_t)((unsigned __int128)rate->burst * rate->period_ns / rate->count);
}

/* Would whole nanoseconds for a unit lose too much? A rate of more than one unit a nanosecond is always fine. */
static bool needs_fine(const struct rate *rate)
{
    return rate->interval_ns < ROUNDED_NS && rate->count <= rate->period_ns && rate->period_ns % rate->count != 0;
}

bool rate_init(struct rate *rate, uint64_t count, uint64_t period_ns, uint64_t burst)
{
    if (count == 0 || period_ns == 0 || burst == 0)
        return false;
    if ((unsigned __int128)burst * period_ns > (unsigned __int128)count * RATE_LONGEST_NS)
        return false;
    uint64_t interval_ns = period_ns / count + (period_ns % count != 0);
    /* Rounding up at most doubles the interval, unless the rate is beyond one a nanosecond. */
    if (burst > 2 * RATE_LONGEST_NS / interval_ns)
        return false;
    *rate = (struct rate){.count = count, .period_ns = period_ns, .burst = burst, .interval_ns = interval_ns};
    bool is_fine = needs_fine(rate);
    rate->plain_burst = is_fine ? 0 : burst;
    rate->burst_ns = burst * interval_ns;
    rate->near_ns = four_fifths(is_fine ? exact_burst_ns(rate) : rate->burst_ns);
    return true;
}

uint64_t rate_span_ns(const struct rate *rate, uint64_t n)
{
    unsigned __int128 span_ns = ((unsigned __int128)n * rate->period_ns + rate->count - 1) / rate->count;
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
