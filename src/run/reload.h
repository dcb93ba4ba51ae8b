/*
 * What of the old configuration a reload drops or keeps, said to the operator.
 */
#ifndef WEIR_RUN_RELOAD_H
#define WEIR_RUN_RELOAD_H

#include <stdbool.h>

#include "limit/journal.h"
#include "run/config_file.h"

/* Name the lines of `running` that were only SET (`loaded` has them otherwise) and do not stand in `file` either. */
void reload_name_dropped(struct journal *journal, const struct config_file *running, const struct config_file *loaded,
                         const struct config_file *file);

/* Name the settings that differ and need a restart, in one line, and let them stand in `file` as they run. */
void reload_keep_settings(struct journal *journal, const struct config_file *running, struct config_file *file);

#endif
