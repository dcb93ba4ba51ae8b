#include "run/config/config_terms.h"

#include <stdio.h>
#include <string.h>

#include "base/glob.h"
#include "base/slice.h"
#include "base/why.h"

#define SUGGESTED_MAX 64
#define TERM_ROOM 128

/*
 * Writes the fault of a term, and the likely pattern: "..., but ...: write user:free-*".
 * Returns true.
 */
static bool config_terms_doubt(struct why why, struct slice term, const char *what,
                               struct slice kind, struct slice meant)
{
    char right[TERM_ROOM], unused[TERM_ROOM];
    struct match match = {0};
    int len = snprintf(right, sizeof right, "%.*s:%.*s", WHY_SLICE(kind), WHY_SLICE(meant));
    struct slice text = slice_of(right, len > 0 && (size_t)len < sizeof right ? (size_t)len : 0);
    bool is_good = meant.len > 0 && match_parse(&match, text, unused, sizeof unused) &&
                   !config_term_is_doubtful(text, (struct why){unused, sizeof unused});
    match_fini(&match);
    why_refuse(why, is_good ? "%.*s %s: write %s" : "%.*s %s", WHY_SLICE(term), what, right);
    return true;
}

/* ---- several terms in one ---- */

/* Finds the separator in "a;alice" or "a|alice". */
static const char *find_separator(struct slice pattern)
{
    for (size_t i = 0; i < pattern.len; i++)
        if (pattern.at[i] == ';' || pattern.at[i] == '|')
            return pattern.at + i;
    return NULL;
}

/* Returns the part after the separator, up to the next one, without its kind. */
static struct slice second_part(struct slice kind, struct slice rest)
{
    const char *end = find_separator(rest);
    struct slice part =
        split_trim(slice_of(rest.at, end != NULL ? (size_t)(end - rest.at) : rest.len));
    bool has_kind = part.len > kind.len && slice_eq_nocase(slice_of(part.at, kind.len), kind) &&
                    part.at[kind.len] == ':';
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
    why_refuse(
        why,
        "%.*s matches only texts that contain %c: separate terms by commas: %.*s:%.*s, %.*s:%.*s",
        WHY_SLICE(term), *at, WHY_SLICE(kind), WHY_SLICE(first), WHY_SLICE(kind),
        WHY_SLICE(second));
    return true;
}

/* ---- regular expressions ---- */

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/*
 * True for /.../, ^..., ...$, ~..., for alternatives in parentheses, and for \d and similar
 * escapes. True for a + after a bracket or at the end, and for .* or .+ not after a word. "svc.*"
 * may be intended: names of services contain dots.
 */
