/*
 * Admin commands about overrides (quota/override.h): LIMIT SET and UNSET of rates for a single key.
 * Also carries overrides over when the configuration changes.
 *
 * Main thread.
 */
#ifndef WEIR_RUN_ADMIN_KEY_H
#define WEIR_RUN_ADMIN_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "front/commands/admin_command.h"
#include "limit/figures/journal.h"
#include "quota/named.h"
#include "run/config/config_edit.h"

/*
 * Carry out the command on a copy of `named`, *next, which the caller owns. Return NULL, or an
 * error ("ERR ...", heap) without *next.
 */
__attribute__((warn_unused_result)) char *admin_key_set(const struct admin_command *admin_command,
                                                        const struct named *named, uint64_t now_ns,
                                                        struct journal *journal, struct named **next);
__attribute__((warn_unused_result)) char *admin_key_unset(const struct admin_command *admin_command,
                                                          const struct named *named, uint64_t now_ns,
                                                          struct journal *journal, struct named **next);

/*
 * Copies overrides from `before` to `fresh`, which is not shared yet, for limits that still exist
 * with the same algorithm. After a reload only overrides with an end are kept. Dropped overrides
 * are logged.
 */
void admin_key_inherit(struct named *fresh, const struct named *before, bool is_reload, uint64_t now_ns,
                       struct journal *journal);

/* Adds all overrides to the differences: no override is in a file. */
void admin_key_differences(const struct named *named, uint64_t now_ns, struct differences *differences);

#endif
