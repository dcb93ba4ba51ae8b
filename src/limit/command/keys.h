/*
 * Which arguments of a request are keys, as COMMAND GETKEYS of Redis reports them; and a filter of
 * the keys in flight.
 *
 * Any thread. Nothing is allocated; keys point into the request. Price: with a fixed layout keys
 * are counted from argc alone, and the first key lies behind a few headers. Movable keys cost a
 * walk over the arguments up to the number of keys or the last option. Sources: the key positions
 * of COMMAND, and keys.def for commands that need more.
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
    uint8_t arg; /* argument of the rule */
};

/*
 * The rule for the command or subcommand of this full name. command.c calls keys_how once for each
 * row.
 */
struct keys_how keys_how(struct slice name);

/*
 * Below, `request` is a multibulk request from its '*' on. A request too large for the buffer is
 * truncated: arguments beyond the end are inferred from argc, or unknown. argc is the announced
 * number of arguments, with the command's name.
 */

/* Number of keys. 0 also if unknown, or if Redis would refuse the given number of keys. */
uint32_t keys_count(const struct command *command, struct slice request, uint32_t argc);

/* Finds the first key in argument order. False: none, or not wholly in `request`. */
__attribute__((warn_unused_result)) bool keys_first(const struct command *command,
                                                    struct slice request, uint32_t argc,
                                                    struct slice *key);

#define KEYS_NO_SLOT (-1)     /* no keys or shard channels, or unknown */
#define KEYS_CROSSING (-2)    /* keys of different slots */
#define KEYS_HIDDEN_SLOT (-3) /* a key may be incomplete in `request` */

/*
 * The slot (limit/command/slot.h) of all keys, or of all channels of SPUBLISH, SSUBSCRIBE or
 * SUNSUBSCRIBE. Otherwise KEYS_NO_SLOT, KEYS_CROSSING or KEYS_HIDDEN_SLOT. Price: a walk over the
 * arguments up to the last key.
 */
int32_t keys_slot(const struct command *command, struct slice request, uint32_t argc);

/* Calls `take` for each key that is wholly in `request`. False: a key may be missing. */
bool keys_each(const struct command *command, struct slice request, uint32_t argc,
               void (*take)(void *arg, struct slice key), void *arg);

#define KEYS_COMPARED_MAX 65536 /* comparisons: about a millisecond (chosen) */

/*
 * True if both requests name one key. Also true if the check would cost more than KEYS_COMPARED_MAX
 * comparisons, or a key may be hidden.
 */
bool keys_overlap(const struct command *a, struct slice a_request, uint32_t a_argc,
                  const struct command *b, struct slice b_request, uint32_t b_argc);

/* keys_count; for a truncated request the largest possible number. */
uint32_t keys_most(const struct command *command, struct slice request, uint32_t argc);

/* True if the request may have a key while the first key is not wholly in `request`. */
bool keys_are_hidden(const struct command *command, struct slice request, uint32_t argc);

/* True for commands that block only with the option BLOCK: XREAD, XREADGROUP. */
static inline bool keys_may_block(const struct command *command)
{
    return command->blocks && command->keys == KEYS_STREAMS;
}

enum keys_sight { KEYS_ABSENT, KEYS_SEEN, KEYS_HIDDEN };

/*
 * For a command of keys_may_block: whether BLOCK is absent, seen, or possibly beyond the end of
 * `request`.
 */
enum keys_sight keys_block(const struct command *command, struct slice request, uint32_t argc);

/* True if the arguments in `request` show that the request may block in Redis. */
static inline bool keys_may_wait(const struct command *command, struct slice request, uint32_t argc)
{
    return command->blocks &&
           (!keys_may_block(command) || keys_block(command, request, argc) == KEYS_SEEN);
}

/* ---- a filter for keys of commands in flight ---- */

#define KEY_FILTER_WORDS 8 /* 64 bits each, two bits a key: with 32 keys one false positive in 70 */

/*
 * The keys of a client's multi-key commands in flight: a Bloom filter. Zeroed: empty.
 *
 * While a slot moves, Redis Cluster may refuse a multi-key command (TRYAGAIN) and run a later
 * command with one of its keys. A later command that may share a key therefore waits, if at least
 * one of the two commands writes. The filter is cleared when nothing is in flight. A false positive
 * costs one needless wait.
 */
struct key_filter {
    uint64_t all[KEY_FILTER_WORDS];
    uint64_t written[KEY_FILTER_WORDS]; /* keys of commands that write */
    bool is_used;
};

/* Adds one key of a multi-key command that is sent. */
void key_filter_add(struct key_filter *filter, struct slice key, bool is_read);

/* True if a command with this key must wait. */
bool key_filter_bars(const struct key_filter *filter, struct slice key, bool is_read);

static inline void key_filter_clear(struct key_filter *filter)
{
    if (filter->is_used)
        *filter = (struct key_filter){0};
}

#endif
