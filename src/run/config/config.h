/*
 * The configuration: built as a whole (run/config/config_build.h), then immutable.
 */
#ifndef WEIR_RUN_CONFIG_H
#define WEIR_RUN_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "front/rules.h"
#include "net/listen.h"
#include "net/tls_context.h"
#include "run/config/address.h"
#include "run/config/config_sources.h"
#include "run/config/dialling.h"
#include "upstream/upstream.h"

#define LISTENS_MAX 64

/* Where clients connect. */
struct listen {
    struct address address;
    bool has_proxy_header; /* connections begin with a PROXY protocol header */
    struct listen_rights rights;
};

struct config {
    /*
     * What can change while weir runs: the governor copies its rules from here. The policies are bound to the command
     * table that the configuration was built with. TLS contexts are NULL also with CONFIG_LIVE, which does not read
     * their files.
     */
    struct rules rules;

    /* ---- the rest needs a restart, but for the log's format and level ---- */
    char *name; /* what operators call this weir; NULL: nothing */
    struct listen *listens;
    size_t n_listens;
    struct sources sources;
    struct address_map upstream_map;
    struct reads_settings reads;
    enum cross_slot cross_slot;
    bool refuses_cluster_commands;   /* CLUSTER SLOTS and the like of clients */
    struct address cluster_announce; /* of a cluster, what clients are told; host NULL: where they connected */
    uint64_t redirect_timeout_ns;
    char *upstream_user;          /* NULL: none */
    char *sentinel_user;          /* NULL: none */
    char *sentinel_password_file; /* path of a file that had a password at the start; NULL: none */
    bool clients_as_upstream;     /* clients that do not log in use upstream_user's login */
    unsigned workers;
    bool lanes_private;
    size_t max_subjects;
    uint64_t connect_timeout_ns;
    uint64_t upstream_timeout_ns;     /* 0: none */
    struct rate dial_rate;            /* count 0: none */
    uint64_t upstream_check_ns;       /* 0: never */
    uint64_t upstream_resolve_ns;     /* 0: only when there is a reason to */
    struct networks upstream_allow;   /* that may be dialled; none: any */
    uint64_t drain_timeout_ns;        /* 0: clients are closed at once */
    bool is_shadow;                   /* mode = shadow: count what would be refused, refuse nothing */
    char *admin_socket;               /* path; NULL: none */
    struct address admin_listen;      /* for HTTP; host NULL: none */
    char *admin_hosts;                /* host names allowed in HTTP requests, separated by commas; NULL: none */
    struct tls_settings tls_settings; /* of listeners */
    struct tls_settings upstream_tls_settings;
    char *log_path; /* NULL: no file */
    bool log_to_stderr;
    enum log_format log_format;
    enum log_level log_level;
    bool is_default; /* there is no file */
};

#endif
