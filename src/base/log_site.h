/*
 * How many lines of one site there may be. Any thread; a compare-and-swap, no lock.
 */
#ifndef WEIR_BASE_LOG_SITE_H
#define WEIR_BASE_LOG_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log_words.h"

/* Of each site ten lines at once, then one every five seconds. */
#define LOG_SITE_BURST 10
#define LOG_SITE_INTERVAL_NS UINT64_C(5000000000)

/* May the site have a line now (monotonic)? Then *suppressed is how many it did not get since the last. Else it counts. */
bool log_site_admits(enum log_site site, uint64_t now_ns, uint64_t *suppressed);

/* Lines of this site that were not written, ever. */
uint64_t log_suppressed(enum log_site site);

#endif
