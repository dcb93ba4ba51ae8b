/*
 * The ledger: what is remembered of policies and limits for as long as the process lives, so that a reload neither
 * refills a funnel nor loses a count.
 *
 * A limit is the same as before when its policy, its line (class or unit), its scope and its position in that line are the
 * same, whatever its rate. Each gets a slot, where its funnel is with everybody who holds funnels of that policy, and
 * an id, under which it is counted. Neither is ever given to another limit. Entered by one thread; what the entries
 * point to may be read by any.
 */
#ifndef WEIR_LIMIT_LEDGER_H
#define WEIR_LIMIT_LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/limit.h"
#include "limit/record.h"

#define LEDGER_POLICIES_MAX 4096
#define LEDGER_LIMITS_MAX 16384
#define LEDGER_SLOTS_MAX 1024 /* of one policy and scope */

/* How often a limit has decided; written by one worker, read by anybody. */
struct tally {
    _Atomic uint64_t admitted; /* commands, units, bytes or connections */
    _Atomic uint64_t delayed;
    _Atomic uint64_t refused;
    _Atomic uint64_t shadowed; /* would have been refused */
    _Atomic uint64_t near;     /* times that what passed left more than four fifths of the burst used */
};

struct ledger;

struct ledger *ledger_new(void);
void ledger_free(struct ledger *ledger); /* nobody may hold a record any more */

/* The record of the policy of that name, made if need be; NULL: there are LEDGER_POLICIES_MAX. */
struct record *ledger_record(struct ledger *ledger, struct slice name);

/* Give the limit its slot and id. `line` is what its line is named after. False: there are too many. */
__attribute__((warn_unused_result)) bool ledger_enter(struct ledger *ledger, struct record *record, struct slice line,
                                                      struct limit *limit);

/* The tallies of one worker: LEDGER_LIMITS_MAX of them, by id, zeroed; for free(). */
struct tally *tallies_new(void);

static inline void tally_add(_Atomic uint64_t *count, uint64_t n)
{
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + n, memory_order_relaxed);
}

#endif
