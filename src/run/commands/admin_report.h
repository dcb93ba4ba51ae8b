/*
 * Reports for operators: LIMIT LIST, TOP, BLOCKS, SUGGEST, UPSTREAM and DIFF, and INFO. The main
 * thread makes the whole reply, which a worker only sends.
 */
#ifndef WEIR_RUN_ADMIN_REPORT_H
#define WEIR_RUN_ADMIN_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "front/commands/admin_command.h"
#include "run/stats_collector.h"

/* True if admin_report makes the reply: all reports but LIMIT DIFF. */
bool admin_command_is_report(const struct admin_command *admin_command);

/* Makes the reply of an admin command for which admin_command_is_report returns true. */
void admin_report(struct admin_command *admin_command, const struct stats_collector *collector,
                  uint64_t now_ns);

/* LIMIT DIFF: makes the reply from admin_command->differences. */
void admin_report_differences(struct admin_command *admin_command);

#endif
