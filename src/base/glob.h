/*
 * Patterns as Redis writes them: * ? [a-z] [^x] and \ for the character itself; bytes, case matters.
 */
#ifndef WEIR_BASE_GLOB_H
#define WEIR_BASE_GLOB_H

#include <stdbool.h>

#include "base/slice.h"

/* Is every [ closed? glob_match wants only such patterns. */
bool glob_is_closed(struct slice pattern);

/* Takes at most pattern.len * text.len steps; no recursion. */
bool glob_match(struct slice pattern, struct slice text);

#endif
