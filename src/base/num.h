/*
 * The one integer parser, with Redis' rules: an optional '-', no '+', no leading zero, no spaces,
 * no "-0", at most 20 characters, and the value fits 64 bits.
 */
#ifndef WEIR_BASE_NUM_H
#define WEIR_BASE_NUM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* False, and *out untouched, unless the whole slice is one such number. */
__attribute__((warn_unused_result)) bool num_parse(struct slice text, int64_t *out);

#endif
