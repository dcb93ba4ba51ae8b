/*
 * Words that weir does not know and that say what is meant: what to write instead. And files that are no INI file.
 */
#ifndef WEIR_RUN_CONFIG_HINTS_H
#define WEIR_RUN_CONFIG_HINTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "base/why.h"

/* Where a name stands that weir does not know: a key of a section, or the first word of a heading. */
enum hint_place { HINT_IN_WEIR, HINT_IN_ADMIN, HINT_IN_POLICY, HINT_IN_SECTION };

/* Says whether a line is accepted there, by itself. */
struct hint_check {
    bool (*is_accepted)(const void *arg, enum hint_place place, struct slice key, struct slice value);
    const void *arg;
};

/*
 * Write "unknown key: ..." or "unknown section: ..." with the line to write into `why`. `value` is that of the line, as
 * it stands in the file; a message repeats it only in a line that is accepted. False: nothing is known of such a name
 * there. A section needs no check.
 */
bool config_hint_name(enum hint_place place, const struct hint_check *check, struct slice name, struct slice value,
                      struct why why);

/* True if the line of a policy is a known one but for its signs: "cmd:get", "auth_failures". Then `why` names the line. */
bool config_hint_spelling(const struct hint_check *check, struct slice key, struct slice value, struct why why);

/* True if the value is good up to a semicolon without a blank before it. Then `why` names the line to write. */
bool config_hint_comment(enum hint_place place, const struct hint_check *check, struct slice key, struct slice value,
                         struct why why);

/* True if the value stands in quotes. Then `why` says how to write it, or with is_taken, that the quotes count. */
bool config_hint_quotes(struct slice key, struct slice value, bool is_taken, struct why why);

/*
 * What the file is instead of an INI file: "YAML", "JSON" ..., as its first line that is no comment tells; NULL: it
 * may be one.
 */
const char *config_hint_format(const char *path, unsigned *line_number);

#endif
