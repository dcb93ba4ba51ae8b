/*
 * LIMIT SUGGEST: lines for the file, from the peak rates of the subjects of each policy. Main
 * thread. Reads every subject twice, and keeps the lock of a shard of subjects for some 30 us at a
 * time.
 */
#ifndef WEIR_RUN_SUGGEST_H
#define WEIR_RUN_SUGGEST_H

#include <stdint.h>

#include "front/front.h"
#include "front/commands/admin_command.h"
#include "limit/policy/policy.h"

/* Sets the result of an ADMIN_SUGGEST. */
void suggest_carry_out(struct admin_command *admin_command, const struct policies *policies,
                       const struct front_settings *settings, uint64_t now_ns);

#endif
