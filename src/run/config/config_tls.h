/*
 * Makes the TLS contexts of a configuration.
 */
#ifndef WEIR_RUN_CONFIG_TLS_H
#define WEIR_RUN_CONFIG_TLS_H

#include "run/config/config.h"
#include "run/config/config_file.h"

/*
 * After all keys have been set: make the TLS contexts in config->rules that an address needs. Errors in files and
 * values are reported for the line they stand in.
 */
void config_tls_load(struct config *config, struct config_file *file);

#endif
