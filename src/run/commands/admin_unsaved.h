/*
 * Admin commands with an effect that no file has: rates for a single key (LIMIT SET and UNSET), and
 * blocks of subjects (LIMIT BLOCK and UNBLOCK). The effect ends at a set time, by another command,
 * or with weir.
 *
 * Main thread.
 */
#ifndef WEIR_RUN_ADMIN_UNSAVED_H
#define WEIR_RUN_ADMIN_UNSAVED_H

#include <stdbool.h>
#include <stdint.h>

#include "front/commands/admin_command.h"
#include "limit/blocks.h"
#include "limit/figures/journal.h"
#include "limit/policy/identity.h"
#include "quota/named.h"
#include "run/commands/live_rules.h"
#include "run/config/config_edit.h"

/* ---- overrides: rates for a single key (quota/named.h) ---- */

/*
 * Sets an override in a copy of `named`, *next, which the caller owns. Returns NULL, or an error
 * ("ERR ...", heap) without *next.
 */
__attribute__((warn_unused_result)) char *admin_key_set(const struct admin_command *admin_command,
                                                        const struct named *named, uint64_t now_ns,
                                                        struct journal *journal,
                                                        struct named **next);

/* As admin_key_set, but removes an override. */
__attribute__((warn_unused_result)) char *admin_key_unset(const struct admin_command *admin_command,
                                                          const struct named *named,
                                                          uint64_t now_ns, struct journal *journal,
                                                          struct named **next);

/* Adds all overrides to the differences: no override is in a file. */
void admin_key_differences(const struct named *named, uint64_t now_ns,
                           struct differences *differences);

/* ---- blocks of subjects (limit/blocks.h) ---- */

/* Carries out the command, and logs it. Returns NULL, or an error ("ERR ...", heap). */
__attribute__((warn_unused_result)) char *admin_block(const struct admin_command *admin_command,
                                                      struct live_rules *live, uint64_t now_ns);

/*
 * Sets *next to the blocks after an ADMIN_BLOCK; the caller owns *next. Returns NULL, or an error
 * (heap) without *next.
 */
__attribute__((warn_unused_result)) char *admin_block_next(
    const struct admin_command *admin_command, const struct identity *identity,
    const struct shared_set *blocks, uint64_t now_ns, struct shared_set **next);

/* Removes the blocks that have ended, and logs them. */
void admin_blocks_end(struct live_rules *live, uint64_t now_ns);

/* Adds all blocks to the differences: no block is in a file. */
void admin_block_differences(const struct shared_set *blocks, uint64_t now_ns,
                             struct differences *differences);

#endif
