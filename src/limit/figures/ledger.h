/*
 * The ledger: what is remembered of policies and limits as long as the process lives, so that a reload neither refills
 * a funnel nor loses a count.
 *
 * After a reload a limit is the same as before when its policy, its line (class or unit), its scope and its position in
 * that line are the same, whatever its rate. Each limit gets a slot, the index of its funnel in every subject of that
 * policy, and an id, the index of its counters. Neither is ever given to another limit. Entries are made on one thread;
 * records may be read on any.
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

/* The decisions of one limit on one worker: written by the worker, read by any thread. */
struct tally {
    _Atomic uint64_t admitted; /* in the limit's unit: commands, cost, bytes or connections */
    _Atomic uint64_t delayed;
    _Atomic uint64_t refused;
    _Atomic uint64_t shadowed; /* passed, but would have been refused: shadow mode */
    _Atomic uint64_t near;     /* how often more than four fifths of the burst were used after something passed */
};

struct ledger;
struct rate_table;

struct ledger *ledger_new(void);
void ledger_free(struct ledger *ledger); /* its records too: no subject may point to one any more */

/* The record of the policy of that name, made if need be; NULL: there are LEDGER_POLICIES_MAX already. */
struct record *ledger_record(struct ledger *ledger, struct slice name);

/* How many records there are: each has a lower number. */
size_t ledger_records(const struct ledger *ledger);

/* Set the limit's slot, departures and id. `line` is the left side of its line. False: there are too many limits. */
__attribute__((warn_unused_result)) bool ledger_enter(struct ledger *ledger, struct record *record, struct slice line,
                                                      struct limit *limit);

/*
 * One more set of rules: the order of its rate tables (limit/rate_table.h), which are made once all of its limits have
 * been entered.
 */
uint64_t ledger_next_order(struct ledger *ledger);
struct rate_table *ledger_rates(const struct record *record, enum scope scope, uint64_t order);

/* Has ledger_enter met another rate than the slot's last one since this was called last? */
bool ledger_take_changed(struct ledger *ledger);

/* The tallies of one worker: LEDGER_LIMITS_MAX of them, by limit id, zeroed. Freed with free(). */
struct tally *tallies_new(void);

static inline void tally_add(_Atomic uint64_t *count, uint64_t n)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + n, memory_order_relaxed);
}

#endif
