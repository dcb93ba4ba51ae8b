/*
 * The configuration, built whole (run/config_build.h), then never changed.
 */
#ifndef WEIR_RUN_CONFIG_H
#define WEIR_RUN_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "front/rules.h"
#include "net/tls_context.h"
#include "run/address.h"

/* Where clients connect. */
struct listen {
    struct address address;
    bool has_proxy_header; /* they are behind a proxy, which says so first */
};

struct config {
    /*
     * What of it can change while weir runs: the model of the rules that the governor makes of it. Its policies are bound to
     * the table that it was built with; a context of TLS is NULL too where CONFIG_LIVE did not read its files.
     */
    struct rules rules;

    /* ---- the rest needs a restart, but for the log's format and level ---- */
    struct listen *listens;
    size_t n_listens;
    struct address upstream;
    char *upstream_user;      /* NULL: none */
    bool clients_as_upstream; /* who does not log in travels as upstream_user */
    unsigned workers;
    bool lanes_private;
    size_t max_subjects;
    uint64_t connect_timeout_ns;
    uint64_t upstream_timeout_ns;     /* 0: none */
    uint64_t drain_timeout_ns;        /* 0: clients are closed at once */
    bool is_shadow;                   /* count what would be refused, refuse nothing */
    char *admin_socket;               /* path; NULL: none */
    struct address admin_listen;      /* of HTTP; host NULL: none */
    char *admin_hosts;                /* by which names it may be asked for, separated by commas; NULL: none */
    struct tls_settings tls_settings; /* of listeners */
    struct tls_settings upstream_tls_settings;
    char *log_path; /* NULL: no file */
    bool log_to_stderr;
    enum log_format log_format;
    enum log_level log_level;
    bool is_default; /* no file was given */
};

void config_free(struct config *config); /* NULL: nothing */

#endif
