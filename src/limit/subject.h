/*
 * Subjects: who is being limited, shared by all connections of one identity on all workers.
 *
 * Found by name under a sharded lock when a client's identity changes, then held by pointer. A subject belongs to a
 * policy's name and number of limits: the same user under two policies has two. The table is bounded: it forgets only
 * subjects that nobody holds and whose funnels are empty; full of others, it binds newcomers to one shared overflow
 * subject per policy.
 */
#ifndef WEIR_LIMIT_SUBJECT_H
#define WEIR_LIMIT_SUBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/funnel.h"
#include "limit/policy.h"

struct subject {
    struct subject *next;     /* in its bucket */
    _Atomic uint32_t holders; /* clients that point here */
    _Atomic uint32_t lock;    /* the short lock of a joint decision */
    uint64_t hash;
    uint16_t n_funnels;
    uint16_t policy_len;
    uint16_t name_len;
    char *label;             /* policy name, then subject name; one allocation with the subject */
    struct funnel funnels[]; /* one for each limit of the policy, in its order */
};

struct subjects;

/* At most `max` subjects. */
struct subjects *subjects_new(size_t max);
void subjects_free(struct subjects *subjects);

/* Find or make, and hold. Any thread. Never NULL. */
struct subject *subject_get(struct subjects *subjects, const struct policy *policy, struct slice name, uint64_t now_ns);

/* Let go. The subject stays until the table needs its place and its funnels are empty. */
void subject_put(struct subjects *subjects, struct subject *subject);

struct slice subject_name(const struct subject *subject);
size_t subjects_count(struct subjects *subjects);
bool subjects_overflowed(struct subjects *subjects); /* has anybody been bound to an overflow subject? */

void subject_lock(struct subject *subject);
void subject_unlock(struct subject *subject);

#endif
