/*
 * A slice is a pointer and a length. The owner of the bytes keeps the bytes valid. The bytes are
 * not NUL-terminated.
 */
#ifndef WEIR_BASE_SLICE_H
#define WEIR_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct slice {
    const char *at;
    size_t len;
};

/* The slice of a string literal. */
#define SLICE(literal) ((struct slice){("" literal), sizeof(literal) - 1})

static inline struct slice slice_of(const char *at, size_t len)
{
    return (struct slice){at, len};
}

static inline struct slice slice_str(const char *text)
{
    return (struct slice){text, strlen(text)};
}

static inline bool slice_eq(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

static inline bool slice_begins(struct slice text, struct slice with)
{
    return text.len >= with.len && (with.len == 0 || memcmp(text.at, with.at, with.len) == 0);
}

/*
 * ascii_lower and ascii_upper change ASCII letters only, without a locale, as Redis compares names.
 */
static inline char ascii_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static inline char ascii_upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - ('a' - 'A')) : c;
}

static inline bool slice_eq_nocase(struct slice a, struct slice b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (ascii_lower(a.at[i]) != ascii_lower(b.at[i]))
            return false;
    return true;
}

/*
 * True if Redis treats this argument as the word. Redis uses strcasecmp, which ignores case and
 * stops at a NUL.
 */
static inline bool slice_is_word(struct slice argument, struct slice word)
{
    return argument.len >= word.len &&
           (argument.len == word.len || argument.at[word.len] == '\0') &&
           slice_eq_nocase(slice_of(argument.at, word.len), word);
}

/* ---- parts: nothing is copied, results point into the input ---- */

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

/* Takes the first `len` bytes off *rest. */
static inline struct slice split_take(struct slice *rest, size_t len)
{
    struct slice taken = slice_of(rest->at, len);
    *rest = slice_of(rest->at + len, rest->len - len);
    return taken;
}

/*
 * Takes the next part off *rest, up to `separator` or the end, trimmed. False: no more parts.
 * "a,,b" has three parts, the second empty; "" has one, which is empty.
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

/* Takes the next blank-separated word off *rest. False: no more words. */
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
