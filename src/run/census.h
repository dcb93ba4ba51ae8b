/*
 * Collects what operators see (admin/snapshot.h) from the workers' counters and the other parts of the process. Main
 * thread; reads what other threads write, without locking out any worker.
 */
#ifndef WEIR_RUN_CENSUS_H
#define WEIR_RUN_CENSUS_H

#include "admin/snapshot.h"
#include "run/census_sources.h"

#define CENSUS_WHY_ROOM sizeof(((struct snapshot *)0)->not_ready)

/* Does weir serve clients, in the sense of /readyz? If not, `why` says why. */
bool census_is_ready(const struct census *census, char why[CENSUS_WHY_ROOM]);

/* Of a cluster that is not served in full, which part is; else "". */
void census_tell_part(const struct census *census, char part[CENSUS_WHY_ROOM]);

/* What clients get while it is not ready, because of its upstream. */
const char *census_clients_get(const struct census *census);

/* A new snapshot; one reference. NULL: out of memory. It has no history. */
struct snapshot *census_look(const struct census *census);

/* A new snapshot, which is also added to the history; one reference. NULL: out of memory. */
struct snapshot *census_take(const struct census *census);

#endif
