/*
 * Stats collector: fills the snapshot that operators see (admin/snapshot.h) from the workers'
 * counters and the other parts of the process.
 *
 * Main thread. Reads what other threads write, and takes no lock that stops a worker.
 */
#ifndef WEIR_RUN_CENSUS_H
#define WEIR_RUN_CENSUS_H

#include "admin/snapshot.h"
#include "front/front.h"
#include "run/commands/governor.h"
#include "run/config/config.h"
#include "run/worker_pool.h"
#include "run/listening.h"
#include "run/memory.h"
#include "run/topology/controls.h"

/* The sources of a snapshot. */
struct census {
    const struct config *config;
    const struct topology *topology;
    const struct front_settings *settings;
    const struct listening *listening;
    const struct governor *governor;
    const struct worker_pool *pool;  /* NULL before the workers start */
    const struct controls *controls; /* NULL before the start and after the stop */
    const struct memory *memory;
    struct journal *journal;
    struct history *history;
    uint64_t started_unix_ms;
    bool is_stopping;
};

#define CENSUS_WHY_ROOM sizeof(((struct snapshot *)0)->not_ready)

/* True if weir is ready in the sense of /readyz. If not, writes the reason to `why`. */
bool census_is_ready(const struct census *census, char why[CENSUS_WHY_ROOM]);

/* Writes which part of a partly served cluster is down; else "". */
void census_tell_part(const struct census *census, char part[CENSUS_WHY_ROOM]);

/* Returns what clients get while the upstream keeps weir from being ready. */
const char *census_clients_get(const struct census *census);

/* Returns a new snapshot without history; one reference. NULL: out of memory. */
struct snapshot *census_look(const struct census *census);

/* Returns a new snapshot and adds it to the history; one reference. NULL: out of memory. */
struct snapshot *census_take(const struct census *census);

/* ---- census_limits.c and census_nodes.c ---- */

/*
 * Add the limits of policies and of single subjects to the snapshot, and the named limits. False:
 * out of memory.
 */
__attribute__((warn_unused_result)) bool census_take_limits(struct snapshot *snapshot, const struct census *census);
__attribute__((warn_unused_result)) bool census_take_named(struct snapshot *snapshot, const struct census *census);

/* Adds the counters that all workers keep for this limit id to `to`. */
void census_sum_tallies(struct snapshot_limit *to, const struct census *census, uint16_t id);

/*
 * Sets `used` and `fullest` of snapshot->limits from snapshot->tops. The limits are in the order of
 * their policies.
 *
 * Usage of a limit with scope PER_POLICY is the usage of its one funnel. Usage of any other limit
 * is the highest among the heaviest subjects; lighter subjects are not read. Takes the subjects'
 * shard locks briefly.
 */
void census_take_fullness(struct snapshot *snapshot, const struct census *census);

/* Fills the snapshot's nodes. False: out of memory. */
__attribute__((warn_unused_result)) bool census_take_nodes(struct snapshot *s, const struct census *census);

/* The state of the default node. */
enum node_state census_home_state(const struct census *census);

#endif
