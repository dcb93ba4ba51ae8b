/* Growing text, and Redis' parsers of text: numbers, patterns, inline words. */
#ifndef WEIR_SIM_REDIS_TEXT_H
#define WEIR_SIM_REDIS_TEXT_H

#include <stdarg.h>
#include <stdint.h>

#include "base/slice.h"
#include "tests/sim/redis_memory.h"

struct text {
    char *at; /* heap; NULL while room is 0 */
    size_t len, room;
};

void text_reserve(struct text *text, size_t more);
void text_addf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_addv(struct text *text, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
void text_insert(struct text *text, size_t at, struct slice piece);
void text_cut_head(struct text *text, size_t n);

static inline void text_add(struct text *text, struct slice piece)
{
    if (text->room - text->len < piece.len)
        text_reserve(text, piece.len);
    if (piece.len > 0)
        memcpy(text->at + text->len, piece.at, piece.len);
    text->len += piece.len;
}

static inline struct slice text_slice(const struct text *text)
{
    return slice_of(text->at, text->len);
}

static inline void text_set(struct text *text, struct slice value)
{
    text->len = 0;
    text_add(text, value);
}

static inline void text_fini(struct text *text)
{
    free(text->at);
    *text = (struct text){0};
}

/* A copy on the heap, NUL-terminated. */
char *text_copy(struct slice piece);

/* The decimal digits, written into `room` of at least 24 bytes. */
struct slice text_of_number(int64_t number, char *room);

/* Parses an integer by Redis' rules: no plus, no leading zero, no blank. */
bool text_to_number(struct slice text, int64_t *number);

/* Parses a float as a command's argument: all of what strtod accepts, no NaN, no leading blank. */
bool text_to_float(struct slice text, double *number);
bool text_to_long_double(struct slice text, long double *number);

/*
 * A score as Redis shows it: with 17 digits, or since 7.2 with as few digits as identify the score.
 * Room of at least 64 bytes.
 */
struct slice text_of_score(double score, bool is_shortest, char *room);

/* True if the argument, up to a NUL, is the word in any case. The word is in lower case. */
static inline bool text_is(struct slice argument, const char *word)
{
    size_t i = 0;
    for (; word[i] != '\0'; i++)
        if (i >= argument.len || ascii_lower(argument.at[i]) != word[i])
            return false;
    return i == argument.len || argument.at[i] == '\0';
}

/* The piece up to its first NUL. */
static inline struct slice text_upto_nul(struct slice piece)
{
    return slice_of(piece.at, piece.len > 0 ? strnlen(piece.at, piece.len) : 0);
}

/* As memcmp, the shorter first. */
int text_compare(struct slice a, struct slice b);

bool text_matches(struct slice pattern, struct slice text, bool is_nocase);

/* Splits an inline command into words, each copied to the heap. False: unbalanced quotes. */
bool text_split(struct slice line, struct text **words, size_t *n);

#endif
