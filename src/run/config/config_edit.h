/*
 * Lines of a configuration file in memory: finds, replaces and compares them.
 */
#ifndef WEIR_RUN_CONFIG_EDIT_H
#define WEIR_RUN_CONFIG_EDIT_H

#include "front/commands/order.h"
#include "limit/figures/journal.h"
#include "run/config/config_file.h"

/* Identifies the lines of one key of one section; case does not matter. */
struct line_name {
    enum section_kind kind;
    struct slice section; /* its name; "" for a section that takes none */
    struct slice key;
};

struct line_name line_name_of(const struct config_file *file, const struct entry *entry);

/* The first entry of that name after `previous` (NULL: from the beginning); NULL: none. */
const struct entry *config_file_next_line(const struct config_file *file, const struct line_name *name,
                                          const struct entry *previous);

/* A copy with sections, entries and sources of its own, without path and report. */
void config_file_copy(struct config_file *copy, const struct config_file *file);

/* The values of the lines of that name, each trimmed, joined by ", "; heap. NULL: there is no such line. */
char *config_file_value(const struct config_file *file, const struct line_name *name);

/*
 * Replace all lines of that name by one with this value, at the end when there was none; with NULL remove them. The
 * section is added if need be.
 */
void config_file_replace(struct config_file *file, const struct line_name *name, const char *value);

struct differences {
    struct difference *at;
    size_t count;
};

/*
 * The lines whose values differ, in the order of `running`, then those only in `file`. Several lines of one key count
 * as one; a key that is not given counts with its default. To be freed with differences_fini.
 */
struct differences config_diff(const struct config_file *running, const struct config_file *file);
void differences_fini(struct differences *differences);

/* Add one; its texts, heap, are taken over. */
void differences_add(struct differences *differences, struct difference one);

/* The name of the line; it points into `difference`. */
struct line_name difference_line(const struct difference *difference);

/* Log the lines of `running` that LIMIT SET has changed (they differ from `loaded`) and that `file` does not have. */
void config_diff_name_dropped(struct journal *journal, const struct config_file *running,
                              const struct config_file *loaded, const struct config_file *file);

/*
 * Log, in one line, the settings that differ and need a restart, and put their running values into `file`. Returns
 * their names, heap; NULL: there are none.
 */
char *config_diff_keep_settings(struct journal *journal, const struct config_file *running, struct config_file *file);

#endif
