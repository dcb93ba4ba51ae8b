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

/*
 * Does `wide` match whatever `narrow` matches? Only what is plain to see: false where it takes thought ([...] in either
 * of two patterns that are not equal, ? against *).
 */
bool glob_covers(struct slice wide, struct slice narrow);

/* Is it nothing but stars? */
bool glob_is_any(struct slice pattern);

#endif
