/*
 * Stats collector: fills the snapshot that operators see (admin/snapshot.h) from the workers'
 * counters and the other parts of the process.
 *
 * Main thread. Reads counters that other threads write, and takes no lock that stops a worker.
 */
#ifndef WEIR_RUN_STATS_COLLECTOR_H
#define WEIR_RUN_STATS_COLLECTOR_H

#include "admin/snapshot.h"
#include "front/front.h"
#include "run/commands/config_manager.h"
#include "run/config/config.h"
#include "run/worker_pool.h"
#include "run/listening.h"
#include "run/memory.h"
#include "run/topology/controls.h"

/* The sources of a snapshot. */
struct stats_collector {
    const struct config *config;
    const struct topology *topology;
    const struct front_settings *settings;
    const struct listening *listening;
    const struct config_manager *manager;
    const struct worker_pool *pool;  /* NULL before the workers start */
    const struct controls *controls; /* NULL before the start and after the stop */
    const struct memory *memory;
    struct journal *journal;
    struct history *history;
    uint64_t started_unix_ms;
    bool is_stopping;
};

#define NOT_READY_ROOM sizeof(((struct snapshot *)0)->not_ready)

/* True if weir is ready in the sense of /readyz. If not, writes the reason to `why`. */
bool collector_is_ready(const struct stats_collector *collector, char why[NOT_READY_ROOM]);

/* Writes which part of a partly served cluster is down; "": nothing is down, or no cluster. */
void collector_tell_part(const struct stats_collector *collector, char part[NOT_READY_ROOM]);

/* Returns how clients are treated while the upstream keeps weir from being ready; static. */
const char *collector_clients_get(const struct stats_collector *collector);

/* Returns a new snapshot without history; one reference. NULL: out of memory. */
struct snapshot *collector_look(const struct stats_collector *collector);

/* Returns a new snapshot and adds it to the history; one reference. NULL: out of memory. */
struct snapshot *collector_take(const struct stats_collector *collector);

/* ---- stats_collector_limits.c and stats_collector_nodes.c ---- */

/* Adds the limits of policies and of single subjects to the snapshot. False: out of memory. */
__attribute__((warn_unused_result)) bool collector_take_limits(
    struct snapshot *snapshot, const struct stats_collector *collector);

/* Adds the named limits to the snapshot. False: out of memory. */
__attribute__((warn_unused_result)) bool collector_take_named(
    struct snapshot *snapshot, const struct stats_collector *collector);

/* Adds the counters of this limit id on all workers to `to`. */
void collector_sum_counters(struct snapshot_limit *to, const struct stats_collector *collector,
                            uint16_t id);

/*
 * Sets `used` and `fullest` of snapshot->limits from snapshot->tops. The limits are in the order of
 * their policies.
 *
 * Usage of a limit with scope PER_POLICY is the usage of its one funnel. Usage of any other limit
 * is the highest among the heaviest subjects; lighter subjects are not read. Takes the subjects'
 * shard locks briefly.
 */
void collector_take_usage(struct snapshot *snapshot, const struct stats_collector *collector);

/* Fills the snapshot's nodes. False: out of memory. */
__attribute__((warn_unused_result)) bool collector_take_nodes(
    struct snapshot *s, const struct stats_collector *collector);

/* The state of the default node. */
enum node_state collector_default_node_state(const struct stats_collector *collector);

#endif
