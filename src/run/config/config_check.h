/*
 * Checks settings that exclude each other: weir as its own upstream, two listeners at one address,
 * a key without another key that it needs.
 */
#ifndef WEIR_RUN_CONFIG_CHECK_H
#define WEIR_RUN_CONFIG_CHECK_H

#include "run/config/config.h"
#include "run/config/config_file.h"

/*
 * Reports each conflict as an error of its line. To be called after all keys have been set without
 * an error. Of names only `localhost` is looked up; other names are compared as text.
 */
void config_check(const struct config *config, struct config_file *file);

#endif
