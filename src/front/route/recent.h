/*
 * The commands that were looked up last, found by the eight bytes from their name on: a few instructions in place of a
 * hash. It says whether they travel as plainly as can be; one worker's, and emptied with the command table.
 */
#ifndef WEIR_FRONT_RECENT_H
#define WEIR_FRONT_RECENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/slice.h"
#include "limit/command/command.h"

#define RECENT_SLOTS 64
#define RECENT_NAME_ROOM ((ptrdiff_t)sizeof(uint64_t)) /* bytes that may be read from the beginning of a name */

struct recent {
    struct {
        uint64_t word;                 /* the name, zeros behind it; as it was written. 0: nothing is here */
        const struct command *command; /* NULL: it is not plain */
    } slots[RECENT_SLOTS];
};

static inline bool recent_is_plain(const struct command *command)
{
    return command->id != 0 && command->flow == FLOW_ONE && command->effect == EFFECT_NONE && command->is_shareable &&
           !command->blocks && !command->pins && !command->is_urgent && !command->has_subcommands &&
           !command->in_container;
}

/*
 * `name` lies in memory of which RECENT_NAME_ROOM bytes from its beginning may be read. NULL: it is not plain, or is
 * too long.
 */
static inline const struct command *recent_find(struct recent *recent, const struct command_table *table,
                                                struct slice name)
{
    uint64_t word;
    if (name.len == 0 || name.len > sizeof word || name.at[name.len - 1] == '\0')
        return NULL; /* "GET\0" must not be taken for "GET" */
    memcpy(&word, name.at, sizeof word);
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    if (name.len < sizeof word)
        word &= (UINT64_C(1) << (8 * name.len)) - 1;
    unsigned slot = (unsigned)((word * UINT64_C(0x9E3779B97F4A7C15)) >> 58);
    if (recent->slots[slot].word == word)
        return recent->slots[slot].command;
    const struct command *command = command_find(table, name, slice_of("", 0));
    recent->slots[slot].word = word;
    recent->slots[slot].command = recent_is_plain(command) ? command : NULL;
    return recent->slots[slot].command;
}

#endif
