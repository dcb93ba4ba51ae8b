/*
 * The configuration: read whole from an INI file, checked whole, then never changed.
 */
#ifndef WEIR_RUN_CONFIG_H
#define WEIR_RUN_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "limit/identity.h"
#include "limit/policy.h"

struct address {
    char *host; /* heap; a path when is_unix */
    uint16_t port;
    bool is_unix;
};

struct config {
    struct address *listens;
    size_t n_listens;
    struct address upstream;
    char *upstream_user;     /* NULL: none */
    char *upstream_password; /* NULL: none; without the trailing line end of the file it came from */
    unsigned workers;
    bool lanes_private;
    unsigned max_clients;
    size_t max_subjects;
    size_t output_limit_bytes;
    uint64_t connect_timeout_ns;
    uint64_t upstream_timeout_ns; /* 0: none */
    struct identity identity;
    char error_prefix[33];
    struct policies *policies; /* bound to the built-in command table */
    bool is_default;           /* no file was given */
};

/*
 * Read `path` (NULL: the safe default). All errors and warnings are reported, one line each, through `report`
 * ("file:line: [section] key: message"); the result is NULL when there was an error.
 */
struct config *config_load(const char *path, const struct command_table *table,
                           void (*report)(void *arg, bool is_error, const char *line), void *arg);
void config_free(struct config *config);

/* "127.0.0.1:6379", "[::1]:6379" or "unix:/path" into out. */
void address_print(const struct address *address, char *out, size_t size);

#endif
