/*
 * LIMIT SLOWLOG: the subcommands and replies of Redis' SLOWLOG.
 */
#ifndef WEIR_QUOTA_SLOW_REPORT_H
#define WEIR_QUOTA_SLOW_REPORT_H

#include <stddef.h>

#include "base/slice.h"
#include "limit/figures/slowlog.h"
#include "resp/build.h"

#define SLOW_WAITS_ROOM 128

/* Prints the names of a set of waits, with commas between them. Returns how many bytes, without the NUL. */
typedef size_t slow_waits_print(unsigned waits, char out[SLOW_WAITS_ROOM]);

/* Append the reply to LIMIT SLOWLOG followed by these n > 0 words. Out of memory: `out` is broken. */
void slow_report(struct build *out, struct slowlog *slowlog, const struct slice *words, size_t n,
                 slow_waits_print *print_waits);

#endif
