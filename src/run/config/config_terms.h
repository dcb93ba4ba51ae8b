/*
 * Terms of `match` that are good as they stand, and can hardly be meant so.
 */
#ifndef WEIR_RUN_CONFIG_TERMS_H
#define WEIR_RUN_CONFIG_TERMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "limit/policy/identity.h"
#include "run/config/config.h"

/*
 * True if the term looks like several, like a regular expression, stands in quotes or has another usual slip: `why`
 * says what it matches, and what to write. Terms of keys are never doubted: a key may be any text.
 */
bool config_term_is_doubtful(struct slice term, char *why, size_t why_size);

/* True if no client of any address of `listen` can fit the term: `why` says so, and what to write. */
bool config_term_is_unbound(const struct config *config, const struct match *match, struct slice term, char *why,
                            size_t why_size);

#endif
