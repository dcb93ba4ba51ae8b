/*
 * Serves operators over HTTP: opens the address of listen= in [admin], and publishes snapshots on
 * that address.
 */
#ifndef WEIR_RUN_REPORTER_H
#define WEIR_RUN_REPORTER_H

#include <stdbool.h>

#include "run/stats_collector.h"
#include "run/config/config.h"
#include "run/config/address.h"
#include "run/succession.h"

struct http;

struct reporter {
    struct http *http; /* NULL: not serving */
    int fd;            /* the listening socket until reporter_start; else -1 */
    char text[ADDRESS_TEXT];
    const char *hosts; /* owned by the configuration */
};

/* Opens the listening socket, if one is configured. False: an error, which is logged. */
__attribute__((warn_unused_result)) bool reporter_open(struct reporter *reporter,
                                                       const struct config *config,
                                                       struct inherited *inherited);

/* Begins to serve, if there is a socket. False: an error, which is logged. */
__attribute__((warn_unused_result)) bool reporter_start(struct reporter *reporter);

/* Stops accepting: a successor serves on the same socket now. */
void reporter_quiesce(struct reporter *reporter);

/* Publishes a new snapshot, if HTTP is served. */
void reporter_tell(struct reporter *reporter, const struct stats_collector *collector);

/* Safe also after reporter_open failed. */
void reporter_close(struct reporter *reporter);

#endif
