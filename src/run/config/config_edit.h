/* Lines of a configuration file in memory: finds, replaces and compares them. */
#ifndef WEIR_RUN_CONFIG_EDIT_H
#define WEIR_RUN_CONFIG_EDIT_H

#include "front/commands/admin_command.h"
#include "limit/figures/journal.h"
#include "run/config/config_file.h"

/* Identifies the lines of one key of one section; case does not matter. */
struct line_name {
    enum section_kind kind;
    struct slice section; /* the section's name; "" for a section that takes no name */
    struct slice key;
};

struct line_name line_name_of(const struct config_file *file, const struct entry *entry);

/* Returns the first entry of that name after `previous` (NULL: from the beginning); NULL: none. */
const struct entry *config_file_next_line(const struct config_file *file,
                                          const struct line_name *name,
                                          const struct entry *previous);

/* Makes a copy with sections, entries and sources of its own, without path and report. */
void config_file_copy(struct config_file *copy, const struct config_file *file);

/*
 * Returns the values of the lines of that name, each trimmed, joined by ", "; heap. NULL: no such
 * line.
 */
char *config_file_value(const struct config_file *file, const struct line_name *name);

/*
 * Replaces all lines of that name by one line with this value, which comes last if no line had that
 * name. `value` NULL removes the lines. Adds the section if needed.
 */
void config_file_replace(struct config_file *file, const struct line_name *name, const char *value);

struct differences {
    struct difference *at;
    size_t count;
};

/*
 * Returns the lines with different values, in the order of `running`, then the lines that are only
 * in `file`. Several lines of one key are one line. A key that is not given has its default. The
 * caller frees with differences_fini.
 */
struct differences config_diff(const struct config_file *running, const struct config_file *file);
void differences_fini(struct differences *differences);

/* Adds a difference; takes over its texts (heap). */
void differences_add(struct differences *differences, struct difference one);

/* Returns the name of the line, which points into `difference`. */
struct line_name difference_line(const struct difference *difference);

/*
 * Logs the lines that LIMIT SET has changed (`running` and `loaded` differ) and that `file` does
 * not have.
 */
void config_diff_name_dropped(struct journal *journal, const struct config_file *running,
                              const struct config_file *loaded, const struct config_file *file);

/*
 * Puts the running values of settings that need a restart into `file`, and logs their names in one
 * line. Returns the names, heap; NULL: no such setting differs.
 */
char *config_diff_keep_settings(struct journal *journal, const struct config_file *running,
                                struct config_file *file);

#endif
