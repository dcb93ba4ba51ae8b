/* Works out a rate's numbers once, so that a take needs one multiplication and no division. */
#include "limit/funnel.h"

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
    *rate = (struct rate){count, period_ns, burst, interval_ns, burst * interval_ns};
    return true;
}
