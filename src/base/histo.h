/*
 * A histogram of times: how many lie between each two of a few fixed bounds, and their sum.
 *
 * One thread writes and any thread may read (base/count.h); histograms are added up with counts_add. All have the same
 * bounds. Those below HISTO_SHOWN are finer than what metrics show, so that a quantile of very short times still says
 * something.
 */
#ifndef WEIR_BASE_HISTO_H
#define WEIR_BASE_HISTO_H

#include <stdint.h>

#include "base/count.h"

#define HISTO_BOUNDS 19
#define HISTO_SHOWN 5 /* index of the first bound that metrics show: 50 us */

/* Bucket i counts times > bound i - 1 and <= bound i; the last bucket those longer than all bounds. */
struct histo {
    _Atomic uint64_t buckets[HISTO_BOUNDS + 1];
    _Atomic uint64_t sum_ns;
};

/* i < HISTO_BOUNDS. */
uint64_t histo_bound_ns(unsigned i);

/* Add `n` times of `ns` each. Only on the thread that owns the histogram. */
void histo_add(struct histo *histo, uint64_t ns, uint64_t n);

/* Add one time, from any thread: for a histogram that histo_add is never used on. */
void histo_add_shared(struct histo *histo, uint64_t ns);

/* How many times were added. */
uint64_t histo_count(const struct histo *histo);

/* Subtract an older copy of the same histogram: what is left was added since. Both are the caller's own copies. */
void histo_subtract(struct histo *histo, const struct histo *before);

/* Take out what is also in `part`; never below 0, as they may not have been read at one moment. */
void histo_take_out(struct histo *histo, const struct histo *part);

/*
 * The quantile `q` (0.5, 0.99) in nanoseconds, interpolated within its bucket; at most the longest bound. 0 for an
 * empty histogram.
 */
uint64_t histo_quantile_ns(const struct histo *histo, double q);

#endif
