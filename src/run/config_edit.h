/*
 * Lines of a configuration that is held in memory: copied, asked for, replaced.
 */
#ifndef WEIR_RUN_CONFIG_EDIT_H
#define WEIR_RUN_CONFIG_EDIT_H

#include "base/slice.h"
#include "run/config_file.h"

/* What the lines of one key are found by; names and keys in any case of letters. */
struct line_name {
    enum section_kind kind;
    struct slice section; /* its name; "" for a section that takes none */
    struct slice key;
};

struct line_name line_name_of(const struct config_file *file, const struct entry *entry);

/* The first entry of that name after `previous`; NULL: there is none. */
const struct entry *config_file_next_line(const struct config_file *file, const struct line_name *name,
                                          const struct entry *previous);

/* A copy with sections and entries of its own, without path and report. */
void config_file_copy(struct config_file *copy, const struct config_file *file);

/* The lines of that name, each trimmed, joined by ", "; heap. NULL: there is none. */
char *config_file_value(const struct config_file *file, const struct line_name *name);

/*
 * One line in the place of all lines of that name, or at the end when there was none; with a value of NULL none. The
 * section is added if need be.
 */
void config_file_replace(struct config_file *file, const struct line_name *name, const char *value);

#endif
