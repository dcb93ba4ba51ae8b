/*
 * Checks the bound of a limit on a list of admissions: in every closed window w at most burst +
 * count * w / period. The check is exact, in whole numbers, and independent of funnels.
 */
#ifndef WEIR_TESTS_FUNNEL_LAW_H
#define WEIR_TESTS_FUNNEL_LAW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "limit/funnel.h"

struct admitted {
    uint64_t at_ns;
    uint64_t cost;
};

static inline int admitted_order(const void *a, const void *b)
{
    const struct admitted *x = a, *y = b;
    return (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns);
}

/*
 * P(k) is the sum of the admissions up to k. The bound is (P(j) - P(i - 1)) * period <= burst *
 * period + count * (t(j) - t(i)) for all i <= j. The function checks each j with the i of the least
 * P(i - 1) * period - count * t(i), which is enough. Sorts `list`. `at_once` replaces burst *
 * period.
 */
static inline bool law_holds_with(struct admitted *list, size_t n, const struct rate *rate,
                                  __int128 at_once)
{
    __int128 total = 0, least = 0;
    qsort(list, n, sizeof *list, admitted_order);
    for (size_t j = 0; j < n; j++) {
        __int128 passed = (__int128)rate->count * (list[j].at_ns - list[0].at_ns);
        __int128 start = total * rate->period_ns - passed;
        if (j == 0 || start < least)
            least = start;
        total += list[j].cost;
        if (total * rate->period_ns - passed - least > at_once)
            return false;
    }
    return true;
}

static inline bool law_holds(struct admitted *list, size_t n, const struct rate *rate)
{
    return law_holds_with(list, n, rate, (__int128)rate->burst * rate->period_ns);
}

#endif
