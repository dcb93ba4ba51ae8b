/*
 * The ledger: the counters of all policies and limits, for the life of the process. A reload
 * neither refills a funnel nor loses a count.
 *
 * After a reload a limit is the same limit if its policy, line (class or unit), scope and position
 * in that line are unchanged. The rate may differ. Each limit gets the index of its funnel in every
 * subject of the policy, and the id of its counters. No other limit ever gets the same index or id.
 * One thread makes the entries; any thread may read the counters.
 */
#ifndef WEIR_LIMIT_LEDGER_H
#define WEIR_LIMIT_LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/policy/limit.h"
#include "limit/subject.h"

#define LEDGER_POLICIES_MAX 4096
#ifndef LEDGER_LIMITS_MAX /* a build may have fewer: see the Makefile */
#define LEDGER_LIMITS_MAX 16384
#endif
#define LEDGER_SLOTS_MAX 2048 /* of one policy and scope */

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

struct ledger;
struct rate_table;

struct ledger *ledger_new(void);
/* also frees the counters of policies; no subject may point to them any more */
void ledger_free(struct ledger *ledger);

/* The counters of the policy of that name, made if missing. NULL: LEDGER_POLICIES_MAX reached. */
struct record *ledger_record(struct ledger *ledger, struct slice name);

/* Number of policies with counters; every `number` is less. */
size_t ledger_records(const struct ledger *ledger);

/*
 * Sets slot, departures and id of the limit. `line` is the left side of its line. False: too many
 * limits.
 */
__attribute__((warn_unused_result)) bool ledger_enter(struct ledger *ledger, struct record *record, struct slice line,
                                                      struct limit *limit);

/*
 * ledger_next_order returns the order of the rate tables (limit/rate_table.h) of a new set of
 * rules. ledger_rates makes these tables, once all limits of the set are entered.
 */
uint64_t ledger_next_order(struct ledger *ledger);
struct rate_table *ledger_rates(const struct record *record, enum scope scope, uint64_t order);

/* True if ledger_enter has changed the rate of an index since the last call. */
bool ledger_take_changed(struct ledger *ledger);

/*
 * Makes the counters of one worker: LEDGER_LIMITS_MAX of them, by limit id, zeroed. The caller
 * frees the counters with free().
 */
struct limit_counters *limit_counters_new(void);

static inline void counter_add(_Atomic uint64_t *count, uint64_t n)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + n, memory_order_relaxed);
}

#endif
