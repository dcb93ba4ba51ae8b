/*
 * The time-out that a command which waits in Redis names, and how much of it is left when the command is sent once
 * more: a cluster ends the wait of a blocked client with MOVED when the slot goes to another node.
 *
 * Pure.
 */
#ifndef WEIR_FRONT_BLOCK_TIME_H
#define WEIR_FRONT_BLOCK_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/slice.h"
#include "limit/command/command.h"

/*
 * A copy of the whole request, to the end of `out`, that waits `waited_ns` less, and 1 ms at least. A request that
 * waits for ever, or names no time that weir can read, is copied as it is. False: out of memory.
 */
__attribute__((warn_unused_result)) bool block_time_reduce(const struct command *command, struct slice request,
                                                           uint32_t argc, uint64_t waited_ns, struct bytes *out);

/* True if it waits for what comes to a stream from now on: XREAD with `$`. What comes while it is sent once more is missed. */
bool block_time_is_from_now(const struct command *command, struct slice request, uint32_t argc);

#endif
