/*
 * Settings that cannot go together: weir as its own upstream, two listeners at one place, a key
 * without another one that it needs.
 */
#ifndef WEIR_RUN_CONFIG_CHECK_H
#define WEIR_RUN_CONFIG_CHECK_H

#include "run/config/config.h"
#include "run/config/config_file.h"

/*
 * Report each as an error in its line. After all keys have been set without an error. Of names only `localhost` is
 * looked up, others are compared as they are written.
 */
void config_check(const struct config *config, struct config_file *file);

#endif
