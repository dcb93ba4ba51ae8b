/*
 * The steps after all keys have been set: conflicts of settings are reported, and TLS contexts are
 * made. A conflict is weir as its own upstream, two listeners at one address, or a key without
 * another key that it needs.
 */
#ifndef WEIR_RUN_CONFIG_CHECK_H
#define WEIR_RUN_CONFIG_CHECK_H

#include "run/config/config.h"
#include "run/config/config_file.h"

/*
 * Reports each conflict as an error of its line. To be called after all keys have been set without
 * an error. Of names only `localhost` is looked up; other names are compared as text.
 */
void config_check(const struct config *config, struct config_file *file);

/* ---- TLS contexts ---- */

/*
 * Makes the TLS contexts in config->rules that an address needs. To be called after all keys have
 * been set. Errors in files and values are reported for their line.
 */
void config_tls_load(struct config *config, struct config_file *file);

#endif
