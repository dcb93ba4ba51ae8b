/*
 * Subjects: who is being limited, shared by all connections of one identity on all workers.
 *
 * Found by name under a sharded lock when a client's identity changes, then held by pointer. A subject belongs to a
 * policy's record in the ledger: the same user under two policies has two, and a reload changes nothing. The table is
 * bounded: it forgets only subjects that nobody holds and that owe no more than if they were made anew; full of
 * others, or out of memory, it binds newcomers to the one overflow subject of their policy, which is made with its
 * record. A connection leaves the overflow subject as soon as there is room for one of its own. That gains nothing: a
 * new subject begins with all that the overflow subject owes.
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

/* Funnels of slots that there were not yet when the subject was made. They never move. */
struct more_funnels {
    _Atomic(struct more_funnels *) next;
    uint16_t first;
    uint16_t n;
    struct funnel funnels[];
};

struct subject {
    struct subject *next;     /* in its bucket */
    _Atomic uint32_t holders; /* clients that point here */
    _Atomic uint32_t lock;    /* the short lock of a joint decision */
    uint64_t hash;
    struct record *record; /* of its policy */
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

/* Find or make, and hold; it has all funnels that there are slots for. Any thread. Never NULL. */
struct subject *subject_get(struct subjects *subjects, struct record *record, struct slice name, uint64_t now_ns);

/* For a connection that holds an overflow subject: the subject of its own. NULL: there is still no room for one. */
struct subject *subject_try_get(struct subjects *subjects, struct record *record, struct slice name, uint64_t now_ns);
bool subject_is_overflow(const struct subject *subject);

/* The same for one that is known, under any policy. NULL: it is not, and owes nothing; or there is no memory. */
struct subject *subject_find(struct subjects *subjects, struct slice name);

/* Empty all funnels of the subject of that name, under every policy. Returns how many subjects that were. */
size_t subjects_forgive(struct subjects *subjects, struct slice name);

/* One outside any table: the funnels of a connection, without a name. NULL: out of memory; NULL may be freed. */
struct subject *subject_new_detached(struct record *record, enum scope scope);
void subject_free_detached(struct subject *subject);

/* The same for as long as the record is there, of configuration's memory: see base/mem.h. */
struct subject *subject_new_lasting(struct record *record, enum scope scope, struct slice name);
void subject_grow_lasting(struct subject *subject);

/* Funnels for the slots that have come since it was made, if any have. Any thread. False: out of memory. */
__attribute__((warn_unused_result)) bool subject_grow(struct subject *subject);

/* The funnel of a slot that there was not yet when the subject was made; it has grown since. */
struct funnel *subject_late_funnel(struct subject *subject, uint16_t slot);

static inline struct funnel *subject_funnel(struct subject *subject, uint16_t slot)
{
    return slot < subject->n_funnels ? &subject->funnels[slot] : subject_late_funnel(subject, slot);
}

/* Let go. The subject stays until the table needs its place and its funnels are empty. */
void subject_put(struct subjects *subjects, struct subject *subject);

struct slice subject_name(const struct subject *subject);
size_t subjects_count(struct subjects *subjects);
uint64_t subjects_bytes(const struct subjects *subjects); /* that they take, but for funnels made later */
uint64_t subjects_overflows(struct subjects *subjects);   /* how often somebody was bound to an overflow subject */

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
