/* Works out a rate's numbers once, so that a take needs one multiplication and no division. */
#include "limit/funnel.h"

static void set_burst(struct rate *rate, uint64_t burst_ns)
{
    rate->burst_ns = burst_ns;
    rate->near_ns = burst_ns - burst_ns / 5;
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
    set_burst(rate, burst * interval_ns);
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
    uint64_t burst_ns = (uint64_t)((unsigned __int128)burst * period_ns / count);
    set_burst(rate, burst_ns > rate->interval_ns ? burst_ns : rate->interval_ns);
    return true;
}
