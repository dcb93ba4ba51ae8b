/*
 * Subjects: who is being limited (a user, an address ...), shared by all connections of one identity on all workers.
 *
 * Found by name under a sharded lock when a client's identity changes, then held by pointer (reference-counted). A
 * subject belongs to a policy's record in the ledger: the same user under two policies is two subjects, and a reload
 * changes none of them. The table is bounded. It forgets only subjects that nobody holds and that owe no more than a
 * new one would; when it is full of others, or memory is out, newcomers share the one overflow subject of their policy,
 * which is made with its record. A connection leaves the overflow subject as soon as there is room for a subject of its
 * own. Nothing is gained by that: a new subject begins with all that the overflow subject owes.
 */
#ifndef WEIR_LIMIT_SUBJECT_H
#define WEIR_LIMIT_SUBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/funnel.h"
#include "limit/record.h"

/* Funnels for slots that were added after the subject was made. They never move in memory. */
struct more_funnels {
    _Atomic(struct more_funnels *) next;
    uint16_t first;
    uint16_t n;
    struct funnel funnels[];
};

struct subject {
    struct subject *next;     /* in its bucket */
    _Atomic uint32_t holders; /* references */
    _Atomic uint32_t lock;    /* the short lock of a joint decision */
    uint64_t hash;
    struct record *record; /* of its policy; the ledger's */
    _Atomic(struct more_funnels *) more;
    uint16_t n_funnels;
    uint16_t name_len;
    uint8_t scope;           /* enum scope: whose slots its funnels are */
    char *name;              /* one allocation with the subject */
    struct funnel funnels[]; /* by slot */
};

struct subjects;

/* At most `max` subjects. */
struct subjects *subjects_new(size_t max);
void subjects_free(struct subjects *subjects);

/*
 * Find or make; takes a reference. It has funnels for all slots there are. Never NULL: the overflow subject when there
 * is no room. Any thread.
 */
struct subject *subject_get(struct subjects *subjects, struct record *record, struct slice name, uint64_t now_ns);

/* As subject_get, for a connection that holds an overflow subject. NULL: there is still no room for one of its own. */
struct subject *subject_try_get(struct subjects *subjects, struct record *record, struct slice name, uint64_t now_ns);
bool subject_is_overflow(const struct subject *subject);

/* A subject of that name in the table, under any policy; takes a reference. NULL: none, or out of memory. */
struct subject *subject_find(struct subjects *subjects, struct slice name);

/* Empty all funnels of the subjects of that name, under every policy. Returns how many subjects that were. */
size_t subjects_forgive(struct subjects *subjects, struct slice name);

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

/* The funnel of a slot that was added after the subject was made; subject_grow has succeeded since. */
struct funnel *subject_late_funnel(struct subject *subject, uint16_t slot);

static inline struct funnel *subject_funnel(struct subject *subject, uint16_t slot)
{
    return slot < subject->n_funnels ? &subject->funnels[slot] : subject_late_funnel(subject, slot);
}

/* Give back a reference. The subject stays in the table until its funnels are empty and its room is needed. */
void subject_put(struct subjects *subjects, struct subject *subject);

struct slice subject_name(const struct subject *subject);
size_t subjects_count(struct subjects *subjects);
uint64_t subjects_bytes(const struct subjects *subjects); /* their memory; what subject_grow added is not counted */
uint64_t subjects_overflows(struct subjects *subjects);   /* how often subject_get returned an overflow subject */

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

#endif
