/*
 * The replication offsets of a deployment: the master's offset, and how far each replica is. A
 * replica still has all keys at once. Reads from a lagging replica are judged by offsets.
 *
 * Laws, where clients read from replicas and nothing else fails: a client reads from no replica
 * that lacks what the client has written or read. No client reads from a replica that is further
 * behind than replica-lag-max, plus the time that weir takes to notice.
 */
#ifndef WEIR_SIM_LAG_H
#define WEIR_SIM_LAG_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define COUNTERS 4 /* see counters.h */

void lag_start(void);

/* A new master starts a new replication history. */
void lag_promote(unsigned master);

/* A server is about to execute this command. */
void lag_hear(unsigned which, const struct slice *argv, size_t argc);

/* The counter is a new client from now on. */
void lag_forget(unsigned counter);

/* A fault: one replica lags for `ns`. */
void lag_begin(uint64_t ns, uint64_t pick);

/* No replica lags any more. */
void lag_end(void);

#endif
