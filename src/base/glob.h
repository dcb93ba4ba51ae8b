/*
 * Patterns with the syntax of Redis: * ? [a-z] [^x], and \ before a character that stands for
 * itself. Patterns match bytes, and case matters.
 */
#ifndef WEIR_BASE_GLOB_H
#define WEIR_BASE_GLOB_H

#include <stdbool.h>

#include "base/slice.h"

/* True if every [ is closed. glob_match takes only patterns in which every [ is closed. */
bool glob_is_closed(struct slice pattern);

/*
 * True if the pattern matches the whole text. Takes at most pattern.len * text.len steps, without
 * recursion.
 */
bool glob_match(struct slice pattern, struct slice text);

/*
 * True if `wide` matches every text that `narrow` matches. Recognises four cases: equal patterns, a
 * `wide` of stars alone, a `narrow` without special characters, and simple patterns. Patterns are
 * simple if `wide` has no special character but stars, and `narrow` has no [ and no \. Returns
 * false in all other cases.
 */
bool glob_covers(struct slice wide, struct slice narrow);

/* True if the pattern consists of stars alone. */
bool glob_is_any(struct slice pattern);

#endif
