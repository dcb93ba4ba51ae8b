/*
 * A subject is the party that is limited: a user, an address ... All connections of one identity on
 * all workers share one subject. A subject holds its funnels and points to the counters of its
 * policy.
 *
 * The key of a subject is its name and the counters of its policy. The same user under two policies
 * is two subjects, and a reload changes neither. Subjects are reference-counted. Any thread that
 * holds a reference may charge the funnels. The table (limit/subjects.h) makes, finds and drops
 * subjects.
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

#define REGISTRY_NAME_MAX 32

struct observed;
struct subject;

/*
 * The counters of one policy. The counters live as long as the process, whatever the limits are
 * now.
 *
 * limit/figures/registry.h makes and owns the counters, on one thread. Any thread uses the atomic
 * members.
 */
struct policy_state {
    char name[REGISTRY_NAME_MAX + 1];
    uint8_t name_len;
    /* index among the counters of all policies; less than REGISTRY_POLICIES_MAX */
    uint16_t number;
    _Atomic uint16_t slots[SCOPE_COUNT]; /* number of funnel indexes given to limits, by scope */
    _Atomic uint32_t subjects;           /* number of the policy's subjects in the table */
    /*
     * True: decide under the lock of the subject. Set once any version of this policy since the
     * start needs the lock.
     */
    _Atomic bool is_locked;
    /* by funnel index: the last rate of the limit with that index, for any subject */
    struct slot_rate *rates[SCOPE_COUNT];
    struct observed *observed; /* peak rates of the policy's subjects */
    /*
     * The overflow subject: shared by all identities that got no subject of their own, since the
     * table was full or memory was out (limit/subjects.h).
     */
    struct subject *overflow;
    struct subject *everybody; /* holds the funnels with scope PER_POLICY; NULL: none */
};

static inline uint16_t policy_state_slots(const struct policy_state *policy_state, enum scope scope)
{
    return atomic_load_explicit(&policy_state->slots[scope], memory_order_acquire);
}

/*
 * Funnels for indexes that were added after the subject was made. A funnel never moves in memory.
 */
struct more_funnels {
    _Atomic(struct more_funnels *) next;
    uint16_t first;
    uint16_t n;
    struct funnel funnels[];
};

/*
 * Records how positions are retimed after a rate changed while commands waited in the queue
 * (limit/queue.h). Protected by the lock of the subject.
 */
struct retiming {
    struct retiming *next;       /* an earlier retiming of this queue or of another one */
    uint64_t number;             /* the new value of DEPARTURE_TIMED */
    uint64_t at_ns, end_ns;      /* time of the change, and end of the queue at the new rate */
    uint64_t shift_ns, ahead_ns; /* DEPARTURE_SHIFT and DEPARTURE_AHEAD at the time of the change */
    uint64_t burst_ns;           /* burst at the new rate */
    struct unit_time from, to;
    uint16_t departures; /* identifies the queue: first index of the words of its departures */
};

struct peak_rates;

struct subject {
    struct subject *next;     /* next subject in the hash bucket */
    _Atomic uint32_t holders; /* number of references */
    _Atomic uint32_t lock;    /* spin lock of decisions over several limits */
    uint64_t hash;
    /* counters of the subject's policy; owned by limit/figures/registry.h */
    struct policy_state *policy_state;
    _Atomic(struct more_funnels *) more;
    /* peak rates; NULL: nothing counted. See limit/figures/peak_rates.h */
    _Atomic(struct peak_rates *) peak_rates;
    struct retiming *retimings;
    uint16_t n_funnels;
    uint16_t name_len;
    uint8_t scope; /* enum scope of the funnel indexes */
    /* closed connections with calls still in flight: front/client/remains.h */
    _Atomic uint32_t n_left;
    /*
     * number of workers on which the subject's commands wait in the fair queue:
     * upstream/fair/fair_queue.h
     */
    _Atomic uint16_t queues;
    /* how often the subject's connections have waited for their share */
    _Atomic uint64_t share_waits;
    _Atomic uint64_t share_us; /* total time of these waits */
    char *name;                /* in the allocation of the subject */
    /*
     * The rates by which the words are read; a reference, changed under the lock. NULL: all words
     * are empty. See subject_convert.
     */
    _Atomic(struct rate_table *) rates;
    struct funnel funnels[]; /* by index */
};

/*
 * Makes a subject without a name and outside the table, for the funnels of one connection. NULL:
 * out of memory. subject_free_detached accepts NULL.
 */
struct subject *subject_new_detached(struct policy_state *policy_state, enum scope scope);
void subject_free_detached(struct subject *subject);

/* Makes a named subject that the counters of a policy own. Never NULL (base/mem.h). */
struct subject *subject_new_lasting(struct policy_state *policy_state, enum scope scope,
                                    struct slice name);
void subject_grow_lasting(struct subject *subject);

/* Adds funnels for indexes added since the subject was made. Any thread. False: out of memory. */
__attribute__((warn_unused_result)) bool subject_grow(struct subject *subject);

/*
 * Returns the funnel of the index. NULL: the index was added later, and subject_grow has not
 * succeeded since.
 */
