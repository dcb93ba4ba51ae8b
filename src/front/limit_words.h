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

/* A positive count in its place, or `otherwise`. False: it is none. */
bool limit_words_count(const struct limit_words *words, size_t i, size_t otherwise, size_t *n);

#endif
