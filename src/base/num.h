/*
 * weir's only parser of integers, with Redis' rules: an optional '-', no '+', no leading zero, no
 * spaces, no "-0". A number has at most 20 characters and fits 64 bits.
 */
#ifndef WEIR_BASE_NUM_H
#define WEIR_BASE_NUM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

#define NUM_DIGITS_MAX 20 /* digits of the largest 64-bit number */

/*
 * num_least[d] is the smallest number with d digits. num_least[0] is UINT64_MAX, because no number
 * has 0 digits.
 */
extern const uint64_t num_least[NUM_DIGITS_MAX + 1];

/* True if the whole slice is one number by these rules. Otherwise *out is unchanged. */
__attribute__((warn_unused_result)) bool num_parse(struct slice text, int64_t *out);

/*
 * Returns the value of an environment variable, from 1 to `most`; 0: the variable is not set, or is
 * no number in that range.
 */
int64_t num_of_environment(const char *name, int64_t most);

#endif
