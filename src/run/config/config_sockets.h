/*
 * What stands in the way of the unix sockets that a configuration names, as far as the file system tells.
 */
#ifndef WEIR_RUN_CONFIG_SOCKETS_H
#define WEIR_RUN_CONFIG_SOCKETS_H

#include "run/config/config.h"
#include "run/config/config_file.h"

/* Report each as a warning in its line. `config` was built from `file`, whole and without an error. */
void config_lint_sockets(const struct config *config, struct config_file *file);

#endif
