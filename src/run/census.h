/*
 * Collects what operators see (admin/snapshot.h) from the workers' counters and the other parts of the process. Main
 * thread; reads what other threads write, without locking out any worker.
 */
#ifndef WEIR_RUN_CENSUS_H
#define WEIR_RUN_CENSUS_H

#include "admin/snapshot.h"
#include "front/front.h"
#include "run/commands/governor.h"
#include "run/config/config.h"
#include "run/crew.h"
#include "run/listening.h"
#include "run/memory.h"
#include "run/topology/controls.h"

/* Where a census looks. */
struct census {
    const struct config *config;
    const struct topology *topology;
    const struct front_settings *settings;
    const struct listening *listening;
    const struct governor *governor;
    const struct crew *crew;         /* NULL: not yet */
    const struct controls *controls; /* NULL: not yet, or no more */
    const struct memory *memory;
    struct journal *journal;
    struct history *history;
    uint64_t started_unix_ms;
    bool is_stopping;
};

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

/* ---- its parts: census_limits.c and census_nodes.c ---- */

/* Those of policies and of single subjects; named ones. False: out of memory. */
__attribute__((warn_unused_result)) bool census_take_limits(struct snapshot *snapshot, const struct census *census);
__attribute__((warn_unused_result)) bool census_take_named(struct snapshot *snapshot, const struct census *census);

/* What limits of that id have done, on all workers. */
void census_sum_tallies(struct snapshot_limit *to, const struct census *census, uint16_t id);

/*
 * Set `used` and `fullest` of snapshot->limits, which are in the order of their policies, using
 * snapshot->tops. How much of a limit is used: by all together with scope PER_POLICY, else by the
 * fullest among the heaviest subjects; others are not looked at. Takes the subjects' shard locks
 * briefly.
 */
void census_take_fullness(struct snapshot *snapshot, const struct census *census);

/* False: out of memory. */
__attribute__((warn_unused_result)) bool census_take_nodes(struct snapshot *s, const struct census *census);

/* How the home node is. */
enum node_state census_home_state(const struct census *census);

#endif
