/*
 * The keys of [weir] and [admin]: one table, the source of defaults, bounds and messages. The table
 * also tells which keys a reload can change. A check compares the table with docs/configuration.md
 * and conf/weir.conf.
 */
#ifndef WEIR_RUN_CONFIG_KEYS_H
#define WEIR_RUN_CONFIG_KEYS_H

#include <stddef.h>
#include <stdio.h>

#include "run/config/config_values.h"

size_t config_keys_count(void);
const struct config_key *config_key_at(size_t i);

/* Returns the key of that section; case does not matter. NULL: none. */
const struct config_key *config_key_find(enum section_kind section, struct slice name);

/*
 * Returns the new name of a key that older versions called `name` (config_build renames it); NULL:
 * `name` is no older name.
 */
const char *config_key_new_name(enum section_kind section, struct slice name);

/* Prints the table as `weir --keys` does: a configuration with each key commented out. */
void config_help_print(FILE *out);

#endif
