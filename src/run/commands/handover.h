/*
 * The admin commands in force as text, from one process to its successor (run/upgrade.h): a line
 * for each command that is in no file. Times are of the monotonic clock, which both processes
 * share.
 *
 * Main thread.
 */
#ifndef WEIR_RUN_HANDOVER_H
#define WEIR_RUN_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>

#include "front/commands/admin_command.h"
#include "limit/blocks.h"
#include "limit/figures/journal.h"
#include "quota/named.h"
#include "run/config/config_file.h"
#include "run/commands/set_lines.h"

/* The sources of admin commands. */
struct handover {
    const struct config_file *running, *loaded; /* lines in which the two differ have been SET */
    const struct set_lines *lines;
    const struct named *named;
    const struct shared_set *blocks;
};

/*
 * Returns the text, NUL-terminated; heap. The first line names the format. Without any command the
 * text has only this line. NULL: out of memory.
 */
char *handover_write(const struct handover *from);

/*
 * Carries out the commands of `text` by one call of carry_out, which sets their errors. Logs the
 * failed commands, and the number of the other commands. False: the text has another format.
 */
bool handover_read(const char *text, struct journal *journal,
                   void (*carry_out)(void *arg, struct admin_command *const *admin_commands,
                                     size_t n),
                   void *arg);

/*
 * Logs each command of `text` that is not in `other`. `what`: the fate of the command ("dropped").
 * `why`: the reason. `other` NULL: logs all commands.
 */
void handover_log(const char *text, const char *other, const char *what, const char *why,
                  struct journal *journal);

#endif
