/*
 * The commands that are weir's own: LIMIT and its subcommands. The rows of own.def.
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
    bool writes;       /* it may change something, here or in Redis */
    bool is_operators; /* not for everybody */
};

size_t own_count(void);
const struct own *own_row(size_t i);

/* By full name, in any case; NULL: it is none of weir's. */
const struct own *own_find(struct slice name);

/* May it ask about several keys, each behind a word of its own, and AND between them? */
bool own_has_parts(const struct own *own);

/* May there be the word CHECK and a name in front of its key, in the place of one word? */
bool own_may_name(const struct own *own);

/*
 * How many units the call says that it counts for, by COST or redis-cell's quantity, of several keys all together; 1
 * where it says nothing, or gives something back. `request` as keys.h has it; what is too large to be here whole is an error, and is not run.
 */
uint64_t own_units(const struct own *own, struct slice request);

#endif
