/*
 * The configuration: read whole from an INI file, checked whole, then never changed.
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

struct config_file;

struct address {
    char *host; /* heap; a path when is_unix */
    uint16_t port;
    bool is_unix;
    bool is_tls;
};

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

/* What is built: everything, or no more than what can change while weir runs. */
enum config_part { CONFIG_WHOLE, CONFIG_LIVE };

/*
 * Build a configuration from what stands in `file`, which remains. All errors and warnings go to file->report, one line
 * each; the result is NULL when there was an error, now or in reading. With CONFIG_LIVE the settings that need a
 * restart, and those that name files, are not looked at, and remain zero.
 */
struct config *config_build(struct config_file *file, const struct command_table *table, enum config_part part);

/* Read file->path (NULL: the safe default) into `file`, then build the whole. */
struct config *config_read(struct config_file *file, const struct command_table *table);

/* Read `path`, build the whole, and forget the file. `report` gets lines like "file:line: [section] key: message". */
struct config *config_load(const char *path, const struct command_table *table,
                           void (*report)(void *arg, bool is_error, const char *line), void *arg);
void config_free(struct config *config);

/* "127.0.0.1:6379", "tls:[::1]:6379" or "unix:/path" into out. */
void address_print(const struct address *address, char *out, size_t size);

#endif
