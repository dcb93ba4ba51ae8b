/*
 * Variables of the environment in values of a configuration: ${NAME}, ${NAME:-default}; $${ stands for ${ itself.
 */
#ifndef WEIR_RUN_CONFIG_VARIABLE_H
#define WEIR_RUN_CONFIG_VARIABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "base/why.h"

#define CONFIG_EXPANDED_MAX (64 << 10) /* bytes of a value with what its variables hold */

/* Does the text have ${ in it, so that it has to be expanded? */
bool config_has_variable(struct slice text);

/* *out is the text with what its variables hold (heap). False: `why` says what is wrong; no variable's value is in it. */
__attribute__((warn_unused_result)) bool config_expand(struct slice text, char **out, struct why why);

/*
 * Write a message about the expanded value of `text` into `out`, without what the variables hold: a piece in quotation
 * marks becomes `text`, and four bytes or more of a variable's value its ${NAME}.
 */
void config_hide(struct slice text, const char *message, char *out, size_t size);

#endif
