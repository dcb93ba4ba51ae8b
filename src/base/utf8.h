/*
 * Where one character of UTF-8 ends. Pure.
 */
#ifndef WEIR_BASE_UTF8_H
#define WEIR_BASE_UTF8_H

#include "base/slice.h"

/* How many bytes the character at the beginning of `rest` has, which is not empty; 0: there is none. */
size_t utf8_len(struct slice rest);

#endif
