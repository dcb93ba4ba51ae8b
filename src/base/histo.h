/*
 * A histogram of times: how many were no longer than each of a few bounds, and their sum.
 *
 * One thread writes and any thread may read (base/count.h); several of them are added up with counts_add. The bounds
 * are the same for all. Those below HISTO_SHOWN are finer than what metrics show, so that a quantile of very short
 * times still says something.
 */
#ifndef WEIR_BASE_HISTO_H
#define WEIR_BASE_HISTO_H

#include <stdint.h>

#include "base/count.h"

#define HISTO_BOUNDS 19
#define HISTO_SHOWN 5 /* the first bound that metrics show: 50 us */

/* Bucket i holds what is longer than bound i - 1 and no longer than bound i; the last one all that is longer. */
struct histo {
    _Atomic uint64_t buckets[HISTO_BOUNDS + 1];
    _Atomic uint64_t sum_ns;
};

/* i < HISTO_BOUNDS. */
uint64_t histo_bound_ns(unsigned i);

/* `n` times of `ns` each. Only the thread that writes. */
void histo_add(struct histo *histo, uint64_t ns, uint64_t n);

/* One time; of a histogram to which any thread may add so, and nobody with histo_add. */
void histo_add_shared(struct histo *histo, uint64_t ns);

/* How many times are in it. */
uint64_t histo_count(const struct histo *histo);

/* Take away what was in it `before`: what is left came since. Both are the caller's own copies. */
void histo_subtract(struct histo *histo, const struct histo *before);

/*
 * The time in nanoseconds that a part `q` of all (0.5, 0.99) did not exceed, by interpolation in its bucket; of what is
 * beyond the longest bound that bound. 0 when there are none.
 */
uint64_t histo_quantile_ns(const struct histo *histo, double q);

#endif