static bool is_regular_expression(struct slice p)
{
    char last = p.len > 1 ? p.at[p.len - 1] : '\0';
    if ((p.at[0] == '/' && last == '/') || p.at[0] == '^' || p.at[0] == '~')
        return true;
    if ((last == '$' || last == '+') && p.at[p.len - 2] != '\\')
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

/*
 * Writes the likely pattern if it is simple: "free-*" for "/^free-.*$/". Returns the pattern's
 * length; 0: not simple.
 */
static size_t config_terms_suggest(struct slice p, char out[SUGGESTED_MAX])
{
    size_t len = 0;
    while (p.len > 0 && (p.at[0] == '/' || p.at[0] == '^' || p.at[0] == '~'))
        p = slice_of(p.at + 1, p.len - 1);
    while (p.len > 0 && (p.at[p.len - 1] == '/' || p.at[p.len - 1] == '$'))
        p.len--;
    for (size_t i = 0; i < p.len; i++) {
        bool is_any = p.at[i] == '.' && i + 1 < p.len && (p.at[i + 1] == '*' || p.at[i + 1] == '+');
        if (p.at[i] == '+' && i + 1 == p.len && len > 0 && len < SUGGESTED_MAX) { /* "free-+" */
            out[len++] = '*';
            break;
        }
        if (len == SUGGESTED_MAX || (!is_any && strchr("\\[](){}+|^$", p.at[i]) != NULL))
            return 0;
        out[len++] = is_any ? '*' : p.at[i];
        i += is_any;
    }
    return len;
}

static bool doubt_expression(struct slice term, struct slice kind, struct slice pattern,
                             struct why why)
{
    char text[SUGGESTED_MAX];
    if (!is_regular_expression(pattern))
        return false;
    size_t len = config_terms_suggest(pattern, text);
    if (len == 0)
        return config_terms_doubt(
            why, term,
            "is a pattern, not a regular expression: * matches any text, ? one character, [abc] one of these",
            kind, SLICE(""));
    return config_terms_doubt(why, term, "is a pattern of * and ?, not a regular expression", kind,
                              slice_of(text, len));
}

/* ---- other mistakes ---- */

static bool doubt_quotes(struct slice term, struct slice kind, struct slice pattern, struct why why)
{
    char quote = pattern.at[0];
    if (pattern.len < 3 || (quote != '"' && quote != '\'') || pattern.at[pattern.len - 1] != quote)
        return false;
    return config_terms_doubt(why, term, "matches only texts that contain the quotes", kind,
                              slice_of(pattern.at + 1, pattern.len - 2));
}

/* "user:user:ann" */
static bool doubt_kind(struct slice term, struct slice kind, struct slice pattern, struct why why)
{
    struct slice rest = pattern, first;
    if (!split_next(&rest, ':', &first) || rest.at == NULL || !slice_eq_nocase(first, kind))
        return false;
    return config_terms_doubt(why, term, "names its kind twice", kind, split_trim(rest));
}

/* "user:<name>", as in documentation */
static bool doubt_placeholder(struct slice term, struct slice kind, struct slice pattern,
                              struct why why)
{
    bool has_brackets =
        pattern.len > 2 && pattern.at[0] == '<' && pattern.at[pattern.len - 1] == '>';
    return has_brackets && config_terms_doubt(why, term, "matches only texts that contain < and >",
                                              kind, slice_of(pattern.at + 1, pattern.len - 2));
}

/* "user:!ann" for all but ann, and "user:[!a]*", as in shells. "[!-/]" is a range. */
static bool doubt_not(struct slice term, struct slice kind, struct slice pattern, struct why why)
{
    char text[SUGGESTED_MAX];
    if (pattern.at[0] == '!' && pattern.len > 1)
        return config_terms_doubt(
            why, term,
            "matches only texts that contain the !: give clients to exclude a policy of their own above this one",
            kind, SLICE(""));
    const char *at = memmem(pattern.at, pattern.len, "[!", 2);
    if (at == NULL || pattern.len > sizeof text || at[2] == '-' || at[2] == ']')
        return false;
    memcpy(text, pattern.at, pattern.len);
    text[at + 1 - pattern.at] = '^';
    return config_terms_doubt(why, term, "matches ! too: use [^ to exclude characters", kind,
                              slice_of(text, pattern.len));
}

/* "user:a\": a \ escapes the next character, and there is none. */
static bool doubt_escape(struct slice term, struct slice kind, struct slice pattern, struct why why)
{
    char text[SUGGESTED_MAX];
    size_t n = 0;
    while (n < pattern.len && pattern.at[pattern.len - 1 - n] == '\\')
        n++;
    if (n % 2 == 0 || pattern.len >= sizeof text)
        return false;
    memcpy(text, pattern.at, pattern.len);
    text[pattern.len] = '\\';
    return config_terms_doubt(why, term,
                              "ends with a \\ without a character after it; write \\\\ for a \\",
                              kind, slice_of(text, pattern.len + 1));
}

bool config_term_is_doubtful(struct slice term, struct why why)
{
    struct slice rest = term, kind;
    if (!split_next(&rest, ':', &kind) || slice_eq_nocase(kind, SLICE("key")) ||
        slice_eq_nocase(kind, SLICE("ip")))
        return false;
    struct slice pattern = split_trim(rest);
    return pattern.len > 0 &&
           (doubt_quotes(term, kind, pattern, why) || doubt_kind(term, kind, pattern, why) ||
            doubt_placeholder(term, kind, pattern, why) ||
            doubt_expression(term, kind, pattern, why) || doubt_list(term, kind, pattern, why) ||
            doubt_not(term, kind, pattern, why) || doubt_escape(term, kind, pattern, why));
}

/* ---- terms that match no listener ---- */

static bool has_tls(const struct config *config)
{
    for (size_t i = 0; i < config->n_listens; i++)
        if (config->listens[i].address.is_tls)
            return true;
    return false;
}

static bool is_tls_unbound(const struct config *config, struct slice term, struct why why)
{
    if (!has_tls(config))
        why_refuse(why,
                   "%.*s binds no client: no address of listen begins with tls:", WHY_SLICE(term));
    else if (config->tls_settings.auth == TLS_AUTH_NO)
        why_refuse(
            why,
            "%.*s binds no client, because weir asks no client for a certificate: write tls-auth-clients "
            "= optional",
            WHY_SLICE(term));
    else
        return false;
    return true;
}

/* Prints the address as a pattern: "\[::1]:6380". */
static void print_pattern(const char *text, char *out, size_t size)
{
    size_t len = 0;
    for (; *text != '\0' && len + 2 < size; text++) {
        if (strchr("*?[\\", *text) != NULL)
            out[len++] = '\\';
        out[len++] = *text;
    }
    out[len] = '\0';
}

/*
 * True if the term matches no address. An address with port 0 gets its port later, so it may match
 * any term.
 */
static bool is_listener_unbound(const struct config *config, const struct match *match,
                                struct slice term, struct why why)
{
    char text[ADDRESS_TEXT], meant[ADDRESS_TEXT] = "";
    struct slice pattern = slice_str(match->glob);
    bool has_pattern = false;
    for (size_t i = 0; i < config->n_listens; i++) {
        const struct address *address = &config->listens[i].address;
        address_print(address, text, sizeof text);
        if (glob_match(pattern, slice_str(text)) || (!address->is_unix && address->port == 0))
            return false;
        bool has = memmem(text, strlen(text), pattern.at, pattern.len) != NULL;
        if (i == 0 || (has && !has_pattern))
            print_pattern(text, meant, sizeof meant);
        has_pattern = has_pattern || has;
    }
    why_refuse(why,
               "%.*s binds no client, because it matches no address of listen: write listener:%s",
               WHY_SLICE(term), meant);
    return true;
}

bool config_term_is_unbound(const struct config *config, const struct match *match,
                            struct slice term, struct why why)
{
    if (match->kind == MATCH_TLS)
        return is_tls_unbound(config, term, why);
    return match->kind == MATCH_LISTENER && is_listener_unbound(config, match, term, why);
}

static const struct row {
    struct slice word;
    enum error_word verdict;
} rows[] = {
#define WORD(text, verdict) {{text, sizeof(text) - 1}, ERROR_WORD_##verdict},
#include "run/config/error_words.def"
#undef WORD
};

enum error_word error_word_find(struct slice word)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (slice_eq(word, rows[i].word))
            return rows[i].verdict;
    return ERROR_WORD_NONE;
}

struct slice error_word_in(struct slice name)
{
    for (size_t i = 0, end; i < name.len; i = end + 1) {
        for (end = i; end < name.len && name.at[end] >= 'A' && name.at[end] <= 'Z'; end++)
            ;
        if (error_word_find(slice_of(name.at + i, end - i)) != ERROR_WORD_NONE)
            return slice_of(name.at + i, end - i);
    }
    return SLICE("");
}
