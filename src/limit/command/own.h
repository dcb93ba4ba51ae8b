/* weir's own commands: LIMIT with its subcommands, and CL.THROTTLE. The rows of own.def. */
#ifndef WEIR_LIMIT_OWN_H
#define WEIR_LIMIT_OWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct own {
    const char *name; /* lower case; a subcommand is "limit|status" */
    const char *arguments;
    const char *summary;
    int16_t arity;
    int16_t first_key, last_key, key_step;
    bool is_control;
    bool writes;       /* may change state in weir or in Redis */
    bool is_operators; /* only for operators */
};

size_t own_count(void);
const struct own *own_row(size_t i);

/* Finds a row by full name; case does not matter. NULL: not a command of weir. */
const struct own *own_find(struct slice name);

/*
 * Number of units that the request asks for by COST or redis-cell's quantity, summed over its keys.
 * Returns 1 if the request names no number, or gives units back. `request` is as in keys.h. A
 * truncated request will be refused and is not run.
 */
uint64_t own_units(const struct own *own, struct slice request);

#endif
