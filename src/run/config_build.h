/*
 * Makes a configuration of what an INI file says: read whole, then checked whole.
 */
#ifndef WEIR_RUN_CONFIG_BUILD_H
#define WEIR_RUN_CONFIG_BUILD_H

#include <stdbool.h>

#include "limit/command.h"
#include "run/config.h"
#include "run/config_file.h"

/* What is built: everything, or no more than what can change while weir runs. */
enum config_part { CONFIG_WHOLE, CONFIG_LIVE };

/*
 * Build a configuration from what stands in `file`, which remains. All errors and warnings go to file->report, one line
 * each; the result is NULL when there was an error, now or in reading. With CONFIG_LIVE the settings that need a
 * restart, and those that name files, are not looked at, and remain zero.
 */
struct config *config_build(struct config_file *file, const struct command_table *table, enum config_part part);

/* Read file->path (NULL: the safe default) into `file`, then build the whole. */
struct config *config_read(struct config_file *file, const struct command_table *table);

/* Read `path`, build the whole, and forget the file. `report` gets lines like "file:line: [section] key: message". */
struct config *config_load(const char *path, const struct command_table *table,
                           void (*report)(void *arg, bool is_error, const char *line), void *arg);

#endif
