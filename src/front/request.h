/*
 * One request on its way through front/.
 */
#ifndef WEIR_FRONT_REQUEST_H
#define WEIR_FRONT_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/command.h"

struct request {
    const struct command *command;
    struct slice bytes; /* as multibulk; of a large request the beginning */
    struct slice name;
    struct slice args[2]; /* the two after the name, where they are at hand */
    uint32_t argc;
    bool is_large;
    bool is_refused; /* found on its way: nothing of it travels */
};

/*
 * What it will do to the connection; nothing, if Redis is going to refuse it for its number of arguments. But EXEC ends
 * its transaction in any case.
 */
static inline enum effect request_effect(const struct request *request)
{
    int arity = request->command->arity;
    bool fits = arity >= 0 ? request->argc == (uint32_t)arity : request->argc >= (uint32_t)-arity;
    fits |= request->command->effect == EFFECT_EXEC;
    return fits && !request->is_large ? (enum effect)request->command->effect : EFFECT_NONE;
}

#endif
