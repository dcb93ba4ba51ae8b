/*
 * One word out of a few: finding it, and saying that it is none of them.
 */
#ifndef WEIR_BASE_CHOICE_H
#define WEIR_BASE_CHOICE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

/* The index of `value` in `words`, in any case of letters; NULL stands behind the last. Their number: it is none. */
size_t choice_find(const char *const *words, struct slice value);

/* The same into *index. False: it is none, and `why` says that it is neither the one nor the other. */
__attribute__((warn_unused_result)) bool choice_take(const char *const *words, struct slice value, unsigned *index,
                                                     char *why, size_t why_size);

#endif
