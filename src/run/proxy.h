/*
 * The life of the process: opens the configured sockets, starts the workers, follows the upstream,
 * stops on a signal.
 */
#ifndef WEIR_RUN_PROXY_H
#define WEIR_RUN_PROXY_H

#include "limit/command/command.h"
#include "run/config/config.h"
#include "run/config/config_file.h"
#include "run/upgrade.h"

/*
 * Runs until SIGTERM or SIGINT with `config`, which was built from `file`. On SIGUSR2 `program` is
 * started and takes over. Returns the exit status of the process (base/process.h): 0, or the reason
 * why weir could not start, which is logged.
 */
int proxy_run(const struct config *config, const struct config_file *file,
              struct command_table *builtin, const struct program *program);

#endif
