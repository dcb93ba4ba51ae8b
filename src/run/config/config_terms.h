/* Valid terms of `match`, and words of errors, that are hardly intended. */
#ifndef WEIR_RUN_CONFIG_TERMS_H
#define WEIR_RUN_CONFIG_TERMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "base/why.h"
#include "limit/policy/identity.h"
#include "run/config/config.h"

/*
 * True if the term looks like several terms, like a regular expression, is in quotes, or has
 * another common mistake. `why` names the texts that the term matches, and the term to write. Terms
 * of keys are never doubted: a key may be any text.
 */
bool config_term_is_doubtful(struct slice term, struct why why);

/*
 * True if no client of any address of `listen` can match the term. `why` then has the warning, with
 * advice.
 */
bool config_term_is_unbound(const struct config *config, const struct match *match,
                            struct slice term, struct why why);

/*
 * Words in errors that client libraries act on (error_words.def). No refusal should contain one of
 * these words. As error-prefix a word is an error (REFUSED) or causes a warning (WARNED).
 */
enum error_word { ERROR_WORD_NONE, ERROR_WORD_WARNED, ERROR_WORD_REFUSED };

/* Looks up a whole word, in capitals. */
enum error_word error_word_find(struct slice word);

/* Returns the first error word in a name that has no capital letter next to it; empty: none. */
struct slice error_word_in(struct slice name);

#endif
