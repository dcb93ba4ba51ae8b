/*
 * Patterns as Redis writes them: * ? [a-z] [^x] and \ for the character itself; bytes, case
 * matters.
 */
#ifndef WEIR_BASE_GLOB_H
#define WEIR_BASE_GLOB_H

#include <stdbool.h>

#include "base/slice.h"

/* True if every [ is closed. glob_match takes only such patterns. */
bool glob_is_closed(struct slice pattern);

/* Takes at most pattern.len * text.len steps; no recursion. */
bool glob_match(struct slice pattern, struct slice text);

/*
 * True if `wide` matches every text that `narrow` matches. Only simple cases are recognised. False
 * for [...] in one of two different patterns, and for ? against *.
 */
bool glob_covers(struct slice wide, struct slice narrow);

/* True if the pattern consists of stars alone. */
bool glob_is_any(struct slice pattern);

#endif
