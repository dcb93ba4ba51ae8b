/*
 * A subject: a user, an address ... that is being limited, shared by all connections of one identity on all workers;
 * its funnels, and the record of its policy.
 *
 * It belongs to a policy's record in the ledger: the same user under two policies is two subjects, and a reload changes
 * none of them. Reference-counted; whoever holds it may charge its funnels, on any thread. What finds it by its name,
 * makes it and forgets it is the table (limit/subjects.h).
 */
#ifndef WEIR_LIMIT_SUBJECT_H
#define WEIR_LIMIT_SUBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/funnel.h"
#include "limit/policy/limit.h"
#include "limit/rate_table.h"

#define LEDGER_NAME_MAX 32

struct observed;
struct subject;

/*
 * What the ledger remembers of one policy as long as the process lives, whatever its limits are now.
 *
 * Made on one thread by limit/figures/ledger.h, which owns it; the atomic members are used on any.
 */
struct record {
    char name[LEDGER_NAME_MAX + 1];
    uint8_t name_len;
    uint16_t number;                     /* in the ledger: less than LEDGER_POLICIES_MAX */
    _Atomic uint16_t slots[SCOPE_COUNT]; /* how many slots limits of each scope have been given */
    _Atomic uint32_t subjects;           /* how many are in the table now */
    _Atomic bool is_locked; /* decide under the subject's lock: some version of this policy since the start needs it */
    struct slot_rate *rates[SCOPE_COUNT]; /* by slot: the rate its limit had last, whatever subject it was for */
    struct observed *observed;            /* how much its subjects have asked for */
    struct subject *overflow;             /* shared by all for whom there is no room or memory; see limit/subjects.h */
    struct subject *everybody;            /* has the funnels with scope PER_POLICY; NULL: there are none */
};

static inline uint16_t record_slots(const struct record *record, enum scope scope)
{
    return atomic_load_explicit(&record->slots[scope], memory_order_acquire);
}

/* Funnels for slots that were added after the subject was made. They never move in memory. */
struct more_funnels {
    _Atomic(struct more_funnels *) next;
    uint16_t first;
    uint16_t n;
    struct funnel funnels[];
};

/*
 * A queue's rate has changed while commands waited in it: how their places are timed anew (limit/queue.h). Under the
 * subject's lock.
 */
struct retiming {
    struct retiming *next;       /* an earlier one, or one of another queue */
    uint64_t number;             /* what DEPARTURE_TIMED was raised to */
    uint64_t at_ns, end_ns;      /* when; and where the queue ends at the new rate */
    uint64_t shift_ns, ahead_ns; /* DEPARTURE_SHIFT and DEPARTURE_AHEAD by then */
    uint64_t burst_ns;           /* at the new rate */
    struct unit_time from, to;
    uint16_t departures; /* the queue: first slot of its departure's words */
};

struct demand;

struct subject {
    struct subject *next;     /* in its bucket */
    _Atomic uint32_t holders; /* references */
    _Atomic uint32_t lock;    /* the short lock of a joint decision */
    uint64_t hash;
    struct record *record; /* of its policy; the ledger's */
    _Atomic(struct more_funnels *) more;
    _Atomic(struct demand *)
        demand; /* how much it has asked for; NULL: nothing was counted. See limit/figures/demand.h */
    struct retiming *retimings;
    uint16_t n_funnels;
    uint16_t name_len;
    uint8_t scope;           /* enum scope: whose slots its funnels are */
    _Atomic uint32_t n_left; /* connections that have gone and left calls under way: front/client/remains.h */
    _Atomic uint16_t queues; /* on how many workers its commands wait for their share: upstream/fair/fair_queue.h */
    _Atomic uint64_t share_waits; /* how often one of its connections has waited for its share, ... */
    _Atomic uint64_t share_us;    /* ... and how long, all together */
    char *name;                   /* one allocation with the subject */
    /* By what its words are to be read; changed under the lock. NULL: all are empty. A reference; see subject_convert */
    _Atomic(struct rate_table *) rates;
    struct funnel funnels[]; /* by slot */
};

/*
 * A subject that is in no table and has no name: for the funnels of one connection. NULL: out of memory; may be freed.
 */
struct subject *subject_new_detached(struct record *record, enum scope scope);
void subject_free_detached(struct subject *subject);

/* The same with a name, for a record; allocated with base/mem.h, so never NULL. */
struct subject *subject_new_lasting(struct record *record, enum scope scope, struct slice name);
void subject_grow_lasting(struct subject *subject);

/* Add funnels for slots that were added since the subject was made. Any thread. False: out of memory. */
__attribute__((warn_unused_result)) bool subject_grow(struct subject *subject);

/* The funnel of that slot; NULL: it was added after the subject was made, and subject_grow has not succeeded since. */
struct funnel *subject_find_funnel(struct subject *subject, uint16_t slot);

