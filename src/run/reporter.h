/*
 * Serves operators over HTTP: opens [admin] listen, and publishes snapshots there.
 */
#ifndef WEIR_RUN_REPORTER_H
#define WEIR_RUN_REPORTER_H

#include <stdbool.h>

#include "run/census.h"
#include "run/config/config.h"
#include "run/config/address.h"
#include "run/succession.h"

struct http;

struct reporter {
    struct http *http; /* NULL: not serving */
    int fd;            /* the listening socket until reporter_start; else -1 */
    char text[ADDRESS_TEXT];
    const char *hosts; /* the configuration's */
};

/* Open the listening socket, if one is configured. False: it cannot; logged. */
__attribute__((warn_unused_result)) bool reporter_open(struct reporter *reporter, const struct config *config,
                                                       struct inherited *inherited);

/* Begin to serve, if there is a socket. False: it cannot; logged. */
__attribute__((warn_unused_result)) bool reporter_start(struct reporter *reporter);

/* Accept no more: another process serves on the same socket now. */
void reporter_quiesce(struct reporter *reporter);

/* Take a census and publish it, if it is serving. */
void reporter_tell(struct reporter *reporter, const struct census *census);

/* Safe also after reporter_open failed. */
void reporter_close(struct reporter *reporter);

#endif
