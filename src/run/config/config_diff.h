/*
 * The differences between two configuration files in memory, line by line, and what a reload does about them.
 */
#ifndef WEIR_RUN_CONFIG_DIFF_H
#define WEIR_RUN_CONFIG_DIFF_H

#include <stdbool.h>
#include <stddef.h>

#include "front/commands/order.h"
#include "limit/figures/journal.h"
#include "run/config/config_edit.h"

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

/* The name of the line; it points into `difference`. */
struct line_name difference_line(const struct difference *difference);

/* Does it take effect only by a restart? */
bool difference_needs_restart(const struct difference *difference);

/* Log the lines of `running` that LIMIT SET has changed (they differ from `loaded`) and that `file` does not have. */
void config_diff_name_dropped(struct journal *journal, const struct config_file *running,
                              const struct config_file *loaded, const struct config_file *file);

/*
 * Log, in one line, the settings that differ and need a restart, and put their running values into `file`. Returns
 * their names, heap; NULL: there are none.
 */
char *config_diff_keep_settings(struct journal *journal, const struct config_file *running, struct config_file *file);

#endif
