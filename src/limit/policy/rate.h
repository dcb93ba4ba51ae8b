/*
 * Parses and prints the numbers of the configuration: counts, bytes, times, and rates made of them.
 *
 * A parser takes the whole slice; on false the result is untouched and `why` says what is wrong.
 */
#ifndef WEIR_LIMIT_RATE_H
#define WEIR_LIMIT_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/policy/calendar.h"
#include "limit/funnel.h"

/* "1000", "10k", "2m", "1g": thousands, as commands are counted. */
__attribute__((warn_unused_result)) bool rate_parse_count(struct slice text, uint64_t *count, char *why,
                                                          size_t why_size);

/* "500ms", "60s", "s", "5m", "h", "2d", and "0"; at most 100 years. */
__attribute__((warn_unused_result)) bool rate_parse_time(struct slice text, uint64_t *ns, char *why, size_t why_size);

/* "65536", "64kb", "64mb", "1gb": by 1024. */
__attribute__((warn_unused_result)) bool rate_parse_bytes(struct slice text, uint64_t *bytes, char *why,
                                                          size_t why_size);

/*
 * "1000/s", "5/60s", and of bytes "10mb/s": a count and a period, neither of them 0. A count with a decimal point is
 * made whole, in a longer period, by the smallest factor: "0.3/s" is 3/10s, "0.25/s" 1/4s, "1.5k/s" 1500/s.
 */
#define RATE_DECIMALS_MAX 6 /* digits behind the point */
__attribute__((warn_unused_result)) bool rate_parse_amount(struct slice text, bool is_bytes, uint64_t *count,
                                                           uint64_t *period_ns, char *why, size_t why_size);

/*
 * "1000/month": a whole count, and a calendar window, without a number in front of it. True with *calendar ==
 * CALENDAR_NONE: the text has another form (rate_parse_amount may take it). False: this form, but wrong, as `why` says.
 */
__attribute__((warn_unused_result)) bool rate_parse_calendar(struct slice text, uint64_t *count,
                                                             enum calendar *calendar, char *why, size_t why_size);

/* The shortest exact notation: "10mb", "90s", "h" for an hour. NUL-terminated; returns the length. */
size_t rate_print_bytes(uint64_t bytes, char *out, size_t size);
size_t rate_print_time(uint64_t ns, char *out, size_t size);

#endif