/* The funnel of a slot that was added after the subject was made; subject_grow has succeeded since. */
struct funnel *subject_late_funnel(struct subject *subject, uint16_t slot);

static inline struct funnel *subject_funnel(struct subject *subject, uint16_t slot)
{
    return slot < subject->n_funnels ? &subject->funnels[slot] : subject_late_funnel(subject, slot);
}

/*
 * Bring its debts from the rates that they have to those of `table`, as of now: what is owed stays the same number of
 * units, and is cut to the new burst (bytes: and what was in flight; queues: and what waits). Under its lock; a
 * connection's own holder needs none.
 *
 * Meanwhile and later other threads may charge a word without the lock, if they have loaded the word (funnel_peek)
 * before they found the rates they know (subject_has_rates), and replace no other value: every word whose rate changes
 * is replaced, too.
 */
void subject_convert(struct subject *subject, struct rate_table *table, uint64_t now_ns);

/* How the places in that queue were timed anew by that conversion; NULL: it is not known any more. Under its lock. */
const struct retiming *subject_retiming(const struct subject *subject, uint16_t departures, uint64_t number);
void retimings_free(struct retiming *retimings);

static inline bool subject_has_rates(const struct subject *subject, const struct rate_table *rates)
{
    return atomic_load_explicit(&subject->rates, memory_order_acquire) == rates;
}

/* Do all subjects of its policy share it? Then its rates are those of the policy, whatever a single subject has. */
bool subject_is_common(const struct subject *subject);

/* The rate at which the limit's funnel there runs, for all who share it; under the lock, once the rates are set. */
static inline const struct rate *subject_rate(const struct subject *subject, const struct limit *limit)
{
    return &atomic_load_explicit(&subject->rates, memory_order_relaxed)->at[limit->slot].rate;
}

/* When the funnel of that slot may hold more than its burst, by the newest rates the subject has met; under the lock. */
static inline enum slot_queue subject_slot_queue(const struct subject *subject, uint16_t slot)
{
    const struct rate_table *rates = atomic_load_explicit(&subject->rates, memory_order_relaxed);
    return rates != NULL && slot < rates->n ? (enum slot_queue)rates->at[slot].queue : SLOT_QUEUE_NONE;
}

/* True if commands wait there in the queue of a limit; under the lock. */
static inline bool subject_has_queue(const struct subject *subject, uint16_t slot)
{
    return subject_slot_queue(subject, slot) == SLOT_QUEUE;
}

struct slice subject_name(const struct subject *subject);

/* Is it its policy's overflow subject? */
bool subject_is_overflow(const struct subject *subject);

void subject_wait_for_lock(struct subject *subject);

static inline void subject_lock(struct subject *subject)
{
    if (atomic_exchange_explicit(&subject->lock, 1, memory_order_acquire))
        subject_wait_for_lock(subject);
}

static inline void subject_unlock(struct subject *subject)
{
    atomic_store_explicit(&subject->lock, 0, memory_order_release);
}

/* Its commands wait for their share on one worker more: returns on how many. */
static inline uint32_t subject_queue(struct subject *subject)
{
    return atomic_fetch_add_explicit(&subject->queues, 1, memory_order_relaxed) + 1U;
}

static inline void subject_unqueue(struct subject *subject)
{
    atomic_fetch_sub_explicit(&subject->queues, 1, memory_order_relaxed);
}

/* One of its connections has waited for its share for so long. */
static inline void subject_count_share_wait(struct subject *subject, uint64_t us)
{
    atomic_fetch_add_explicit(&subject->share_waits, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&subject->share_us, us, memory_order_relaxed);
}

/* One connection more (1), or less (-1), has gone and left calls under way. */
static inline void subject_note_left(struct subject *subject, int n)
{
    atomic_fetch_add_explicit(&subject->n_left, (uint32_t)n, memory_order_relaxed);
}

static inline bool subject_has_left(const struct subject *subject)
{
    return atomic_load_explicit(&subject->n_left, memory_order_relaxed) > 0;
}

/* ---- for the table of them ---- */

/* The size of a subject; funnels added later not counted. */
size_t subject_bytes(size_t name_len, uint16_t n_funnels);

/* Make one in `memory`, which is zeroed and has subject_bytes; one reference. */
struct subject *subject_init(void *memory, struct record *record, struct slice name, uint16_t n_funnels);
void subject_hold(struct subject *subject);

/* Which subjects may be dropped: those without debt; or, to make room, all that a new one would owe as much as. */
enum forgetting { FORGET_EMPTY, FORGET_OWING_NO_MORE };

/* Has it no references, and may it be dropped? */
bool subject_is_forgettable(struct subject *subject, enum forgetting which, uint64_t now_ns);

/*
 * A new subject owes what its policy's overflow subject owes, since its connections may have used that one before.
 */
void subject_inherit_overflow(struct subject *heir, uint64_t now_ns);

/* Empty its funnels. */
void subject_forgive(struct subject *subject);

#endif
