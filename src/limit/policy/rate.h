/*
 * Parses and prints the numbers of the configuration: counts, bytes, times and rates.
 *
 * A parser takes the whole slice. On false the result is untouched and `why` holds the reason.
 */
#ifndef WEIR_LIMIT_RATE_H
#define WEIR_LIMIT_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/policy/calendar.h"
#include "limit/funnel.h"

/* "1000", "10k", "2m", "1g": factors of 1000. */
__attribute__((warn_unused_result)) bool rate_parse_count(struct slice text, uint64_t *count,
                                                          char *why, size_t why_size);

/* "500ms", "60s", "s", "5m", "h", "2d", and "0"; at most 100 years. */
__attribute__((warn_unused_result)) bool rate_parse_time(struct slice text, uint64_t *ns, char *why,
                                                         size_t why_size);

/* "65536", "64kb", "64mb", "1gb": factors of 1024. */
__attribute__((warn_unused_result)) bool rate_parse_bytes(struct slice text, uint64_t *bytes,
                                                          char *why, size_t why_size);

/* A rate as written in the configuration. */
struct rate_text {
    uint64_t count, period_ns; /* not 0; but the period of a calendar window is 0 */
    enum calendar calendar;    /* CALENDAR_NONE: a sliding period of period_ns */
    uint64_t burst;            /* 0: not given */
};

enum rate_form {
    RATE_OF_UNITS, /* "1000/s", "5/60s" */
    RATE_OF_BYTES, /* "10mb/s" */
    /* as RATE_OF_UNITS, or "1000/month": a whole count and a calendar window without a number */
    RATE_OF_CALENDAR,
};

/*
 * Parses a rate. A count with a decimal point is made whole by the smallest factor, which also
 * extends the period. "0.3/s" becomes 3/10s, "0.25/s" 1/4s, "1.5k/s" 1500/s. rate->burst becomes 0.
 */
#define RATE_DECIMALS_MAX 6 /* digits after the point */
__attribute__((warn_unused_result)) bool rate_parse(struct slice text, enum rate_form form,
                                                    struct rate_text *rate, char *why,
                                                    size_t why_size);

/* Parses a count or a number of bytes other than 0. */
__attribute__((warn_unused_result)) bool rate_parse_burst(struct slice text, enum rate_form form,
                                                          uint64_t *burst, char *why,
                                                          size_t why_size);

/*
 * Both functions print the shortest exact form: "10mb", "90s", "h" for an hour. The text is
 * NUL-terminated. Both return its length.
 */
size_t rate_print_bytes(uint64_t bytes, char *out, size_t size);
size_t rate_print_time(uint64_t ns, char *out, size_t size);

#endif
