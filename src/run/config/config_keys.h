/*
 * The keys of [weir] and [admin]: one table, from which come their defaults, bounds and messages, what a reload can
 * change, and the check that docs/configuration.md and conf/weir.conf name the same keys.
 */
#ifndef WEIR_RUN_CONFIG_KEYS_H
#define WEIR_RUN_CONFIG_KEYS_H

#include <stddef.h>

#include "base/slice.h"
#include "run/config/config.h"
#include "run/config/config_file.h"
#include "run/config/config_values.h"

size_t config_keys_count(void);
const struct config_key *config_key_at(size_t i);

/* The index of the key of that section; case does not matter. config_keys_count(): none. */
size_t config_key_find(enum section_kind section, struct slice name);

enum section_kind config_key_section(const struct config_key *key);

/* The name of the key that older versions called `name` (config_build renames it); NULL: `name` is no older name. */
const char *config_key_new_name(enum section_kind section, struct slice name);

const char *config_key_name(const struct config_key *key);
bool config_key_is_list(const struct config_key *key);        /* several lines add up */
bool config_key_needs_restart(const struct config_key *key);  /* a reload does not change it */
bool config_key_is_live(const struct config_key *key);        /* LIMIT SET can change it, too */
const char *config_key_default(const struct config_key *key); /* as written in a file; NULL: none */

/* Set the key's member of `config`. Unless the result is KEY_SET, `why` is the warning or error. */
enum key_result config_key_set(const struct config_key *key, struct config *config, struct slice value, char *why,
                               size_t why_size);

/* Set the key's member of `config` to its default. */
void config_key_set_default(const struct config_key *key, struct config *config);

#endif
