/*
 * A master and its replicas, in runs with several servers (run.plan.servers): which server is the
 * master, and how that changes.
 *
 * Replicas have the master's data at once: no failover loses a key. A replaced master calls itself
 * a replica at once, even without a request. A killed master calls itself a replica once it is
 * back. Between two masters there may be no master for a while.
 */
#ifndef WEIR_SIM_DEPLOYMENT_H
#define WEIR_SIM_DEPLOYMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* failover-wait of pure runs. */
#define DEPLOYMENT_WAIT_NS (UINT64_C(10) * 1000000000)

struct plan;

/*
 * Writes the value of `upstream` and the other lines of the configuration of a run with several
 * servers.
 */
void deployment_config(const struct plan *plan, char *out, size_t room);

/* True if a run with no other faults may have this line in its configuration. */
bool deployment_bears(const char *line, bool may_close);

/* True if a run with several servers may have this fault. */
bool deployment_has(const char *fault, bool is_on_link);

/* run.plan.is_pure, for files that cannot include the run. */
bool deployment_is_pure(void);

void deployment_start(void);

/* Ends all faults: from now on one server is the master and all servers are well. */
void deployment_end(void);
void deployment_stop(void);

/* Faults: see faults.c. While a fault lasts, another fault does nothing. */
void deployment_fail_over(uint64_t ns, uint64_t pick); /* manual: the old master still answers */
void deployment_kill(uint64_t ns, uint64_t pick);
void deployment_hang(uint64_t ns, uint64_t pick);
void deployment_cut(uint64_t ns, uint64_t pick);
void deployment_load(uint64_t ns, uint64_t pick);

/* True if the server may execute commands late. */
bool deployment_is_upset(unsigned which);

/* A server is about to execute this command. */
void deployment_hear(unsigned which, const struct slice *argv, size_t argc);

/* True if a request sent at `said_ns` and not answered may be lost. */
bool deployment_may_lose(uint64_t said_ns);

#endif
