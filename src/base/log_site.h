/*
 * Rate-limits the log lines that others can cause, for each site apart. Any thread; a compare-and-swap, no lock.
 */
#ifndef WEIR_BASE_LOG_SITE_H
#define WEIR_BASE_LOG_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log_words.h"

/* Each site may log ten lines at once, then one every five seconds. */
#define LOG_SITE_BURST 10
#define LOG_SITE_INTERVAL_NS UINT64_C(5000000000)

/*
 * May the site log a line now? If so *suppressed is how many lines it was denied since its last one; if not, that
 * counts.
 */
bool log_site_admits(enum log_site site, uint64_t now_ns, uint64_t *suppressed);

/* How many lines of this site were suppressed since the start. */
uint64_t log_suppressed(enum log_site site);

#endif
