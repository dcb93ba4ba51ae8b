/*
 * A worker: a thread with its own loop, listeners, clients and lanes.
 *
 * Started, told and stopped by the main thread; what it is told waits in its inbox until its loop turns.
 */
#ifndef WEIR_RUN_WORKER_H
#define WEIR_RUN_WORKER_H

#include <stdbool.h>
#include <stddef.h>

#include "front/front.h"
#include "limit/command.h"
#include "limit/policy.h"

struct worker;

struct worker_listen {
    int fd;
    bool is_unix;
};

/*
 * Start a thread that accepts from `listens` (copied; the descriptors stay the caller's). Takes over one reference each
 * of `commands` and `policies`. Ends the process when the system refuses a thread.
 */
struct worker *worker_start(struct front_settings *settings, const struct worker_listen *listens, size_t n_listens,
                            struct command_table *commands, struct policies *policies);

/* Hand over a new command table and the policies bound to it, one reference each. */
void worker_adopt(struct worker *worker, struct command_table *commands, struct policies *policies);

/* Close everything; worker_join waits for the thread's end and frees. */
void worker_stop(struct worker *worker);
void worker_join(struct worker *worker);

#endif
