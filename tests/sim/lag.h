/*
 * The replication offsets of a deployment: what its master has told, and how far each replica is. A replica has the keys
 * at once all the same: what one that lags may be asked is judged by offsets.
 *
 * Laws, where clients read from replicas and nothing else goes wrong: a client reads from no replica that lacks
 * what the client has written or read. No client reads from a replica that is further behind than replica-lag-max,
 * beside what weir takes to notice.
 */
#ifndef WEIR_SIM_LAG_H
#define WEIR_SIM_LAG_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define COUNTERS 4 /* see counters.h */

void lag_start(void);

/* Another master begins another history. */
void lag_promote(unsigned master);

/* A server is about to carry this out. */
void lag_hear(unsigned which, const struct slice *argv, size_t argc);

/* A counter is another client from now on. */
void lag_forget(unsigned counter);

/* A fault: one replica lags for so long. */
void lag_begin(uint64_t ns, uint64_t pick);

/* None does. */
void lag_end(void);

#endif
