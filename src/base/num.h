/*
 * The one integer parser, with Redis' rules: an optional '-', no '+', no leading zero, no spaces,
 * no "-0", at most 20 characters, and the value fits 64 bits.
 */
#ifndef WEIR_BASE_NUM_H
#define WEIR_BASE_NUM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

#define NUM_DIGITS_MAX 20 /* of 64 bits */

/*
 * By digits: the smallest number that has so many. 0 digits: UINT64_MAX, which no number reaches.
 */
extern const uint64_t num_least[NUM_DIGITS_MAX + 1];

/* False, and *out unchanged, unless the whole slice is one such number. */
__attribute__((warn_unused_result)) bool num_parse(struct slice text, int64_t *out);

/*
 * Returns the value of an environment variable, from 1 to `most`; 0: not set, or not such a number.
 */
int64_t num_of_environment(const char *name, int64_t most);

#endif
