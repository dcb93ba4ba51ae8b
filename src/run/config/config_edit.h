/*
 * Copying, finding and replacing lines of a configuration file in memory.
 */
#ifndef WEIR_RUN_CONFIG_EDIT_H
#define WEIR_RUN_CONFIG_EDIT_H

#include "base/slice.h"
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

#endif
