/*
 * Tells operators how weir stands: opens [admin] listen, and publishes a snapshot there whenever it is asked to.
 */
#ifndef WEIR_RUN_REPORTER_H
#define WEIR_RUN_REPORTER_H

#include <stdbool.h>

#include "run/census.h"
#include "run/config.h"

struct http;

/* Serve where the configuration says; *http is NULL where it says nothing. False: it cannot, and the log says why. */
__attribute__((warn_unused_result)) bool reporter_open(const struct config *config, struct http **http);

/* Take a census and publish it; with http NULL nothing is done. */
void reporter_tell(struct http *http, const struct census *census);

#endif
