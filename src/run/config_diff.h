/*
 * What two configurations held in memory say differently, line by line, and what a reload makes of that.
 */
#ifndef WEIR_RUN_CONFIG_DIFF_H
#define WEIR_RUN_CONFIG_DIFF_H

#include <stdbool.h>
#include <stddef.h>

#include "front/order.h"
#include "limit/journal.h"
#include "run/config_edit.h"

struct differences {
    struct difference *at;
    size_t count;
};

/*
 * The lines, and keys with a default, whose values are not the same, in the order of `running`, then those only in
 * `file`. Several lines of one key count as one; a key that is not given has its default.
 */
struct differences config_diff(const struct config_file *running, const struct config_file *file);
void differences_fini(struct differences *differences);

/* The name that a difference was found by; it points into it. */
struct line_name difference_line(const struct difference *difference);

/* Is it one that only a restart changes? */
bool difference_needs_restart(const struct difference *difference);

/* Name the lines of `running` that were only SET (`loaded` has them otherwise) and do not stand in `file` either. */
void config_diff_name_dropped(struct journal *journal, const struct config_file *running,
                              const struct config_file *loaded, const struct config_file *file);

/* Name the settings that differ and need a restart, in one line, and let them stand in `file` as they run. */
void config_diff_keep_settings(struct journal *journal, const struct config_file *running, struct config_file *file);

#endif
