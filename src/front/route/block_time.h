/*
 * The time-out of a command that waits in Redis, and the time left when the command is sent again.
 * A cluster ends the wait of a blocked client with MOVED when the slot goes to another node.
 *
 * Pure functions.
 */
#ifndef WEIR_FRONT_BLOCK_TIME_H
#define WEIR_FRONT_BLOCK_TIME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/slice.h"
#include "limit/command/command.h"

/*
 * Appends a copy of the whole request to `out`, with a time-out shorter by `waited_ns`, but of at
 * least 1 ms. A request without an end, or with a time that weir cannot read, is copied unchanged.
 * False: out of memory.
 */
__attribute__((warn_unused_result)) bool block_time_reduce(const struct command *command, struct slice request,
                                                           uint32_t argc, uint64_t waited_ns, struct bytes *out);

/*
 * True if the request waits for entries added to a stream from now on: XREAD with `$`. Entries
 * added while the request is sent again are missed.
 */
bool block_time_is_from_now(const struct command *command, struct slice request, uint32_t argc);

#endif
