#include "front/commands/limit_words.h"

#include <stdio.h>

#include "base/num.h"
#include "base/why.h"

void limit_words_error(const struct limit_words *words, size_t i, struct build *out)
{
    char text[160];
    int len = i < words->n ? snprintf(text, sizeof text, "ERR syntax error, unexpected '%.*s'",
                                      WHY_SLICE(words->at[i]))
                           : snprintf(text, sizeof text,
                                      "ERR syntax error, an argument is missing after '%.*s'",
                                      WHY_SLICE(words->at[words->n - 1]));
    build_error(out, slice_of(text, (size_t)len));
}

static void hinted_error(const struct limit_words *words, size_t i, const char *hint,
                         const char *token, struct slice word, struct build *out)
{
    char text[320];
    int len = snprintf(text, sizeof text, "ERR syntax error, unexpected '%.*s' (%s%s%s%.*s%s)",
                       WHY_SLICE(words->at[i]), hint, token, word.len > 0 ? " " : "",
                       WHY_SLICE(word), hint[0] == 'd' ? "?" : "");
    build_error(out, slice_of(text, (size_t)len));
}

void limit_words_token_missing(const struct limit_words *words, size_t i, const char *token,
                               struct build *out)
{
    hinted_error(words, i, "write ", token, words->at[i], out);
}

void limit_words_token_meant(const struct limit_words *words, size_t i, const char *token,
                             struct build *out)
{
    hinted_error(words, i, "did you mean ", token, SLICE(""), out);
}

struct known_words {
    const char *const *at;
};

static struct slice known_word(const void *arg, size_t i)
{
    const struct known_words *known = arg;
    return slice_str(known->at[i]);
}

void limit_words_unknown(const struct limit_words *words, size_t i, const char *const *known,
                         size_t n, struct build *out)
{
    const struct known_words all = {known};
    struct slice near = i < words->n ? near_name(words->at[i], n, known_word, &all) : SLICE("");
    char shown[32];
    snprintf(shown, sizeof shown, "%.*s", (int)near.len, near.at);
    for (char *c = shown; *c; c++)
        *c = ascii_upper(*c);
    if (near.len > 0)
        limit_words_token_meant(words, i, shown, out);
    else
        limit_words_error(words, i, out);
}

bool limit_words_count(const struct limit_words *words, size_t i, size_t otherwise, size_t *n,
                       struct build *out)
{
    int64_t number;
    char text[160];
    *n = otherwise;
    if (i >= words->n)
        return true;
    if (num_parse(words->at[i], &number) && number >= 1) {
        *n = (size_t)number;
        return true;
    }
    int len = snprintf(text, sizeof text,
                       "ERR value is not an integer or out of range: '%.*s' must be 1 or more",
                       WHY_SLICE(words->at[i]));
    build_error(out, slice_of(text, (size_t)len));
    return false;
}

size_t limit_words_span(const struct limit_words *words, size_t first, struct limit_span *span)
{
    size_t i = first;
    while (i < words->n && !limit_word_is(words, i, "for") && !limit_word_is(words, i, "ex"))
        i++;
    *span = (struct limit_span){.end = i < words->n ? i : words->n};
    for (; i < words->n; i += 2) {
        size_t *index = limit_word_is(words, i, "for")  ? &span->subject
                        : limit_word_is(words, i, "ex") ? &span->time
                                                        : NULL;
        if (index == NULL || *index > 0)
            return i;
        if (i + 1 == words->n)
            return words->n;
        *index = i + 1;
    }
    return 0;
}

void limit_words_span_error(const struct limit_words *words, size_t fault,
                            const struct limit_span *span, struct build *out)
{
    if (span->time == 0 && limit_word_is_number(words, fault))
        limit_words_token_missing(words, fault, "EX", out);
    else
        limit_words_error(words, fault, out);
}

static bool is_suggest_token(const struct limit_words *words, size_t i)
{
    return limit_word_is(words, i, "class") || limit_word_is(words, i, "percentile") ||
           limit_word_is(words, i, "except");
}

size_t limit_words_suggest(const struct limit_words *words, bool is_policy,
                           struct limit_suggest *found)
{
    size_t i = 2;
    *found = (struct limit_suggest){0};
    if (i < words->n && (!is_suggest_token(words, i) || (is_policy && words->n == 3)))
        found->policy = i++;
    while (i < words->n && found->except == 0) {
        size_t *index = limit_word_is(words, i, "class")        ? &found->class
                        : limit_word_is(words, i, "percentile") ? &found->percentile
                        : limit_word_is(words, i, "except")     ? &found->except
                                                                : NULL;
        if (index == NULL || *index > 0)
            return i;
        if (i + 1 == words->n)
            return words->n;
        *index = i + 1;
        i += 2;
    }
    return 0;
}
