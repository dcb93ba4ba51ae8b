#include "base/why.h"

#include <stdarg.h>
#include <stdio.h>

bool why_set(char *why, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, size, format, args);
    va_end(args);
    return false;
}

bool why_refuse(struct why why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why.out, why.size, format, args);
    va_end(args);
    return false;
}

size_t choice_find(const char *const *words, struct slice value)
{
    size_t i = 0;
    while (words[i] != NULL && !slice_eq_nocase(value, slice_str(words[i])))
        i++;
    return i;
}

bool choice_take(const char *const *words, struct slice value, unsigned *index, char *why,
                 size_t why_size)
{
    size_t found = choice_find(words, value);
    *index = (unsigned)found;
    if (words[found] != NULL)
        return true;
    int len = snprintf(why, why_size, "\"%.*s\" is", WHY_SLICE(value));
    for (size_t i = 0; words[i] != NULL && len >= 0 && (size_t)len < why_size; i++)
        len += snprintf(why + len, why_size - (size_t)len, " %s %s", i == 0 ? "neither" : "nor",
                        words[i]);
    return false;
}

/* ---- the nearest name ---- */

#define NAME_MAX_BYTES 64
#define EDITS_MAX 3 /* chosen: a name with more edits is rarely the intended name */

static size_t why_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static bool why_is_same(char a, char b)
{
    return ascii_lower(a) == ascii_lower(b);
}

static bool is_swap(struct slice a, size_t i, struct slice b, size_t j)
{
    return i > 1 && j > 1 && why_is_same(a.at[i - 1], b.at[j - 2]) &&
           why_is_same(a.at[i - 2], b.at[j - 1]);
}

/*
 * Returns the optimal string alignment distance. Keeps three rows of the table: the row being
 * computed, the row before, and, for swaps, the second row before.
 */
static size_t distance(struct slice a, struct slice b)
{
    size_t room[3][NAME_MAX_BYTES + 1];
    size_t *before = room[0], *last = room[1], *row = room[2];
    for (size_t j = 0; j <= b.len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t *spare = before;
        before = last;
        last = row;
        row = spare;
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            row[j] = why_least(last[j], row[j - 1]) + 1;
            row[j] = why_least(row[j], last[j - 1] + !why_is_same(a.at[i - 1], b.at[j - 1]));
            if (is_swap(a, i, b, j))
                row[j] = why_least(row[j], before[j - 2] + 1);
        }
    }
    return row[b.len];
}

struct slice near_name(struct slice text, size_t n,
                       struct slice (*name_at)(const void *arg, size_t i), const void *arg)
{
    struct slice nearest = {"", 0};
    size_t fewest = EDITS_MAX + 1;
    if (text.len == 0 || text.len > NAME_MAX_BYTES)
        return nearest;
    for (size_t i = 0; i < n; i++) {
        struct slice name = name_at(arg, i);
        if (name.len == 0 || name.len > NAME_MAX_BYTES)
            continue;
        size_t edits = distance(text, name);
        if (edits < fewest && edits <= most(1, most(text.len, name.len) / 3)) {
            fewest = edits;
            nearest = name;
        }
    }
    return nearest;
}
