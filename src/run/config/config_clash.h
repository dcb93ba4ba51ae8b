/*
 * Addresses of one configuration that cannot go together: weir as its own upstream, two entrances at one place.
 */
#ifndef WEIR_RUN_CONFIG_CLASH_H
#define WEIR_RUN_CONFIG_CLASH_H

#include "run/config/config.h"
#include "run/config/config_file.h"

/*
 * Report each as an error in the line that names the address. After all keys have been set without an error. Only
 * `localhost` is looked up, other names are compared as they are written.
 */
void config_clash_check(const struct config *config, struct config_file *file);

#endif
