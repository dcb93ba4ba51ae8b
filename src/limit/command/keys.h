/*
 * Which arguments of a request are keys, as COMMAND GETKEYS of Redis says.
 *
 * Any thread; nothing is allocated, keys point into the request. Price: with a fixed layout keys are counted from argc
 * alone and the first one lies behind a few headers; movable keys cost a walk over the arguments as far as the number
 * of keys or the last option. Sources: COMMAND's key positions, and keys.def for what those cannot say.
 */
#ifndef WEIR_LIMIT_KEYS_H
#define WEIR_LIMIT_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/command/command_row.h"

/* How keys are found: see keys.def. */
enum keys_rule {
    KEYS_POSITION,
    KEYS_NONE,
    KEYS_CHANNELS,
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

/* For the command or subcommand of this full name; called by command.c, once for each row. */
struct keys_how keys_how(struct slice name);

/*
 * Below `request` is a multibulk request from its '*' on. It may be cut short, when it is too large to be buffered:
 * what lies beyond is concluded from argc, or unknown. argc is the number of arguments announced, the command's name
 * included.
 */

/* How many keys; 0 also when that is unknown, and when Redis would refuse the number of keys given. */
uint32_t keys_count(const struct command *command, struct slice request, uint32_t argc);

/* The first key among the arguments. False: there is none, or it is not wholly in `request`. */
__attribute__((warn_unused_result)) bool keys_first(const struct command *command, struct slice request, uint32_t argc,
                                                    struct slice *key);

#define KEYS_NO_SLOT (-1)     /* neither keys nor channels of shards, or unknown which */
#define KEYS_CROSSING (-2)    /* they are of different slots */
#define KEYS_HIDDEN_SLOT (-3) /* there may be one that is not wholly in `request` */

/*
 * The slot (limit/command/slot.h) of all its keys, or of all the channels that SPUBLISH, SSUBSCRIBE or SUNSUBSCRIBE
 * names; or one of these. Price: a walk over the arguments as far as the last of them.
 */
int32_t keys_slot(const struct command *command, struct slice request, uint32_t argc);

/* Each key in turn, as far as it is in `request`. False: there may be one that is not wholly in it. */
bool keys_each(const struct command *command, struct slice request, uint32_t argc,
               void (*take)(void *arg, struct slice key), void *arg);

#define KEYS_COMPARED_MAX 65536 /* comparisons: about a millisecond (chosen) */

/*
 * True if both requests name one key. Where that would cost more than KEYS_COMPARED_MAX comparisons,
 * or a key may be hidden, it is taken to be so.
 */
bool keys_overlap(const struct command *a, struct slice a_request, uint32_t a_argc, const struct command *b,
                  struct slice b_request, uint32_t b_argc);

/* As keys_count; of a request that is cut short the largest possible number. */
uint32_t keys_most(const struct command *command, struct slice request, uint32_t argc);

/* May the request have a key while the first one is not wholly in `request`? */
bool keys_are_hidden(const struct command *command, struct slice request, uint32_t argc);

/* Is it one that blocks only with the option BLOCK: XREAD, XREADGROUP? */
static inline bool keys_may_block(const struct command *command)
{
    return command->blocks && command->keys == KEYS_STREAMS;
}

enum keys_sight { KEYS_ABSENT, KEYS_SEEN, KEYS_HIDDEN };

/* Of such a command: is BLOCK absent, seen, or possibly in the part that is not in `request`? */
enum keys_sight keys_block(const struct command *command, struct slice request, uint32_t argc);

/* May the request wait in Redis, as far as its arguments are in `request`? */
static inline bool keys_may_wait(const struct command *command, struct slice request, uint32_t argc)
{
    return command->blocks && (!keys_may_block(command) || keys_block(command, request, argc) == KEYS_SEEN);
}

#endif
