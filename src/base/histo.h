/*
 * A histogram of times: the number of times between each two fixed bounds, and the sum of all
 * times.
 *
 * One thread writes and any thread may read (base/count.h). counts_add can add one histogram to
 * another, because all histograms have the same bounds. The bounds below HISTO_SHOWN are finer than
 * the bounds of the metrics, so that a quantile of very short times is meaningful.
 */
#ifndef WEIR_BASE_HISTO_H
#define WEIR_BASE_HISTO_H

#include <stdint.h>

#include "base/count.h"

#define HISTO_BOUNDS 19
#define HISTO_SHOWN 5 /* index of the first bound that metrics show: 50 us */

/*
 * Bucket i counts times > bound i - 1 and <= bound i. The last bucket counts times above all
 * bounds.
 */
struct histo {
    _Atomic uint64_t buckets[HISTO_BOUNDS + 1];
    _Atomic uint64_t sum_ns;
};

/* Returns bound `i`; i < HISTO_BOUNDS. */
uint64_t histo_bound_ns(unsigned i);

/* Adds `n` times of `ns` each. Called only on the thread that owns the histogram. */
void histo_add(struct histo *histo, uint64_t ns, uint64_t n);

/*
 * Adds one time, from any thread. Only one of histo_add and histo_add_shared may be used on a
 * histogram.
 */
void histo_add_shared(struct histo *histo, uint64_t ns);

/* Returns how many times were added. */
uint64_t histo_count(const struct histo *histo);

/*
 * Subtracts `before`, an older copy of the same histogram: the times added after `before` remain.
 * The caller owns both copies.
 */
void histo_subtract(struct histo *histo, const struct histo *before);

/*
 * Subtracts the times of `part`, which are also counted in `histo`. No count falls below 0,
 * although the two histograms may have been read at different moments.
 */
void histo_take_out(struct histo *histo, const struct histo *part);

/*
 * Returns the quantile `q` (0.5, 0.99) in nanoseconds, interpolated within its bucket; at most the
 * longest bound. 0 for an empty histogram.
 */
uint64_t histo_quantile_ns(const struct histo *histo, double q);

#endif
