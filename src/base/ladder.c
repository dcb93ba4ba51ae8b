#include "base/ladder.h"

#define SLACK 10 /* per cent of the limit */

static const unsigned begins[LADDER_STEPS] = {
    [LADDER_FREE] = 0, [LADDER_SHED] = 75, [LADDER_STALL] = 85, [LADDER_REFUSE] = 95};

enum ladder_step ladder_next(enum ladder_step step, uint64_t used, uint64_t limit)
{
    if (limit == 0)
        return LADDER_FREE;
    uint64_t percent = limit / 100 > 0 ? used / (limit / 100) : 100;
    unsigned next = LADDER_STEPS - 1;
    while (percent < begins[next])
        next--;
    if (next >= step)
        return (enum ladder_step)next;
    unsigned kept = step;
    while (kept > next && percent < begins[kept] - SLACK)
        kept--;
    return (enum ladder_step)kept;
}
