/*
 * Splits a slice into parts without copying: results point into the input.
 */
#ifndef WEIR_BASE_SPLIT_H
#define WEIR_BASE_SPLIT_H

#include <stdbool.h>

#include "base/slice.h"

static inline bool split_is_space(char c)
{
    return c == ' ' || c == '\t';
}

static inline struct slice split_trim(struct slice text)
{
    while (text.len > 0 && split_is_space(text.at[0])) {
        text.at++;
        text.len--;
    }
    while (text.len > 0 && split_is_space(text.at[text.len - 1]))
        text.len--;
    return text;
}

/* Take the first `len` bytes off *rest. */
static inline struct slice split_take(struct slice *rest, size_t len)
{
    struct slice taken = slice_of(rest->at, len);
    *rest = slice_of(rest->at + len, rest->len - len);
    return taken;
}

/*
 * Take the next part off *rest, up to `separator` or the end, trimmed. False when there are no more. "a,,b" has three
 * parts, the second empty; "" has one, which is empty.
 */
static inline bool split_next(struct slice *rest, char separator, struct slice *part)
{
    if (rest->at == NULL)
        return false;
    const char *end = memchr(rest->at, separator, rest->len);
    *part = split_trim(split_take(rest, end != NULL ? (size_t)(end - rest->at) : rest->len));
    *rest = end != NULL ? slice_of(rest->at + 1, rest->len - 1) : slice_of(NULL, 0);
    return true;
}

/* Take the next blank-separated word off *rest. False when there is none. */
static inline bool split_word(struct slice *rest, struct slice *word)
{
    *rest = split_trim(*rest);
    size_t len = 0;
    while (len < rest->len && !split_is_space(rest->at[len]))
        len++;
    *word = split_take(rest, len);
    return len > 0;
}

#endif
