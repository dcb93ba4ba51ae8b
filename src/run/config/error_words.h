/*
 * Words in errors on which client libraries act (error_words.def): no refusal should have one.
 */
#ifndef WEIR_RUN_ERROR_WORDS_H
#define WEIR_RUN_ERROR_WORDS_H

#include "base/slice.h"

/* REFUSED and WARNED say what a configuration with that word as error-prefix is. */
enum error_word { ERROR_WORD_NONE, ERROR_WORD_WARNED, ERROR_WORD_REFUSED };

/* Of a whole word, in capitals. */
enum error_word error_word_find(struct slice word);

/* The first of these words that stands in a name between other characters than capitals; empty: none does. */
struct slice error_word_in(struct slice name);

#endif
