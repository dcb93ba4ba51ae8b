#include "run/config_terms.h"

#include <string.h>

#include "base/split.h"
#include "base/why.h"

#define SUGGESTED_MAX 64

/* ---- several in one ---- */

/* "a;alice", "a|alice" */
static const char *find_separator(struct slice pattern)
{
    for (size_t i = 0; i < pattern.len; i++)
        if (pattern.at[i] == ';' || pattern.at[i] == '|')
            return pattern.at + i;
    return NULL;
}

/* The part behind the separator, up to the next one, without the kind that it may have. */
static struct slice second_part(struct slice kind, struct slice rest)
{
    const char *end = find_separator(rest);
    struct slice part = split_trim(slice_of(rest.at, end != NULL ? (size_t)(end - rest.at) : rest.len));
    bool has_kind =
        part.len > kind.len && slice_eq_nocase(slice_of(part.at, kind.len), kind) && part.at[kind.len] == ':';
    return has_kind ? slice_of(part.at + kind.len + 1, part.len - kind.len - 1) : part;
}

static bool doubt_list(struct slice term, struct slice kind, struct slice pattern, struct why why)
{
    const char *at = find_separator(pattern);
    if (at == NULL)
        return false;
    size_t len = (size_t)(at - pattern.at);
    struct slice first = split_trim(slice_of(pattern.at, len));
    struct slice second = second_part(kind, slice_of(at + 1, pattern.len - len - 1));
    why_refuse(why, "%.*s matches only what has that %c in it: terms are separated by commas: %.*s:%.*s, %.*s:%.*s",
               WHY_SLICE(term), *at, WHY_SLICE(kind), WHY_SLICE(first), WHY_SLICE(kind), WHY_SLICE(second));
    return true;
}

/* ---- regular expressions ---- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/*
 * True for /.../, ^..., ~..., for alternatives in parentheses, for \d and its kin, for a + behind a bracket, and for .* or .+ where no word ends. "svc.*"
 * may be meant: names of services have dots.
 */
static bool is_regular_expression(struct slice p)
{
    if ((p.at[0] == '/' && p.len > 1 && p.at[p.len - 1] == '/') || p.at[0] == '^' || p.at[0] == '~')
        return true;
    if (memchr(p.at, '(', p.len) != NULL && memchr(p.at, '|', p.len) != NULL)
        return true;
    for (size_t i = 0; i + 1 < p.len; i++) {
        bool is_class = p.at[i] == '\\' && strchr("dDwWsSbB", p.at[i + 1]) != NULL;
        bool is_repeated = p.at[i] == ']' && p.at[i + 1] == '+';
        bool is_any = p.at[i] == '.' && (p.at[i + 1] == '*' || p.at[i + 1] == '+');
        if (is_class || is_repeated || (is_any && (i == 0 || !is_word(p.at[i - 1]))))
            return true;
    }
    return false;
}

/* The pattern that may be meant, where that is simple: "free-*" of "/^free-.*$/". Its length; 0: it is not. */
static size_t suggest(struct slice p, char out[SUGGESTED_MAX])
{
    size_t len = 0;
    while (p.len > 0 && (p.at[0] == '/' || p.at[0] == '^' || p.at[0] == '~'))
        p = slice_of(p.at + 1, p.len - 1);
    while (p.len > 0 && (p.at[p.len - 1] == '/' || p.at[p.len - 1] == '$'))
        p.len--;
    for (size_t i = 0; i < p.len; i++) {
        bool is_any = p.at[i] == '.' && i + 1 < p.len && (p.at[i + 1] == '*' || p.at[i + 1] == '+');
        if (len == SUGGESTED_MAX || (!is_any && strchr("\\[](){}+|^$", p.at[i]) != NULL))
            return 0;
        out[len++] = is_any ? '*' : p.at[i];
        i += is_any;
    }
    return len;
}

static bool doubt_expression(struct slice term, struct slice kind, struct slice pattern, struct why why)
{
    char text[SUGGESTED_MAX];
    if (!is_regular_expression(pattern))
        return false;
    size_t len = suggest(pattern, text);
    if (len > 0)
        why_refuse(why, "%.*s is no regular expression, but a pattern of * and ?: write %.*s:%.*s", WHY_SLICE(term),
                   WHY_SLICE(kind), (int)len, text);
    else
        why_refuse(
            why,
            "%.*s is no regular expression, but a pattern: * stands for anything, ? for one character, [abc] for "
            "one of them",
            WHY_SLICE(term));
    return true;
}

static bool doubt_quotes(struct slice term, struct slice kind, struct slice pattern, struct why why)
{
    char quote = pattern.at[0];
    if (pattern.len < 3 || (quote != '"' && quote != '\'') || pattern.at[pattern.len - 1] != quote)
        return false;
    why_refuse(why, "%.*s matches only what has the quotes in it: write %.*s:%.*s", WHY_SLICE(term), WHY_SLICE(kind),
               WHY_SLICE(slice_of(pattern.at + 1, pattern.len - 2)));
    return true;
}

bool config_term_is_doubtful(struct slice term, char *why_out, size_t why_size)
{
    struct why why = {why_out, why_size};
    struct slice rest = term, kind;
    if (!split_next(&rest, ':', &kind) || slice_eq_nocase(kind, SLICE("key")) || slice_eq_nocase(kind, SLICE("ip")))
        return false;
    struct slice pattern = split_trim(rest);
    return pattern.len > 0 && (doubt_quotes(term, kind, pattern, why) || doubt_expression(term, kind, pattern, why) ||
                               doubt_list(term, kind, pattern, why));
}
