/*
 * The grammar of limits: "1000/s burst 2000 per subject over refuse", and its parts.
 *
 * Every parser takes the whole slice or nothing: false leaves the result untouched, and `why` says what is wrong.
 */
#ifndef WEIR_LIMIT_RATE_H
#define WEIR_LIMIT_RATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/funnel.h"

/* "1000", "10k", "2m", "1g": thousands, as commands are counted. */
__attribute__((warn_unused_result)) bool rate_parse_count(struct slice text, uint64_t *count, char *why,
                                                          size_t why_size);

/* "500ms", "60s", "s", "5m", "h", "2d", and "0"; at most 100 years. */
__attribute__((warn_unused_result)) bool rate_parse_time(struct slice text, uint64_t *ns, char *why, size_t why_size);

/* "1000/s", "5/60s": a count and a period, neither of them 0. */
__attribute__((warn_unused_result)) bool rate_parse_amount(struct slice text, uint64_t *count, uint64_t *period_ns,
                                                           char *why, size_t why_size);

/*
 * One limit on commands: an amount, then clauses in any order, each at most once. The burst is the count unless given.
 * What is not there yet (`per connection`, `over delay` ...) is refused by name.
 */
__attribute__((warn_unused_result)) bool rate_parse(struct slice text, struct rate *rate, char *why, size_t why_size);

#endif
