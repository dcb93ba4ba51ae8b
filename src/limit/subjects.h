/*
 * The table of subjects, by name.
 *
 * When the identity of a client changes, the client looks up its subject under a sharded lock. The
 * client then holds a reference. The table is bounded, and drops only subjects without references
 * that owe no more than a new subject would.
 *
 * When nothing can be dropped, or memory is out, new identities share the overflow subject of their
 * policy. The overflow subject is made with the counters of the policy. A connection leaves the
 * overflow subject once the table has room for the connection's own subject. Leaving gains nothing:
 * a new subject begins with all debts of the overflow subject.
 */
#ifndef WEIR_LIMIT_SUBJECTS_H
#define WEIR_LIMIT_SUBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/subject.h"

struct subjects;

/* Makes a table of at most `max` subjects. */
struct subjects *subjects_new(size_t max);
void subjects_free(struct subjects *subjects);

/*
 * Finds or makes a subject with funnels for all current indexes, and takes a reference. Never NULL:
 * returns the overflow subject when the table has no room. Any thread.
 */
struct subject *subject_get(struct subjects *subjects, struct policy_state *policy_state,
                            struct slice name, uint64_t now_ns);

/*
 * subject_get for a connection that uses an overflow subject. NULL: the table still has no room for
 * the connection's own subject.
 */
struct subject *subject_try_get(struct subjects *subjects, struct policy_state *policy_state,
                                struct slice name, uint64_t now_ns);

/* Finds a subject by name under any policy and takes a reference. NULL: none, or out of memory. */
struct subject *subject_find(struct subjects *subjects, struct slice name);

/* True if the table has a subject of that name. */
bool subjects_have(struct subjects *subjects, struct slice name);

/*
 * Empties all funnels of the subjects of that name under all policies. Returns the number of these
 * subjects.
 */
size_t subjects_forgive(struct subjects *subjects, struct slice name);

/*
 * Releases a reference. The subject stays in the table until its funnels are empty and its room is
 * needed.
 */
void subject_put(struct subjects *subjects, struct subject *subject);

/*
 * Calls `look` for every subject in the table, in no particular order. Subjects added meanwhile may
 * be left out. Each shard is locked for a few subjects at a time. `look` may take only the lock of
 * a policy's counters.
 */
void subjects_look(struct subjects *subjects, void (*look)(void *arg, struct subject *subject),
                   void *arg);

size_t subjects_count(struct subjects *subjects);
/* bytes of the table, without the funnels that subject_grow added */
uint64_t subjects_bytes(const struct subjects *subjects);
/* how often subject_get returned an overflow subject */
uint64_t subjects_overflows(struct subjects *subjects);

#endif
