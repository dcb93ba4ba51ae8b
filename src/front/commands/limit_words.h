/*
 * The words of a LIMIT command as they came, for who answers it or makes an order of it.
 */
#ifndef WEIR_FRONT_LIMIT_WORDS_H
#define WEIR_FRONT_LIMIT_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "resp/argv.h"
#include "resp/build.h"

#define LIMIT_WORDS_MAX 64 /* of a command to be explained, and of an expression; what follows is not seen */

#define LIMIT_SET_SPAN 5 /* of LIMIT SET: behind at least one word of the line */

/* They lie in the request. */
struct limit_words {
    struct slice at[LIMIT_WORDS_MAX];
    size_t n;
};

static inline void limit_words_read(struct limit_words *words, struct slice request)
{
    struct argv_walk walk;
    argv_walk_init(&walk, request);
    words->n = 0;
    while (words->n < LIMIT_WORDS_MAX && argv_next(&walk, &words->at[words->n]))
        words->n++;
}

/* Is there an i-th, and is it that, in whatever case? */
static inline bool limit_word_is(const struct limit_words *words, size_t i, const char *text)
{
    return i < words->n && slice_eq_nocase(words->at[i], slice_str(text));
}

/* An error: the word that is wrong; behind the last one something is missing. */
void limit_words_error(const struct limit_words *words, size_t i, struct build *out);

/* The same of a word in front of which `token` is missing: "unexpected '10m' (write EX 10m)". */
void limit_words_token_missing(const struct limit_words *words, size_t i, const char *token, struct build *out);

/* The same of a word that is nearly `token`: "unexpected 'REFUSED' (did you mean REFUSING?)". */
void limit_words_token_meant(const struct limit_words *words, size_t i, const char *token, struct build *out);

/* The same of a word that should be one of n, or is unlike all of them. */
void limit_words_unknown(const struct limit_words *words, size_t i, const char *const *known, size_t n,
                         struct build *out);

/* A positive count in its place, or `otherwise`. False: it is none, and `out` an error. */
bool limit_words_count(const struct limit_words *words, size_t i, size_t otherwise, size_t *n, struct build *out);

/* [FOR subject] [EX time] at the end of a command, in either order: where the words behind FOR and EX are; 0: nowhere. */
struct limit_span {
    size_t end; /* where they begin */
    size_t subject, time;
};

/* Look for them from `first` on. Returns the word that is wrong, words->n where one is missing; 0: all is well. */
size_t limit_words_span(const struct limit_words *words, size_t first, struct limit_span *span);

/* An error about the word that is wrong. */
void limit_words_span_error(const struct limit_words *words, size_t fault, const struct limit_span *span,
                            struct build *out);

/* LIMIT SUGGEST [policy] [CLASS class] [PERCENTILE n] [EXCEPT subject ...]: where each is; 0: nowhere. */
struct limit_suggest {
    size_t policy, class, percentile;
    size_t except; /* the first of the subjects, which go on to the end */
};

/* `is_policy`: there is a policy that is called like the third word. The word that is wrong; 0: all is well. */
size_t limit_words_suggest(const struct limit_words *words, bool is_policy, struct limit_suggest *found);

/* Does the word begin as a time or a count does? */
static inline bool limit_word_is_number(const struct limit_words *words, size_t i)
{
    return i < words->n && words->at[i].len > 0 && words->at[i].at[0] >= '0' && words->at[i].at[0] <= '9';
}

#endif
