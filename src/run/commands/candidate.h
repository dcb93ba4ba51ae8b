/*
 * A candidate config: a copy of the running configuration. Admin commands change the copy before
 * weir runs it. The copy has the file in memory, and the lines that an operator has set for one
 * subject or for a time (set_lines.h).
 *
 * An admin command that fails changes nothing in the candidate. Main thread.
 */
#ifndef WEIR_RUN_CANDIDATE_H
#define WEIR_RUN_CANDIDATE_H

#include <stdbool.h>

#include "front/commands/admin_command.h"
#include "run/config/config_file.h"
#include "run/commands/live_rules.h"
#include "run/commands/set_lines.h"

struct candidate {
    struct config_file file;
    struct set_lines lines;
};

/* Returns a copy of the running configuration. */
struct candidate candidate_new(const struct config_file *running, const struct set_lines *lines);
void candidate_fini(struct candidate *candidate);

/* True if the admin command changes a candidate config. */
bool candidate_is_for(const struct admin_command *admin_command);

/*
 * Carries out an admin command for which candidate_is_for returns true. Returns NULL and sets *told
 * to the line for the log once the candidate runs (heap); or returns an error ("ERR ...", heap).
 * Errors in the new line itself show only when the candidate is built.
 */
__attribute__((warn_unused_result)) char *candidate_change(
    struct candidate *candidate, const struct admin_command *admin_command,
    const struct live_rules *live, char **told);

#endif
