/*
 * The words of a LIMIT command, in their order. weir answers the command or builds an admin command
 * from the words.
 */
#ifndef WEIR_FRONT_LIMIT_WORDS_H
#define WEIR_FRONT_LIMIT_WORDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "resp/argv.h"
#include "resp/build.h"

/* most words of a LIMIT command (chosen); limit_command_check refuses a longer command */
#define LIMIT_WORDS_MAX 64

#define LIMIT_SET_SPAN 5 /* index in LIMIT SET of the first word that may be FOR or EX */

/* The words point into the request. */
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

/* True if word i exists and equals `text`, ignoring case. */
static inline bool limit_word_is(const struct limit_words *words, size_t i, const char *text)
{
    return i < words->n && slice_eq_nocase(words->at[i], slice_str(text));
}

/* Appends a syntax error for word i. With i = words->n the error says that a word is missing. */
void limit_words_error(const struct limit_words *words, size_t i, struct build *out);

/*
 * Appends an error for a word with a missing `token` before it: "unexpected '10m' (write EX 10m)".
 */
void limit_words_token_missing(const struct limit_words *words, size_t i, const char *token,
                               struct build *out);

/*
 * Appends an error for a word that is spelt like `token`: "unexpected 'REFUSED' (did you mean
 * REFUSING?)".
 */
void limit_words_token_meant(const struct limit_words *words, size_t i, const char *token,
                             struct build *out);

/*
 * Appends an error for a word that is none of the n known words. The error suggests a known word of
 * similar spelling, if one exists.
 */
void limit_words_unknown(const struct limit_words *words, size_t i, const char *const *known,
                         size_t n, struct build *out);

/*
 * Reads word i as a positive count. If the word is missing, *n is `otherwise`. False if `out` holds
 * an error.
 */
bool limit_words_count(const struct limit_words *words, size_t i, size_t otherwise, size_t *n,
                       struct build *out);

/*
 * [FOR subject] [EX time] at the end of a command, in either order. `subject` and `time` are
 * indexes, 0 if absent.
 */
struct limit_span {
    size_t end; /* index of the first word of FOR or EX */
    size_t subject, time;
};

/*
 * Looks for FOR and EX from word `first` on. Returns the index of a wrong word, words->n if a word
 * is missing, 0 if there is no error.
 */
size_t limit_words_span(const struct limit_words *words, size_t first, struct limit_span *span);

/* Appends an error for the wrong word at index `fault`. */
void limit_words_span_error(const struct limit_words *words, size_t fault,
                            const struct limit_span *span, struct build *out);

/*
 * Indexes of the arguments of LIMIT SUGGEST [policy] [CLASS class] [PERCENTILE n] [EXCEPT subject
 * ...]; 0 if absent.
 */
struct limit_suggest {
    size_t policy, class, percentile;
    size_t except; /* the first subject; the subjects continue to the last word */
};

/*
 * Finds the arguments. `is_policy`: a policy has the name of the third word. Returns the index of a
 * wrong word, words->n if a word is missing, 0 if there is no error.
 */
size_t limit_words_suggest(const struct limit_words *words, bool is_policy,
                           struct limit_suggest *found);

/* True if word i begins with a digit, as a time or a count does. */
static inline bool limit_word_is_number(const struct limit_words *words, size_t i)
{
    return i < words->n && words->at[i].len > 0 && words->at[i].at[0] >= '0' &&
           words->at[i].at[0] <= '9';
}

#endif
