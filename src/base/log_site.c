/* The generic cell rate algorithm on one word for each site: the moment when all its lines would be allowed again. */
#include "base/log_site.h"

#include <stdatomic.h>

static struct site {
    _Atomic uint64_t full_ns;
    _Atomic uint64_t untold; /* suppressed since the last line, to be said in the next */
    _Atomic uint64_t suppressed;
} sites[LOG_SITE_COUNT];

uint64_t log_suppressed(enum log_site site)
{
    return atomic_load_explicit(&sites[site].suppressed, memory_order_relaxed);
}

bool log_site_admits(enum log_site site, uint64_t now_ns, uint64_t *suppressed)
{
    struct site *at = &sites[site];
    *suppressed = 0;
    if (site == LOG_SITE_NONE)
        return true;
    uint64_t full_ns = atomic_load_explicit(&at->full_ns, memory_order_relaxed);
    uint64_t next_ns;
    do {
        next_ns = (full_ns > now_ns ? full_ns : now_ns) + LOG_SITE_INTERVAL_NS;
        if (next_ns - now_ns > LOG_SITE_BURST * LOG_SITE_INTERVAL_NS) {
            atomic_fetch_add_explicit(&at->untold, 1, memory_order_relaxed);
            atomic_fetch_add_explicit(&at->suppressed, 1, memory_order_relaxed);
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&at->full_ns, &full_ns, next_ns, memory_order_relaxed,
                                                    memory_order_relaxed));
    *suppressed = atomic_exchange_explicit(&at->untold, 0, memory_order_relaxed);
    return true;
}
