/*
 * Variables of the environment in values of a configuration: ${NAME}, ${NAME:-default}; $${ is a
 * literal ${.
 */
#ifndef WEIR_RUN_CONFIG_VARIABLE_H
#define WEIR_RUN_CONFIG_VARIABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "base/why.h"

#define CONFIG_EXPANDED_MAX (64 << 10) /* bytes of a value with its variables expanded */

/* True if the text contains ${ and has to be expanded. */
bool config_has_variable(struct slice text);

/*
 * Sets *out to the text with its variables expanded (heap). False: `why` has the error, without the
 * value of a variable.
 */
__attribute__((warn_unused_result)) bool config_expand(struct slice text, char **out,
                                                       struct why why);

/*
 * Writes a message about the expanded value of `text` into `out`, without the values of variables.
 * A quoted piece of the message becomes `text`. Four or more bytes of a variable's value become its
 * ${NAME}.
 */
void config_hide(struct slice text, const char *message, char *out, size_t size);

#endif
