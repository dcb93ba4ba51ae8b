/*
 * Keys that mean something only beside others: sentinels', replicas' and clusters', which need such an
 * upstream.
 */
#ifndef WEIR_RUN_CONFIG_NEEDS_H
#define WEIR_RUN_CONFIG_NEEDS_H

#include "run/config/config.h"
#include "run/config/config_file.h"

/* Report, by its line, each key that lacks another. */
void config_needs_check(const struct config *config, struct config_file *file);

/* Warn of an upstream that may send weir, and the passwords it logs in with, anywhere. */
void config_lint_sources(const struct config *config, struct config_file *file);

#endif
