/*
 * The TLS part of a configuration: parses its values, makes the TLS contexts.
 */
#ifndef WEIR_RUN_CONFIG_TLS_H
#define WEIR_RUN_CONFIG_TLS_H

#include "base/slice.h"
#include "run/config/config.h"
#include "run/config/config_file.h"

/* False: `why` says what is wrong. */
__attribute__((warn_unused_result)) bool tls_protocols_parse(struct slice value, struct tls_settings *settings,
                                                             char *why, size_t why_size);

/*
 * After all keys have been set: make the TLS contexts in config->rules that an address needs. Errors in files and
 * values are reported for the line they stand in.
 */
void config_tls_load(struct config *config, struct config_file *file);

#endif
