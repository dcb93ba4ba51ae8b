/*
 * Which arguments of a request are keys, as Redis' COMMAND GETKEYS has it.
 *
 * Any thread; nothing is allocated, a key points into the request. Price: a fixed layout is counted from argc alone and
 * its first key found behind a few headers; movable keys cost a walk as far as the number or the last option. Sources:
 * COMMAND's key positions, and the rows of keys.def for what those cannot tell.
 */
#ifndef WEIR_LIMIT_KEYS_H
#define WEIR_LIMIT_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/command_row.h"

/* How the keys are found: see keys.def. */
enum keys_rule {
    KEYS_POSITION,
    KEYS_NONE,
    KEYS_COUNTED,
    KEYS_STORE,
    KEYS_STREAMS,
    KEYS_STORED,
    KEYS_MIGRATE,
    KEYS_PARTS,
    KEYS_NAMED
};

struct keys_how {
    enum keys_rule rule;
    uint8_t arg; /* the rule's argument */
};

/* For the command or subcommand of this full name; only command.c needs it, once for each row. */
struct keys_how keys_how(struct slice name);

/*
 * `request` is the request's bytes from its '*' on, as multibulk. They may end early, when the request is too large to
 * be held: what lies beyond is told from argc, or not at all. argc is the number of arguments announced, the command's
 * name included.
 */

/* How many keys; 0 also when that cannot be known. A number of keys that Redis would refuse counts as 0 keys. */
uint32_t keys_count(const struct command *command, struct slice request, uint32_t argc);

/* The key with the lowest position among the arguments. False: there is none, or it is not wholly in `request`. */
__attribute__((warn_unused_result)) bool keys_first(const struct command *command, struct slice request, uint32_t argc,
                                                    struct slice *key);

#define KEYS_NO_SLOT (-1)     /* it has no keys, or none that can be known */
#define KEYS_CROSSING (-2)    /* its keys are of different slots */
#define KEYS_HIDDEN_SLOT (-3) /* a key that it may have is not wholly in `request` */

/* The slot of all its keys (limit/slot.h), or one of these. Price: a walk over the arguments as far as the last key. */
int32_t keys_slot(const struct command *command, struct slice request, uint32_t argc);

/* As keys_count, and of a request that ends early the most there can be: what cannot be seen is not cheaper. */
uint32_t keys_most(const struct command *command, struct slice request, uint32_t argc);

/* May the request have a key, and its first one is not wholly in what is here? */
bool keys_are_hidden(const struct command *command, struct slice request, uint32_t argc);

/* XREAD and XREADGROUP wait in Redis only with an option, BLOCK. */
static inline bool keys_may_block(const struct command *command)
{
    return command->blocks && command->keys == KEYS_STREAMS;
}

enum keys_sight { KEYS_ABSENT, KEYS_SEEN, KEYS_HIDDEN };

/* Of such a command: is the option there, or may it be in what is not? */
enum keys_sight keys_block(const struct command *command, struct slice request, uint32_t argc);

#endif
