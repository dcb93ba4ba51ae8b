/*
 * Tells operators how weir stands: opens [admin] listen, and publishes a snapshot there whenever it is asked to.
 */
#ifndef WEIR_RUN_REPORTER_H
#define WEIR_RUN_REPORTER_H

#include <stdbool.h>

#include "run/census.h"
#include "run/config.h"
#include "run/address.h"
#include "run/inherit.h"

struct http;

struct reporter {
    struct http *http; /* NULL: it does not serve */
    int fd;            /* the listening socket, while open; else -1 */
    char text[ADDRESS_TEXT];
    const char *hosts; /* the configuration's */
};

/* Listen where the configuration says, if it says anything. False: it cannot, and the log says why. */
__attribute__((warn_unused_result)) bool reporter_open(struct reporter *reporter, const struct config *config,
                                                       struct inherited *inherited);

/* Serve from now on, if it listens. False as above. */
__attribute__((warn_unused_result)) bool reporter_start(struct reporter *reporter);

/* Another process serves there now. */
void reporter_quiesce(struct reporter *reporter);

/* Take a census and publish it, if it serves. */
void reporter_tell(struct reporter *reporter, const struct census *census);

/* Safe on one that was opened in vain. */
void reporter_close(struct reporter *reporter);

#endif
