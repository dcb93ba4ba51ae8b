/*
 * How long one character of UTF-8 is. Pure.
 */
#ifndef WEIR_BASE_UTF8_H
#define WEIR_BASE_UTF8_H

#include "base/slice.h"

/* How many bytes the character at the beginning of `rest` has; 0: it is not valid UTF-8. `rest` is not empty. */
size_t utf8_len(struct slice rest);

#endif
