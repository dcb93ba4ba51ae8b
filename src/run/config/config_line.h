/*
 * Tries one line of a configuration by itself.
 */
#ifndef WEIR_RUN_CONFIG_LINE_H
#define WEIR_RUN_CONFIG_LINE_H

#include <stdbool.h>

#include "base/slice.h"
#include "run/config/config_hints.h"

/* True if the line is accepted there, by itself. `table` is a struct command_table. The function of a struct hint_check. */
bool config_line_is_accepted(const void *table, enum hint_place place, struct slice key, struct slice value);

#endif
