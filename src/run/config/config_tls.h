/* Makes the TLS contexts of a configuration. */
#ifndef WEIR_RUN_CONFIG_TLS_H
#define WEIR_RUN_CONFIG_TLS_H

#include "run/config/config.h"
#include "run/config/config_file.h"

/*
 * Makes the TLS contexts in config->rules that an address needs. To be called after all keys have
 * been set. Errors in files and values are reported for their line.
 */
void config_tls_load(struct config *config, struct config_file *file);

#endif
