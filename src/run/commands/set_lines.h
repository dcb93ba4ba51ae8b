/*
 * Lines of policies that an operator has set for one subject (LIMIT SET ... FOR), or for a time
 * (EX), and the admin commands for them. The lines take precedence over the configuration in
 * memory, also after that configuration changes. Main thread.
 */
#ifndef WEIR_RUN_SET_LINES_H
#define WEIR_RUN_SET_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/commands/admin_command.h"
#include "limit/figures/journal.h"
#include "limit/policy/identity.h"
#include "limit/policy/variant.h"
#include "run/config/config_edit.h"

#define SET_LINES_MAX 1000

struct set_line {
    char *policy; /* as in the file */
    char *what;
    char *expression;
    char *subject;     /* NULL: for all subjects of the policy */
    uint64_t until_ns; /* monotonic; 0: until an admin command or a reload removes the line */
};

struct set_lines {
    struct set_line *at;
    size_t n;
};

struct set_lines set_lines_copy(const struct set_lines *lines);
void set_lines_fini(struct set_lines *lines);

/*
 * Returns the line; NULL: there is none. Case matters only in the subject's name. `subject` NULL:
 * for all subjects.
 */
const struct set_line *set_lines_find(const struct set_lines *lines, struct slice policy,
                                      struct slice what, const char *subject);

/* Adds a copy of the line. A known line with the same policy, name and subject is replaced. */
void set_lines_put(struct set_lines *lines, const struct set_line *line);

/* Removes the line. False: no such line. */
bool set_lines_drop(struct set_lines *lines, struct slice policy, struct slice what,
                    const char *subject);

/* Removes and logs the lines that have ended. */
void set_lines_end(struct set_lines *lines, uint64_t now_ns, struct journal *journal);

/* Removes and logs the lines without an end. To be called before a reload. */
void set_lines_keep_timed(struct set_lines *lines, struct journal *journal);

/* Returns when the next line ends; 0: no line ends. */
uint64_t set_lines_next_end(const struct set_lines *lines);

/*
 * Applies the lines to the policies, which are not shared yet, and lines for single subjects to
 * *variants. With a journal, lines that do not fit are removed and logged. Without a journal,
 * returns the error of the first line that does not fit (heap). Returns NULL if all lines left fit.
 */
char *set_lines_apply(struct set_lines *lines, struct policies *policies,
                      const struct command_table *table, struct journal *journal,
                      struct variants *variants);

/* Adds all lines to the differences from the file. */
void set_lines_differences(const struct set_lines *lines, const struct config_file *file,
                           uint64_t now_ns, struct differences *differences);

/* True if the admin command is about a line for one subject or for a time. */
bool admin_command_is_special(const struct admin_command *admin_command);

/*
 * Carries out the LIMIT SET on `lines`. `name`: from admin_line. Returns NULL, or an error
 * ("ERR ...", heap); then nothing has changed.
 */
__attribute__((warn_unused_result)) char *admin_lines_set(const struct admin_command *admin_command,
                                                          const struct line_name *name,
                                                          const struct identity *identity,
                                                          struct set_lines *lines, uint64_t now_ns);

/* As admin_lines_set, for LIMIT UNSET. */
__attribute__((warn_unused_result)) char *admin_lines_unset(
    const struct admin_command *admin_command, const struct line_name *name,
    struct set_lines *lines);

/*
 * Returns the line for the log, heap. `before`: the previous value. `now`: the value for all
 * subjects of the policy. NULL: no value.
 */
char *admin_lines_told(const struct admin_command *admin_command, const struct line_name *name,
                       const char *before, const char *now);

#endif
