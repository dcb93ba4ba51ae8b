/*
 * Terms of `match` and words of errors that are good as they stand, and can hardly be meant so.
 */
#ifndef WEIR_RUN_CONFIG_TERMS_H
#define WEIR_RUN_CONFIG_TERMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "base/why.h"
#include "limit/policy/identity.h"
#include "run/config/config.h"

/*
 * True if the term looks like several, like a regular expression, stands in quotes or has another usual slip: `why`
 * says what it matches, and what to write. Terms of keys are never doubted: a key may be any text.
 */
bool config_term_is_doubtful(struct slice term, struct why why);

/* True if no client of any address of `listen` can fit the term: `why` says so, and what to write. */
bool config_term_is_unbound(const struct config *config, const struct match *match, struct slice term, struct why why);

/*
 * Words in errors on which client libraries act (error_words.def): no refusal should have one. REFUSED and WARNED say
 * what a configuration with that word as error-prefix is.
 */
enum error_word { ERROR_WORD_NONE, ERROR_WORD_WARNED, ERROR_WORD_REFUSED };

/* Of a whole word, in capitals. */
enum error_word error_word_find(struct slice word);

/* The first of these words that stands in a name between other characters than capitals; empty: none does. */
struct slice error_word_in(struct slice name);

#endif
