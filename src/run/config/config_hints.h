/* Suggests what to write instead of an unknown name. Also recognises files that are no INI file. */
#ifndef WEIR_RUN_CONFIG_HINTS_H
#define WEIR_RUN_CONFIG_HINTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "base/why.h"

/* Where the unknown name is: a key of a section, or the first word of a heading. */
enum hint_location { HINT_IN_WEIR, HINT_IN_ADMIN, HINT_IN_POLICY, HINT_IN_SECTION };

/* Tells if a line by itself is accepted in a section. */
struct hint_check {
    bool (*is_accepted)(const void *arg, enum hint_location location, struct slice key,
                        struct slice value);
    const void *arg;
};

/*
 * Writes "unknown key: ..." or "unknown section: ..." with the line to write into `why`. `value` is
 * the value of the line as in the file. A message repeats the value only in a line that would be
 * accepted. False: there is no hint for the name at that location. For a section `check` is not
 * used.
 */
bool config_hint_name(enum hint_location location, const struct hint_check *check,
                      struct slice name, struct slice value, struct why why);

/*
 * True if a line of a policy is known, except for its punctuation: "cmd:get", "auth_failures".
 * `why` then names the line.
 */
bool config_hint_spelling(const struct hint_check *check, struct slice key, struct slice value,
                          struct why why);

/*
 * True if the value is valid up to a semicolon without a blank before it. `why` then names the line
 * to write.
 */
bool config_hint_comment(enum hint_location location, const struct hint_check *check,
                         struct slice key, struct slice value, struct why why);

/*
 * True if the value is in quotes. `why` then says how to write the value, or with is_taken, that
 * the quotes are part of the value.
 */
bool config_hint_quotes(struct slice key, struct slice value, bool is_taken, struct why why);

/*
 * Returns the format of a file that is no INI file: "YAML", "JSON" ..., judged by its first line
 * that is no comment. NULL: the file may be INI.
 */
const char *config_hint_format(const char *path, unsigned *line_number);

#endif
