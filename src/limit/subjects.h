/*
 * The table of subjects, by their names.
 *
 * A subject is found under a sharded lock when a client's identity changes, then held by pointer (reference-counted).
 * The table is bounded. It forgets only subjects that nobody holds and that owe no more than a new one would; when it
 * is full of others, or memory is out, newcomers share the one overflow subject of their policy, which is made with its
 * record. A connection leaves the overflow subject as soon as there is room for a subject of its own. Nothing is gained
 * by that: a new subject begins with all that the overflow subject owes.
 */
#ifndef WEIR_LIMIT_SUBJECTS_H
#define WEIR_LIMIT_SUBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/subject.h"

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

/* A subject of that name in the table, under any policy; takes a reference. NULL: none, or out of memory. */
struct subject *subject_find(struct subjects *subjects, struct slice name);

/* True if a subject of that name is in the table: it has come, and is not forgotten. */
bool subjects_have(struct subjects *subjects, struct slice name);

/* Empty all funnels of the subjects of that name, under every policy. Returns how many subjects that were. */
size_t subjects_forgive(struct subjects *subjects, struct slice name);

/* Give back a reference. The subject stays in the table until its funnels are empty and its room is needed. */
void subject_put(struct subjects *subjects, struct subject *subject);

/*
 * Look at every subject in the table, in no order; those that come meanwhile may be left out. A shard is locked for
 * few of them at a time: `look` takes no lock but a record's.
 */
void subjects_look(struct subjects *subjects, void (*look)(void *arg, struct subject *subject), void *arg);

size_t subjects_count(struct subjects *subjects);
uint64_t subjects_bytes(const struct subjects *subjects); /* their memory; what subject_grow added is not counted */
uint64_t subjects_overflows(struct subjects *subjects);   /* how often subject_get returned an overflow subject */

#endif
