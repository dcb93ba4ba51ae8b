/*
 * The TLS part of a configuration: its words, and the contexts that come of it.
 */
#ifndef WEIR_RUN_CONFIG_TLS_H
#define WEIR_RUN_CONFIG_TLS_H

#include "base/slice.h"
#include "run/config.h"
#include "run/config_file.h"

/* False: `why` says what is wrong. */
__attribute__((warn_unused_result)) bool tls_auth_parse(struct slice value, enum tls_auth *auth, char *why,
                                                        size_t why_size);
__attribute__((warn_unused_result)) bool tls_protocols_parse(struct slice value, struct tls_settings *settings,
                                                             char *why, size_t why_size);

/*
 * After all keys have been set: make config->tls and config->upstream_tls, if an address wants them. Whatever is wrong
 * with a file or a word is reported for the line it stands in.
 */
void config_tls_load(struct config *config, struct config_file *file);

#endif
