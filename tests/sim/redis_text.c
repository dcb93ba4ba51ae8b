#include "tests/sim/redis_text.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define ROOM_LEAST 64
#define MATCH_DEPTH 1000 /* most stars of a pattern that are matched */

void text_reserve(struct text *text, size_t more)
{
    size_t want = text->len + more;
    if (want <= text->room)
        return;
    size_t room = text->room > 0 ? text->room : ROOM_LEAST;
    while (room < want)
        room *= 2;
    text->at = take_more(text->at, room, 1);
    text->room = room;
}

void text_addv(struct text *text, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    text_reserve(text, ROOM_LEAST); /* mostly enough */
    int n = vsnprintf(text->at + text->len, text->room - text->len, format, args);
    if (n < 0)
        abort();
    if ((size_t)n >= text->room - text->len) {
        text_reserve(text, (size_t)n + 1);
        vsnprintf(text->at + text->len, (size_t)n + 1, format, again);
    }
    va_end(again);
    text->len += (size_t)n;
}

void text_addf(struct text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_addv(text, format, args);
    va_end(args);
}

void text_insert(struct text *text, size_t at, struct slice piece)
{
    text_reserve(text, piece.len);
    memmove(text->at + at + piece.len, text->at + at, text->len - at);
    memcpy(text->at + at, piece.at, piece.len);
    text->len += piece.len;
}

void text_cut_head(struct text *text, size_t n)
{
    text->len -= n;
    if (text->len > 0)
        memmove(text->at, text->at + n, text->len);
}

char *text_copy(struct slice piece)
{
    char *copy = take_memory(piece.len + 1);
    if (piece.len > 0)
        memcpy(copy, piece.at, piece.len);
    copy[piece.len] = '\0';
    return copy;
}

/* ---- numbers ---- */

struct slice text_of_number(int64_t number, char *room)
{
    char *end = room + 24;
    char *at = end;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (number < 0)
        *--at = '-';
    return slice_of(at, (size_t)(end - at));
}

