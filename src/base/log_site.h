/*
 * How many lines of one site there may be. Any thread; a compare-and-swap, no lock.
 */
#ifndef WEIR_BASE_LOG_SITE_H
#define WEIR_BASE_LOG_SITE_H

#include "base/log.h"

/* May the site have a line now (monotonic)? Then *suppressed is how many it did not get since the last. Else it counts. */
bool log_site_admits(enum log_site site, uint64_t now_ns, uint64_t *suppressed);

#endif
