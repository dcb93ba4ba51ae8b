/*
 * The configuration, built whole (run/config_build.h), then never changed.
 */
#ifndef WEIR_RUN_CONFIG_H
#define WEIR_RUN_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "limit/identity.h"
#include "limit/policy.h"
#include "net/tls_context.h"
#include "quota/named.h"
#include "quota/prefix.h"
#include "quota/quota.h"
#include "run/address.h"

/* Where clients connect. */
struct listen {
    struct address address;
    bool has_proxy_header; /* they are behind a proxy, which says so first */
};

struct config {
    struct listen *listens;
    size_t n_listens;
    struct networks proxies; /* whom such headers are believed */
    struct address upstream;
    char *upstream_user;      /* NULL: none */
    char *upstream_password;  /* NULL: none; without the trailing line end of the file it came from */
    bool clients_as_upstream; /* who does not log in travels as upstream_user */
    unsigned workers;
    bool lanes_private;
    unsigned max_clients;
    unsigned max_lanes; /* 0: by descriptors and Redis' maxclients */
    size_t max_subjects;
    size_t output_limit_bytes;
    size_t memory_limit_bytes; /* 0: none */
    uint64_t connect_timeout_ns;
    uint64_t upstream_timeout_ns; /* 0: none */
    uint64_t idle_timeout_ns;     /* so of these */
    uint64_t handshake_timeout_ns;
    uint64_t request_timeout_ns;
    uint64_t drain_timeout_ns; /* 0: clients are closed at once */
    struct identity identity;
    char error_prefix[33];
    char limit_prefix[PREFIX_MAX + 1];
    enum quota_when_down when_down;
    enum quota_cell cell;
    uint64_t slow_ns; /* SLOWLOG_OFF: nothing is */
    unsigned slow_entries;
    struct named *named;              /* [limit NAME] */
    bool is_shadow;                   /* count what would be refused, refuse nothing */
    char *admin_socket;               /* path; NULL: none */
    struct address admin_listen;      /* of HTTP; host NULL: none */
    char *admin_hosts;                /* by which names it may be asked for, separated by commas; NULL: none */
    struct tls_settings tls_settings; /* of listeners */
    struct tls_settings upstream_tls_settings;
    struct tls_context *tls;          /* made of them; NULL: no listener wants it, or the part was not read */
    struct tls_context *upstream_tls; /* the same */
    struct policies *policies;        /* bound to the table it was built with */
    char *log_path;                   /* NULL: no file */
    bool log_to_stderr;
    enum log_format log_format;
    enum log_level log_level;
    bool is_default; /* no file was given */
};

void config_free(struct config *config); /* NULL: nothing */

#endif
