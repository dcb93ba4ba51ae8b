/*
 * The whole proxy: opens what the configuration names, starts the workers, follows the upstream, stops on a signal.
 */
#ifndef WEIR_RUN_PROXY_H
#define WEIR_RUN_PROXY_H

#include "limit/command.h"
#include "run/config.h"

/* Runs until SIGTERM or SIGINT. Returns the process' exit status: 0, or 1 when it could not start (said in the log). */
int proxy_run(const struct config *config, struct command_table *builtin);

#endif
