/*
 * Adds weir's own commands to Redis' replies to COMMAND, and to COMMAND INFO, DOCS, LIST and COUNT.
 *
 * Redis' entries for its own commands stay unchanged, byte for byte. Replies of unexpected form (an
 * error ...) and replies to other subcommands are left unchanged. Any thread.
 */
#ifndef WEIR_QUOTA_COMMAND_MERGE_H
#define WEIR_QUOTA_COMMAND_MERGE_H

#include <stdbool.h>

#include "base/slice.h"
#include "limit/command/own.h"
#include "resp/build.h"

#define COMMAND_MERGE_MAX                                                                          \
    8388608 /* bytes of a reply, before and after; chosen: 40 times COMMAND DOCS */

/*
 * `request` is a whole multibulk request for COMMAND, and `reply` the whole frame that answers it.
 * `out` is empty, with is_resp3 set. has_cell: CL.THROTTLE is one of weir's commands. True: answer
 * with `out`. False: answer with `reply`, and ignore `out`.
 */
__attribute__((warn_unused_result)) bool command_merge(struct slice request, struct slice reply,
                                                       bool has_cell, struct build *out);

/* Writes the reply without Redis: the reply of a server that has weir's own commands alone. */
void command_merge_alone(struct slice request, bool has_cell, struct build *out);

/* ---- entries for weir's own commands, in the form of Redis' replies, made from own.def ---- */

/* True if the command is no subcommand. */
bool docs_is_top(const struct own *own);

/* Writes the command's entry in COMMAND and COMMAND INFO. */
void docs_info(struct build *build, const struct own *own);

/* Writes the command's entry in COMMAND DOCS: the name, then a map. */
void docs_entry(struct build *build, const struct own *own);

/* Writes the command's entry in COMMAND LIST: the name. */
void docs_name(struct build *build, const struct own *own);

#endif
