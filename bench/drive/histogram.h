/*
 * A histogram of durations with 64 buckets for each power of two, so that a quantile is off by 1.6
 * % at most.
 */
#ifndef WEIR_BENCH_HISTOGRAM_H
#define WEIR_BENCH_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BITS 6 /* log2 of the number of buckets for each power of two */
#define HISTOGRAM_BUCKETS ((64 - HISTOGRAM_BITS + 1) << HISTOGRAM_BITS)

struct histogram {
    uint64_t total;
    uint64_t at[HISTOGRAM_BUCKETS];
};

/* Below 64 each number has its own bucket. Above, the highest seven bits choose the bucket. */
static inline unsigned histogram_bucket(uint64_t value)
{
    if (value < (1u << HISTOGRAM_BITS))
        return (unsigned)value;
    unsigned shift = 63u - HISTOGRAM_BITS - (unsigned)__builtin_clzll(value);
    return ((shift + 1) << HISTOGRAM_BITS) + (unsigned)(value >> shift) - (1u << HISTOGRAM_BITS);
}

static inline void histogram_add(struct histogram *histogram, uint64_t value, uint64_t times)
{
    histogram->at[histogram_bucket(value)] += times;
    histogram->total += times;
}

/* The middle of the bucket that holds quantile `q`; 0 if the histogram is empty. */
static inline uint64_t histogram_quantile(const struct histogram *histogram, double q)
{
    uint64_t wanted = (uint64_t)((double)histogram->total * q), seen = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->at[i];
        if (histogram->at[i] == 0 || seen <= wanted)
            continue;
        if (i < (1u << HISTOGRAM_BITS))
            return i;
        unsigned shift = (i >> HISTOGRAM_BITS) - 1;
        uint64_t top = (i & ((1u << HISTOGRAM_BITS) - 1)) + (1u << HISTOGRAM_BITS);
        return (top << shift) + (UINT64_C(1) << shift) / 2;
    }
    return 0;
}

#endif
