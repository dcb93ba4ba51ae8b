/*
 * A slice is a pointer and a length: bytes that somebody else owns, valid as long as their owner says.
 * Not NUL-terminated.
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

/* Only for string literals. */
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

/* ASCII only, without a locale, as Redis compares names. */
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

/* Would Redis take this argument for the word? It uses strcasecmp: case aside, and up to a NUL. */
static inline bool slice_is_word(struct slice argument, struct slice word)
{
    return argument.len >= word.len && (argument.len == word.len || argument.at[word.len] == '\0') &&
           slice_eq_nocase(slice_of(argument.at, word.len), word);
}

#endif
