/*
 * A master and its replicas, in runs that have several servers (run.plan.servers): which of
 * them is the master, and how that changes.
 *
 * Replicas have what the master has at once: no failover loses a key. A master that is given up calls itself a replica
 * from that moment on, whether it is asked or not; so does one that was killed, when it comes back. Between two masters
 * there may be none for a while.
 */
#ifndef WEIR_SIM_DEPLOYMENT_H
#define WEIR_SIM_DEPLOYMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

/* failover-wait, where the run is pure. */
#define DEPLOYMENT_WAIT_NS (UINT64_C(10) * 1000000000)

struct plan;

/* The value of `upstream`, and what else such a run's configuration says. */
void deployment_config(const struct plan *plan, char *out, size_t room);

/* May a run in which nothing else goes wrong have this line? */
bool deployment_bears(const char *line, bool may_close);

/* Is this a fault of such a run? */
bool deployment_has(const char *fault, bool is_on_link);

/* run.plan.is_pure, for files that cannot include the run. */
bool deployment_is_pure(void);

void deployment_start(void);

/* There is a master, all are well, and it stays so. */
void deployment_end(void);
void deployment_stop(void);

/* Faults: see faults.c. While one of them is not over, another does nothing. */
void deployment_fail_over(uint64_t ns, uint64_t pick); /* by hand: the old master still answers */
void deployment_kill(uint64_t ns, uint64_t pick);
void deployment_hang(uint64_t ns, uint64_t pick);
void deployment_cut(uint64_t ns, uint64_t pick);
void deployment_load(uint64_t ns, uint64_t pick);

/* May it carry out late what it was sent? */
bool deployment_is_upset(unsigned which);

/* A server is about to carry this out. */
void deployment_hear(unsigned which, const struct slice *argv, size_t argc);

/* May what a client has said at that time, and not been answered, be lost? */
bool deployment_may_lose(uint64_t said_ns);

#endif
