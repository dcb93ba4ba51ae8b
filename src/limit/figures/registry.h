/*
 * The registry: the counters of all policies and limits, for the life of the process. A reload
 * neither refills a funnel nor loses a count.
 *
 * After a reload a limit is the same limit if its policy, line (class or unit), scope and position
 * in that line are unchanged. The rate may differ. Each limit gets the index of its funnel in every
 * subject of the policy, and the id of its counters. No other limit ever gets the same index or id.
 * One thread makes the entries; any thread may read the counters.
 */
#ifndef WEIR_LIMIT_REGISTRY_H
#define WEIR_LIMIT_REGISTRY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/policy/limit.h"
#include "limit/subject.h"

#define REGISTRY_POLICIES_MAX 4096
#ifndef REGISTRY_LIMITS_MAX /* a build may have fewer: see the Makefile */
#define REGISTRY_LIMITS_MAX 16384
#endif
#define REGISTRY_SLOTS_MAX 2048 /* indexes of one policy and scope */

/*
 * Counters of the decisions of one limit on one worker: written by the worker, read by any thread.
 */
struct limit_counters {
    _Atomic uint64_t admitted; /* in the unit of the limit: commands, cost, bytes or connections */
    _Atomic uint64_t delayed;
    _Atomic uint64_t refused;
    _Atomic uint64_t shadowed; /* passed in shadow mode; would have been refused otherwise */
    _Atomic uint64_t near;     /* how often a pass left more than four fifths of the burst used */
};

struct registry;
struct rate_table;

struct registry *registry_new(void);
/* also frees the counters of policies; no subject may point to these counters any more */
void registry_free(struct registry *registry);

/* Finds or makes the counters of the policy of that name. NULL: REGISTRY_POLICIES_MAX reached. */
struct policy_state *registry_policy(struct registry *registry, struct slice name);

/* Number of policies with counters. Policies are numbered from 0. */
size_t registry_count(const struct registry *registry);

/*
 * Sets slot, departures and id of the limit. `line` is the left side of its line. False: too many
 * limits.
 */
__attribute__((warn_unused_result)) bool registry_enter(struct registry *registry,
                                                        struct policy_state *policy_state,
                                                        struct slice line, struct limit *limit);

/*
 * registry_next_order returns the order of the rate tables (limit/rate_table.h) of a new set of
 * rules. registry_rates makes these tables, once all limits of the set are entered.
 */
uint64_t registry_next_order(struct registry *registry);
struct rate_table *registry_rates(const struct policy_state *policy_state, enum scope scope,
                                  uint64_t order);

/* True if registry_enter has changed the rate of an index since the last call. */
bool registry_take_changed(struct registry *registry);

/*
 * Makes the counters of one worker: REGISTRY_LIMITS_MAX of them, by limit id, zeroed. The caller
 * frees the counters with free().
 */
struct limit_counters *limit_counters_new(void);

static inline void counter_add(_Atomic uint64_t *count, uint64_t n)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

#endif
