/*
 * Common parts of admin commands: the line of the configuration, the time limit (EX), errors for
 * the client, and log lines.
 */
#ifndef WEIR_RUN_ADMIN_LINE_H
#define WEIR_RUN_ADMIN_LINE_H

#include <stdbool.h>
#include <stdint.h>

#include "front/commands/admin_command.h"
#include "limit/figures/journal.h"
#include "limit/policy/policy.h"
#include "quota/named.h"
#include "run/config/config_edit.h"

/* Returns an error for the client, heap; printf's format, without the leading "ERR". */
__attribute__((format(printf, 1, 2))) char *admin_error(const char *format, ...);

/*
 * Logs that the command was carried out, and the client that gave it; printf's format. `kind`: one
 * word, for the journal.
 */
__attribute__((format(printf, 4, 5))) void log_admin_command(
    struct journal *journal, const struct admin_command *admin_command, const char *kind,
    const char *format, ...);

/* Returns an error (heap) that no policy has this name, with the nearest name. */
char *admin_no_policy(const struct policies *policies, struct slice name);

/* True if the text may be part of a line of a file, and of a status reply. True also for NULL. */
bool admin_command_is_one_line(const char *text);

/*
 * Sets *name, valid as long as the command and `policies`. Returns NULL, or an error (heap): no
 * such policy, or a line that cannot be changed while weir runs.
 */
__attribute__((warn_unused_result)) char *admin_line(const struct admin_command *admin_command,
                                                     const struct policies *policies,
                                                     struct line_name *name);

/*
 * Sets *until_ns to the time at which the command's EX ends the setting. 0: no EX, so only an admin
 * command or a reload ends the setting. Returns NULL, or an error (heap).
 */
__attribute__((warn_unused_result)) char *admin_end(const struct admin_command *admin_command,
                                                    uint64_t now_ns, uint64_t *until_ns);

#define ADMIN_END_ROOM 96

/*
 * Prints `before` (", ends in ") and the time that remains; the command may have been handed over
 * by a predecessor. Returns "" if the command has no end.
 */
const char *admin_print_end(const struct admin_command *admin_command, const char *before,
                            char out[ADMIN_END_ROOM]);

/* Returns NULL if the named limit exists, or an error (heap). */
__attribute__((warn_unused_result)) char *admin_named(const struct admin_command *admin_command,
                                                      const struct named *named);

/* As admin_line, for a command about a named limit. *value: the right side of the line. */
__attribute__((warn_unused_result)) char *admin_named_line(
    const struct admin_command *admin_command, const struct named *named, struct line_name *name,
    struct slice *value);

#endif
