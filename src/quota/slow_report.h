/*
 * LIMIT SLOWLOG, in the words and shapes of Redis' SLOWLOG.
 */
#ifndef WEIR_QUOTA_SLOW_REPORT_H
#define WEIR_QUOTA_SLOW_REPORT_H

#include <stddef.h>

#include "base/slice.h"
#include "limit/slowlog.h"
#include "resp/build.h"

/* Append the reply to LIMIT SLOWLOG with the n > 0 words that follow. Out of memory breaks `out`. */
void slow_report(struct build *out, struct slowlog *slowlog, const struct slice *words, size_t n);

#endif
