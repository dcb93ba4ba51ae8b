/*
 * weir's own commands: LIMIT with its subcommands, and CL.THROTTLE. The rows of own.def.
 */
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
    bool writes;       /* it may change something, in weir or in Redis */
    bool is_operators; /* only for operators */
};

size_t own_count(void);
const struct own *own_row(size_t i);

/* By full name; case does not matter. NULL: not one of weir's. */
const struct own *own_find(struct slice name);

/*
 * How many units the request asks for, by COST or redis-cell's quantity, of several keys all together; 1 where it does
 * not say, or gives units back. `request` as in keys.h; one that is cut short here will be refused, and is not run.
 */
uint64_t own_units(const struct own *own, struct slice request);

#endif
