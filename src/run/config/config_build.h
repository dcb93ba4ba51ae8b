/* Makes a configuration from an INI file: read as a whole, then checked as a whole. */
#ifndef WEIR_RUN_CONFIG_BUILD_H
#define WEIR_RUN_CONFIG_BUILD_H

#include <stdbool.h>

#include "limit/command/command.h"
#include "run/config/config.h"
#include "run/config/config_file.h"

/* The part to build: everything, or only the settings that can change while weir runs. */
enum config_part { CONFIG_WHOLE, CONFIG_LIVE };

/*
 * Builds a configuration from `file`, which stays the caller's. All errors and warnings go to
 * file->report, one line each. NULL: there was an error, here or when the file was read. With
 * CONFIG_LIVE, settings that need a restart and settings that name files are ignored and stay zero.
 */
struct config *config_build(struct config_file *file, const struct command_table *table,
                            enum config_part part);

void config_free(struct config *config); /* NULL is allowed */

/*
 * Reads file->path into `file`, then builds the whole. file->path NULL: reads nothing, and builds
 * the safe default configuration.
 */
struct config *config_read(struct config_file *file, const struct command_table *table);

/* True if a line of [policy NAME] with this key is a line of limits (not match, admin ...). */
bool config_is_limit_line(struct slice key);

#endif
