/*
 * Words that weir does not know and that say what is meant: what to write instead. And files that are no INI file.
 */
#ifndef WEIR_RUN_CONFIG_HINTS_H
#define WEIR_RUN_CONFIG_HINTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

/* Where a name stands that weir does not know: a key of a section, or the first word of a heading. */
enum hint_place { HINT_IN_WEIR, HINT_IN_ADMIN, HINT_IN_POLICY, HINT_IN_SECTION };

/*
 * Write "unknown key: ..." or "unknown section: ..." with the line to write into `why`. `value` is that of the line, as it
 * stands in the file. False: nothing is known of such a name there.
 */
bool config_hint_name(enum hint_place place, struct slice name, struct slice value, char *why, size_t why_size);

/* True if the value stands in quotes. Then `why` says how to write it, or with is_taken, that the quotes count. */
bool config_hint_quotes(struct slice key, struct slice value, bool is_taken, char *why, size_t why_size);

/*
 * What the file is instead of an INI file: "YAML", "JSON" ..., as its first line that is no comment tells; NULL: it may be
 * one.
 */
const char *config_hint_format(const char *path, unsigned *line_number);

#endif