struct funnel *subject_find_funnel(struct subject *subject, uint16_t slot);

/*
 * Returns the funnel of an index added after the subject was made. Requires a successful
 * subject_grow since.
 */
struct funnel *subject_late_funnel(struct subject *subject, uint16_t slot);

static inline struct funnel *subject_funnel(struct subject *subject, uint16_t slot)
{
    return slot < subject->n_funnels ? &subject->funnels[slot] : subject_late_funnel(subject, slot);
}

/*
 * Converts the debts of the subject to the rates of `table`, as of now. Each debt keeps its number
 * of units and is cut to the new burst. A debt of bytes also keeps the bytes that were in flight. A
 * queue keeps the units of waiting commands. Call under the lock; a subject of one connection needs
 * no lock.
 *
 * Other threads may charge a word without the lock. A thread without the lock loads the word
 * (funnel_peek) before it checks the rates (subject_has_rates), and replaces only the loaded value.
 * The conversion therefore replaces every word if its rate changes.
 */
void subject_convert(struct subject *subject, struct rate_table *table, uint64_t now_ns);

/*
 * Returns how conversion `number` retimed the positions of that queue. NULL: no longer recorded.
 * Under the lock.
 */
const struct retiming *subject_retiming(const struct subject *subject, uint16_t departures,
                                        uint64_t number);
void retimings_free(struct retiming *retimings);

static inline bool subject_has_rates(const struct subject *subject, const struct rate_table *rates)
{
    return atomic_load_explicit(&subject->rates, memory_order_acquire) == rates;
}

/*
 * True for the overflow subject and for the holder of funnels PER_POLICY. Both run at the rates of
 * the policy, never at rates set for a single subject.
 */
bool subject_is_common(const struct subject *subject);

/*
 * Returns the rate at which the subject's funnel for the limit runs. Call under the lock, once the
 * rates are set.
 */
static inline const struct rate *subject_rate(const struct subject *subject,
                                              const struct limit *limit)
{
    return &atomic_load_explicit(&subject->rates, memory_order_relaxed)->at[limit->slot].rate;
}

/*
 * Returns when the funnel of the index may hold more than its burst, by the newest rates of the
 * subject. Under the lock.
 */
static inline enum slot_queue subject_slot_queue(const struct subject *subject, uint16_t slot)
{
    const struct rate_table *rates = atomic_load_explicit(&subject->rates, memory_order_relaxed);
    return rates != NULL && slot < rates->n ? (enum slot_queue)rates->at[slot].queue
                                            : SLOT_QUEUE_NONE;
}

/* True if commands wait at that index in the queue of a limit. Under the lock. */
static inline bool subject_has_queue(const struct subject *subject, uint16_t slot)
{
    return subject_slot_queue(subject, slot) == SLOT_QUEUE;
}

struct slice subject_name(const struct subject *subject);

/* True if the subject is the overflow subject of its policy. */
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

/*
 * Notes that commands of the subject wait in the fair queue of one more worker. Returns the new
 * number of workers with waiting commands of the subject.
 */
static inline uint32_t subject_queue(struct subject *subject)
{
    return atomic_fetch_add_explicit(&subject->queues, 1, memory_order_relaxed) + 1U;
}

static inline void subject_unqueue(struct subject *subject)
{
    atomic_fetch_sub_explicit(&subject->queues, 1, memory_order_relaxed);
}

/* Counts a wait for the fair share by a connection of the subject. */
static inline void subject_count_share_wait(struct subject *subject, uint64_t us)
{
    atomic_fetch_add_explicit(&subject->share_waits, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&subject->share_us, us, memory_order_relaxed);
}

/* Adds n (1 or -1) to the closed connections that have calls in flight. */
static inline void subject_note_left(struct subject *subject, int n)
{
    atomic_fetch_add_explicit(&subject->n_left, (uint32_t)n, memory_order_relaxed);
}

static inline bool subject_has_left(const struct subject *subject)
{
    return atomic_load_explicit(&subject->n_left, memory_order_relaxed) > 0;
}

/* ---- for the table of subjects ---- */

/* Size of a subject in bytes, without funnels added later. */
size_t subject_bytes(size_t name_len, uint16_t n_funnels);

/* Initialises a subject with one reference in `memory`, which is zeroed and has subject_bytes. */
struct subject *subject_init(void *memory, struct policy_state *policy_state, struct slice name,
                             uint16_t n_funnels);
void subject_hold(struct subject *subject);

/*
 * Which subjects may be dropped. FORGET_EMPTY: subjects without debt. FORGET_OWING_NO_MORE, to make
 * room: subjects that owe no more than a new subject would.
 */
enum forgetting { FORGET_EMPTY, FORGET_OWING_NO_MORE };

/* True if the subject has no references and may be dropped. */
bool subject_is_forgettable(struct subject *subject, enum forgetting which, uint64_t now_ns);

/*
 * Copies the debts of the overflow subject to a new subject. Connections of the new subject may
 * have used the overflow subject before.
 */
void subject_inherit_overflow(struct subject *heir, uint64_t now_ns);

/* Empties the funnels of the subject. */
void subject_forgive(struct subject *subject);

#endif
