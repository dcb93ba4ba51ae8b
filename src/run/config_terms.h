/*
 * Terms of `match` that are good as they stand, and can hardly be meant so.
 */
#ifndef WEIR_RUN_CONFIG_TERMS_H
#define WEIR_RUN_CONFIG_TERMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

/*
 * True if the term looks like several, like a regular expression, or stands in quotes: `why` says what it matches, and
 * what to write. Terms of keys are never doubted: a key may be any text.
 */
bool config_term_is_doubtful(struct slice term, char *why, size_t why_size);

#endif
