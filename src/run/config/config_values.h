/*
 * Parses the values of keys: a setter for each kind of value, for the rows of the table in
 * config_keys.c.
 */
#ifndef WEIR_RUN_CONFIG_VALUES_H
#define WEIR_RUN_CONFIG_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/why.h"
#include "run/config/config.h"
#include "run/config/config_file.h"

struct config_key;

/* A value to be set. */
struct setting {
    const struct config_key *key;
    struct config *config;
    struct slice value; /* not empty */
    struct why why;     /* "" before the call */
};

/*
 * Sets the key's member of the configuration. False: `why` is the error. True: `why` is a warning,
 * or still "".
 */
typedef bool config_setter(const struct setting *setting);

/* Parses a number as written in a file. False: `why` is the error. */
typedef bool config_number(struct slice text, uint64_t *number, char *why, size_t why_size);

/* A row of the table (config_keys.def). */
struct config_key {
    const char *name;
    const char *about;   /* the key's purpose; `so` marks a word of the file */
    const char *initial; /* the default, as in a file; NULL: none */
    config_setter *set;
    /* form of the values, in a few words; NULL: `words` lists all values */
    const char *form;
    config_number *parse;     /* of a number; else NULL */
    const char *least, *most; /* bounds of a number, as in a file */
    const char *const *words; /* words allowed instead of a number; last NULL; NULL: none */
    /* of the member of struct config; unused by setters that know their member */
    size_t offset, size;
    enum section_kind section; /* SECTION_WEIR or SECTION_ADMIN */
    bool is_list;              /* several lines add up */
    bool needs_restart;        /* a reload does not change the setting */
    /* the key names a file, or how a file is used: files are read only with CONFIG_WHOLE */
    bool names_file;
};

/* numbers; the word 0 is kept as 0 */
config_setter key_number, key_slow, key_workers;
/* one of the row's words, kept as the word's index */
config_setter key_word, key_when_down, key_dial_rate;
/* the text itself */
config_setter key_text;
/* sets no member: the files have been read where the lines name them (config_file.c) */
config_setter key_include;
/* addresses */
config_setter key_instance, key_listen, key_proxies, key_upstream_allow, key_upstream,
    key_upstream_map, key_cluster_announce, key_admin_listen, key_admin_socket, key_admin_host;
/* words with a setter of their own */
config_setter key_user, key_password_file, key_sentinel_password_file, key_limit_prefix,
    key_identity, key_prefix, key_log, key_tls_protocols;

#endif
