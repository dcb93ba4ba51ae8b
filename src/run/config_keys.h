/*
 * The keys of [weir] and [admin] and what their values mean: one table, from which come the defaults, the bounds, the
 * messages, what a reload can change, and the check that docs/configuration.md and conf/weir.conf name the same keys.
 */
#ifndef WEIR_RUN_CONFIG_KEYS_H
#define WEIR_RUN_CONFIG_KEYS_H

#include <stddef.h>

#include "base/slice.h"
#include "run/config.h"
#include "run/config_file.h"
#include "run/config_values.h"

size_t config_keys_count(void);
const struct config_key *config_key_at(size_t i);

/* The index of the key of that section, in any case of letters; config_keys_count() when there is none. */
size_t config_key_find(enum section_kind section, struct slice name);

enum section_kind config_key_section(const struct config_key *key);

/* Of older files: it is taken with a warning, and proposed to nobody. */
bool config_key_is_dead(const struct config_key *key);

const char *config_key_name(const struct config_key *key);
bool config_key_is_list(const struct config_key *key);        /* given twice, it adds up */
bool config_key_needs_restart(const struct config_key *key);  /* a reload does not change it */
bool config_key_is_live(const struct config_key *key);        /* and one line may be changed, without the file */
const char *config_key_default(const struct config_key *key); /* as in a file; NULL: none */

/* Set the member of `config` that is behind the key. Unless the result is KEY_SET, `why` says something about it. */
enum key_result config_key_set(const struct config_key *key, struct config *config, struct slice value, char *why,
                               size_t why_size);

/* The value of a key that the file does not give. */
void config_key_set_default(const struct config_key *key, struct config *config);

#endif
