/* The configuration: built as a whole (run/config/config_build.h), then immutable. */
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

/* An address where clients connect. */
struct listen {
    struct address address;
    bool has_proxy_header; /* connections begin with a PROXY protocol header */
    struct listen_rights rights;
};

struct config {
    /*
     * Settings that can change while weir runs: the config manager copies its rules from here. The
     * policies use the command table of the build. TLS contexts are NULL without TLS, and
     * with CONFIG_LIVE, which does not read files of TLS.
     */
    struct rules rules;

    /* ---- the rest needs a restart, except the log's format and level ---- */
    char *name; /* operators' name for this weir; NULL: none */
    struct listen *listens;
    size_t n_listens;
    struct sources sources;
    struct address_map upstream_map;
    struct reads_settings reads;
    enum cross_slot cross_slot;
    bool refuses_cluster_commands; /* CLUSTER SLOTS and similar commands of clients are refused */
    /* announced to clients of a cluster; host NULL: the address that the client connected to */
    struct address cluster_announce;
    uint64_t redirect_timeout_ns;
    char *upstream_user;          /* NULL: none */
    char *sentinel_user;          /* NULL: none */
    char *sentinel_password_file; /* path of a file that had a password at the start; NULL: none */
    bool clients_as_upstream;     /* clients that do not log in use upstream_user's login */
    unsigned workers;
    bool lanes_private;
    size_t max_subjects;
    uint64_t connect_timeout_ns;
    uint64_t upstream_timeout_ns;   /* 0: none */
    struct rate dial_rate;          /* count 0: no limit */
    uint64_t upstream_check_ns;     /* 0: never */
    uint64_t upstream_resolve_ns;   /* 0: only after a lost or refused connection */
    struct networks upstream_allow; /* networks that may be dialled; none: any */
    uint64_t drain_timeout_ns;      /* 0: clients are closed at once */
    bool is_shadow;                 /* mode = shadow: refusals are only counted */
    char *admin_socket;             /* path; NULL: none */
    struct address admin_listen;    /* for HTTP; host NULL: none */
    /* host names allowed in HTTP requests, separated by commas; NULL: none */
    char *admin_hosts;
    struct tls_settings tls_settings; /* TLS settings of listeners */
    struct tls_settings upstream_tls_settings;
    char *log_path; /* NULL: no file */
    bool log_to_stderr;
    enum log_format log_format;
    enum log_level log_level;
    bool is_default; /* there is no configuration file */
};

#endif
