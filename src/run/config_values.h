/*
 * Parses the values of keys: a setter for each kind of value, for the rows of the table in config_keys.c.
 */
#ifndef WEIR_RUN_CONFIG_VALUES_H
#define WEIR_RUN_CONFIG_VALUES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"
#include "run/config.h"

enum key_result { KEY_SET, KEY_SET_WITH_WARNING, KEY_BAD };

struct config_key;

/*
 * Set a member of `config` to a value that is not empty. Unless the result is KEY_SET, `why` is the warning or error.
 */
typedef enum key_result config_setter(const struct config_key *key, struct config *config, struct slice value,
                                      char *why, size_t why_size);

/* A row of the table. */
struct config_key {
    const char *name;
    const char *initial;      /* the default, as in a file; NULL: none */
    config_setter *set;       /* NULL: a key of older versions, without effect */
    size_t offset;            /* of the member of struct config, for numbers */
    const char *least, *most; /* bounds, as in a file */
    bool is_list;
    bool is_admin;      /* in [admin] */
    bool needs_restart; /* a reload does not change it */
    bool names_file;    /* names a file, or how one is used: files are read only with CONFIG_WHOLE */
};

/* numbers, bytes, times */
config_setter key_count, key_subjects, key_bytes, key_time, key_timeout, key_slow, key_bytes_or_none, key_workers;
/* addresses */
config_setter key_listen, key_proxies, key_upstream, key_admin_listen, key_admin_socket, key_admin_host;
/* words */
config_setter key_user, key_password_file, key_clients_as, key_lanes, key_mode, key_limit_prefix, key_when_down,
    key_cell, key_identity, key_prefix;
/* the log */
config_setter key_log, key_log_format, key_log_level;
/* TLS */
config_setter key_text, key_tls_auth, key_tls_protocols, key_tls_verify;

#endif
