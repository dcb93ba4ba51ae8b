/*
 * Warnings about a valid configuration that is hardly intended: clients that are operators by
 * mistake, policies and limits without effect. Also unix sockets that weir cannot make, and
 * passwords that may go to any address.
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