bool text_to_number(struct slice text, int64_t *number)
{
    bool is_negative = text.len > 0 && text.at[0] == '-';
    struct slice digits = is_negative ? slice_of(text.at + 1, text.len - 1) : text;
    if (digits.len == 0 || digits.len > 20 || (digits.at[0] == '0' && text.len > 1))
        return false;
    uint64_t value = 0;
    for (size_t i = 0; i < digits.len; i++) {
        unsigned digit = (unsigned char)digits.at[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    if (value > (uint64_t)INT64_MAX + is_negative)
        return false;
    *number = (int64_t)(is_negative ? 0 - value : value);
    return true;
}

bool text_to_float(struct slice text, double *number)
{
    char copy[512];
    if (text.len == 0 || text.len >= sizeof copy || isspace((unsigned char)text.at[0]))
        return false;
    memcpy(copy, text.at, text.len);
    copy[text.len] = '\0';
    char *end;
    errno = 0;
    *number = strtod(copy, &end);
    bool is_over = errno == ERANGE &&
                   (*number == HUGE_VAL || *number == -HUGE_VAL || fpclassify(*number) == FP_ZERO);
    return end == copy + text.len && !is_over && !isnan(*number);
}

bool text_to_long_double(struct slice text, long double *number)
{
    char copy[256];
    if (text.len == 0 || text.len >= sizeof copy || isspace((unsigned char)text.at[0]))
        return false;
    memcpy(copy, text.at, text.len);
    copy[text.len] = '\0';
    char *end;
    errno = 0;
    *number = strtold(copy, &end);
    bool is_over = errno == ERANGE && (isinf(*number) || fpclassify(*number) == FP_ZERO);
    return end == copy + text.len && !is_over && !isnan(*number);
}

struct slice text_of_score(double score, bool is_shortest, char *room)
{
    if (isinf(score))
        return score > 0 ? SLICE("inf") : SLICE("-inf");
    /* below, no number needs seventeen digits */
    double exact_below = is_shortest ? (double)(INT64_MAX / 2) : 1e15;
    bool is_whole = fabs(score) <= exact_below && (double)(int64_t)score == score;
    if (is_whole && (is_shortest || !signbit(score) || score < 0))
        return text_of_number((int64_t)score, room);
    int digits = is_shortest ? 1 : 17;
    int n;
    do
        n = snprintf(room, 64, "%.*g", digits, score);
    while (++digits <= 17 && strtod(room, NULL) != score);
    return slice_of(room, (size_t)n);
}

int text_compare(struct slice a, struct slice b)
{
    size_t least = a.len < b.len ? a.len : b.len;
    int order = least > 0 ? memcmp(a.at, b.at, least) : 0;
    if (order != 0)
        return order;
    return a.len < b.len ? -1 : a.len > b.len;
}

/* ---- patterns ---- */

static unsigned char fold(char c, bool is_nocase)
{
    return (unsigned char)(is_nocase ? ascii_lower(c) : c);
}

/*
 * `*at` is the index behind "[". Afterwards `*at` is the index of "]", or of the last byte if there
 * is no "]".
 */
static bool class_has(struct slice pattern, size_t *at, char c, bool is_nocase)
{
    size_t i = *at;
    bool is_not = i < pattern.len && pattern.at[i] == '^';
    bool is_in = false;
    for (i += is_not; i < pattern.len && pattern.at[i] != ']'; i++) {
        unsigned char low = fold(pattern.at[i], is_nocase);
        if (pattern.at[i] == '\\' && i + 1 < pattern.len) {
            i++;
            is_in |= pattern.at[i] == c;
        } else if (i + 2 < pattern.len && pattern.at[i + 1] == '-') {
            unsigned char high = fold(pattern.at[i + 2], is_nocase);
            unsigned char byte = fold(c, is_nocase);
            is_in |= low <= high ? byte >= low && byte <= high : byte >= high && byte <= low;
            i += 2;
        } else {
            is_in |= low == fold(c, is_nocase);
        }
    }
    *at = i < pattern.len ? i : pattern.len - 1;
    return is_in != is_not;
}

static bool matches(struct slice p, struct slice s, bool is_nocase, bool *is_hopeless,
                    unsigned depth)
{
    size_t i = 0;
    size_t k = 0;
    if (depth > MATCH_DEPTH)
        return false;
    while (i < p.len && k < s.len) {
        if (p.at[i] == '*') {
            while (i + 1 < p.len && p.at[i + 1] == '*')
                i++;
            if (i + 1 == p.len)
                return true;
            for (; k < s.len; k++) {
                if (matches(slice_of(p.at + i + 1, p.len - i - 1), slice_of(s.at + k, s.len - k),
                            is_nocase, is_hopeless, depth + 1))
                    return true;
                if (*is_hopeless)
                    return false;
            }
            /* not even the rest of the text matches the pattern behind this star */
            *is_hopeless = true;
            return false;
        }
        if (p.at[i] == '[') {
            i++;
            if (!class_has(p, &i, s.at[k], is_nocase))
                return false;
        } else if (p.at[i] != '?') {
            if (p.at[i] == '\\' && i + 1 < p.len)
                i++;
            if (fold(p.at[i], is_nocase) != fold(s.at[k], is_nocase))
                return false;
        }
        i++;
        k++;
        if (k == s.len)
            while (i < p.len && p.at[i] == '*')
                i++;
    }
    return i == p.len && k == s.len;
}

bool text_matches(struct slice pattern, struct slice text, bool is_nocase)
{
    bool is_hopeless = false;
    return matches(pattern, text, is_nocase, &is_hopeless, 0);
}

/* ---- inline words ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = ascii_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static char unescaped(char c)
{
    switch (c) {
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'b':
        return '\b';
    case 'a':
        return '\a';
    default:
        return c;
    }
}

static char byte_at(struct slice line, size_t i)
{
    return i < line.len ? line.at[i] : '\0';
}

/*
 * Parses a quoted word from behind its opening quote. False: there is no closing quote, or no blank
 * follows the closing quote.
 */
static bool split_quoted(struct slice line, size_t *at, struct text *word)
{
    char quote = line.at[*at - 1];
    size_t i = *at;
    for (;; i++) {
        char c = byte_at(line, i);
        if (c == '\0')
            return false;
        if (quote == '"' && c == '\\' && byte_at(line, i + 1) == 'x' &&
            hex_digit(byte_at(line, i + 2)) >= 0 && hex_digit(byte_at(line, i + 3)) >= 0) {
            c = (char)(hex_digit(line.at[i + 2]) * 16 + hex_digit(line.at[i + 3]));
            i += 3;
        } else if (quote == '"' && c == '\\' && byte_at(line, i + 1) != '\0') {
            c = unescaped(line.at[++i]);
        } else if (quote == '\'' && c == '\\' && byte_at(line, i + 1) == '\'') {
            c = line.at[++i];
        } else if (c == quote) {
            break;
        }
        text_add(word, slice_of(&c, 1));
    }
    *at = i + 1;
    char next = byte_at(line, i + 1);
    return next == '\0' || isspace((unsigned char)next);
}

static bool take_word(struct slice line, size_t *at, struct text *word)
{
    for (;;) {
        char c = byte_at(line, *at);
        if (c == '\0' || c == ' ' || c == '\n' || c == '\r' || c == '\t')
            return true;
        ++*at;
        if (c == '"' || c == '\'')
            return split_quoted(line, at, word);
        text_add(word, slice_of(&c, 1));
    }
}

bool text_split(struct slice line, struct text **words, size_t *n)
{
    size_t at = 0;
    *words = NULL;
    *n = 0;
    for (;;) {
        while (isspace((unsigned char)byte_at(line, at)))
            at++;
        if (byte_at(line, at) == '\0')
            return true;
        *words = take_more(*words, *n + 1, sizeof **words);
        struct text *word = &(*words)[(*n)++];
        *word = (struct text){0};
        text_reserve(word, 1);
        if (!take_word(line, &at, word))
            return false;
    }
}
