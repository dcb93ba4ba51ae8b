/*
 * A glob matcher that backtracks to the last star only.
 *
 * Earlier stars never need another try, because the last star can take over every byte that another
 * try of an earlier star would match.
 */
#include "base/glob.h"

#include <string.h>

/*
 * Reads the member of a set at *at: a range, or one byte as a range. The byte after `\` stands for
 * itself.
 */
static void set_member(struct slice pattern, size_t *at, unsigned char *low, unsigned char *high)
{
    const char *p = pattern.at + *at;
    size_t left = pattern.len - *at;
    size_t used = 1;
    *low = *high = (unsigned char)p[0];
    if (p[0] == '\\' && left >= 2) {
        *low = *high = (unsigned char)p[1];
        used = 2;
    } else if (left >= 3 && p[1] == '-') {
        *high = (unsigned char)p[2];
        used = 3;
    }
    *at += used;
}

/* True if `c` is in the set behind the '[' at *at. Moves *at to the ']', or to the end. */
static bool set_has(struct slice pattern, size_t *at, unsigned char c)
{
    bool is_found = false;
    bool is_negated = *at < pattern.len && pattern.at[*at] == '^';
    if (is_negated)
        ++*at;
    while (*at < pattern.len && pattern.at[*at] != ']') {
        unsigned char low, high;
        set_member(pattern, at, &low, &high);
        if (low <= high ? c >= low && c <= high : c >= high && c <= low)
            is_found = true;
    }
    return is_found != is_negated;
}

/*
 * True if the element of the pattern at *at (a byte, ? or set; no star) matches `c`. Moves *at
 * behind the element.
 */
static bool one_holds(struct slice pattern, size_t *at, char c)
{
    char p = pattern.at[(*at)++];
    if (p == '?')
        return true;
    if (p == '[') {
        bool has = set_has(pattern, at, (unsigned char)c);
        ++*at;
        return has;
    }
    if (p == '\\' && *at < pattern.len)
        p = pattern.at[(*at)++];
    return p == c;
}

bool glob_match(struct slice pattern, struct slice text)
{
    size_t p = 0, t = 0;
    /*
     * `star`: index in the pattern behind the last star; `star_text`: index in the text at which
     * the rest of the pattern is tried
     */
    size_t star = 0, star_text = 0;
    bool has_star = false;
    while (t < text.len || (p < pattern.len && pattern.at[p] == '*')) {
        if (p < pattern.len && pattern.at[p] == '*') {
            has_star = true;
            star = ++p;
            star_text = t;
            continue;
        }
        if (p < pattern.len && one_holds(pattern, &p, text.at[t])) {
            t++;
            continue;
        }
        if (!has_star || star_text >= text.len)
            return false;
        p = star;
        t = ++star_text;
    }
    return p == pattern.len;
}

bool glob_is_closed(struct slice pattern)
{
    for (size_t at = 0; at < pattern.len; at++) {
        if (pattern.at[at] == '\\') {
            at++;
        } else if (pattern.at[at] == '[') {
            at++;
            set_has(pattern, &at, 0);
            if (at == pattern.len)
                return false;
        }
    }
    return true;
}

static bool glob_has_any(struct slice text, const char *set)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] != '\0' && strchr(set, text.at[i]) != NULL)
            return true;
    return false;
}

/*
 * In the simple case glob_match reads `narrow` as a text. A star of `wide` then matches each star
 * and ? of `narrow`, and so every text that the star or ? stands for.
 */
bool glob_covers(struct slice wide, struct slice narrow)
{
    bool is_literal = !glob_has_any(narrow, "*?[\\");
    bool is_simple = !glob_has_any(wide, "?[\\") && !glob_has_any(narrow, "[\\");
    return slice_eq(wide, narrow) || glob_is_any(wide) ||
           ((is_literal || is_simple) && glob_match(wide, narrow));
}

bool glob_is_any(struct slice pattern)
{
    for (size_t i = 0; i < pattern.len; i++)
        if (pattern.at[i] != '*')
            return false;
    return pattern.len > 0;
}
