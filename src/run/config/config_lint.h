/*
 * Warnings about a valid configuration that is hardly intended: operators by mistake, policies and
 * limits without effect, unix sockets that weir cannot make, passwords for any address.
 */
#ifndef WEIR_RUN_CONFIG_LINT_H
#define WEIR_RUN_CONFIG_LINT_H

#include "run/config/config.h"
#include "run/config/config_file.h"

/*
 * Reports each doubtful setting as a warning of its line. `config` was built from `file`, whole and
 * without an error.
 */
void config_lint(const struct config *config, struct config_file *file);

#endif
