#include "base/histo.h"

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

static const uint64_t bounds_ns[HISTO_BOUNDS] = {
    1 * US,    2500,   5 * US,  10 * US, 25 * US, 50 * US,  100 * US, 250 * US,  500 * US,  1 * MS,
    2500 * US, 5 * MS, 10 * MS, 25 * MS, 50 * MS, 100 * MS, 250 * MS, 1000 * MS, 2500 * MS,
};

uint64_t histo_bound_ns(unsigned i)
{
    return bounds_ns[i];
}

/* The search begins in the middle, because most times are far from both ends. */
static unsigned histo_bucket_of(uint64_t ns)
{
    unsigned i = ns > bounds_ns[HISTO_SHOWN + 3] ? HISTO_SHOWN + 4 : 0;
    while (i < HISTO_BOUNDS && ns > bounds_ns[i])
        i++;
    return i;
}

void histo_add(struct histo *histo, uint64_t ns, uint64_t n)
{
    count_add(&histo->buckets[histo_bucket_of(ns)], n);
    count_add(&histo->sum_ns, ns * n);
}

void histo_add_shared(struct histo *histo, uint64_t ns)
{
    atomic_fetch_add_explicit(&histo->buckets[histo_bucket_of(ns)], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&histo->sum_ns, ns, memory_order_relaxed);
}

uint64_t histo_count(const struct histo *histo)
{
    uint64_t n = 0;
    for (unsigned i = 0; i <= HISTO_BOUNDS; i++)
        n += count_read(&histo->buckets[i]);
    return n;
}

void histo_subtract(struct histo *histo, const struct histo *before)
{
    for (unsigned i = 0; i <= HISTO_BOUNDS; i++)
        count_add(&histo->buckets[i], -count_read(&before->buckets[i]));
    count_add(&histo->sum_ns, -count_read(&before->sum_ns));
}

static void take_out(_Atomic uint64_t *count, uint64_t n)
{
    uint64_t there = count_read(count);
    count_set(count, there > n ? there - n : 0);
}

void histo_take_out(struct histo *histo, const struct histo *part)
{
    for (unsigned i = 0; i <= HISTO_BOUNDS; i++)
        take_out(&histo->buckets[i], count_read(&part->buckets[i]));
    take_out(&histo->sum_ns, count_read(&part->sum_ns));
}

uint64_t histo_quantile_ns(const struct histo *histo, double q)
{
    double wanted = q * (double)histo_count(histo);
    double below = 0;
    for (unsigned i = 0; i < HISTO_BOUNDS; i++) {
        double here = (double)count_read(&histo->buckets[i]);
        uint64_t from_ns = i > 0 ? bounds_ns[i - 1] : 0;
        if (here > 0 && below + here >= wanted)
            return from_ns + (uint64_t)((double)(bounds_ns[i] - from_ns) * (wanted - below) / here);
        below += here;
    }
    return below < wanted ? bounds_ns[HISTO_BOUNDS - 1] : 0;
}
