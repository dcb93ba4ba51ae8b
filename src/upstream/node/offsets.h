/*
 * How far replicas are behind their master, by replication offsets. Time is an argument.
 *
 *     asked at 10.0 s      the master tells 500      "as of 10.0 s": the master had at most 500 then
 *     asked at 10.3 s      the master tells 740
 *     a replica tells 610  it has 500, not 740: it is a copy of the master as of 10.0 s, at least
 *
 * A replica's state is as of the time when the question was sent whose answer is the newest offset that the replica has
 * reached. All that the master had answered before that time is in the replica. So one time says how far behind a
 * replica is, and whether it has what a client has written or read: no time is guessed.
 *
 * struct offsets is the main thread's; struct reach is written by the main thread and read by workers.
 */
#ifndef WEIR_UPSTREAM_OFFSETS_H
#define WEIR_UPSTREAM_OFFSETS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "upstream/node/node_role.h"

#define OFFSETS_ID 40      /* characters of a replication ID */
#define OFFSETS_HISTORY 64 /* offsets kept; older ones are thinned out, so that together they reach far back */

/* What a server says in INFO replication. */
struct offsets_word {
    enum node_role role;
    bool is_linked;          /* a replica: its link to its master is up, and no full copy is being made */
    uint64_t offset;         /* a master: told; a replica: reached */
    char id[OFFSETS_ID + 1]; /* which history the offset counts in; "": it does not say */
};

/* Read INFO's text. False: it is no such text. */
__attribute__((warn_unused_result)) bool offsets_read(struct slice info, struct offsets_word *word);

struct offsets_told {
    uint64_t asked_ns; /* when the question was sent */
    uint64_t offset;
};

/* What one master has told, the oldest first. Zeroed: nothing. */
struct offsets {
    struct offsets_told told[OFFSETS_HISTORY];
    size_t n;
    char id[OFFSETS_ID + 1];
};

/* The master has told this, in answer to a question of that time. Another replication ID begins a new history. */
void offsets_note(struct offsets *offsets, const struct offsets_word *master, uint64_t asked_ns);

/* Another server is the master, or none is. */
void offsets_forget(struct offsets *offsets);

/* The time as of which this replica has the master's state; 0: it is not known, or the replica does not follow. */
uint64_t offsets_as_of(const struct offsets *offsets, const struct offsets_word *replica);

/* How many bytes the replica lacks of what the master told last. */
uint64_t offsets_behind(const struct offsets *offsets, const struct offsets_word *replica);

/* Of one node. Zeroed: nothing is known, and the node does not follow. */
struct reach {
    _Atomic uint64_t as_of_ns; /* offsets_as_of, as last told; 0: not known */
    _Atomic uint64_t behind;   /* bytes, as last told */
    _Atomic uint32_t doubts;   /* times at which a connection to the node was lost: it may have been started again */
    uint64_t asked_ns;         /* when it was asked last; the main thread's */
    _Atomic bool follows;      /* its last answer came in time and said that it follows the master */
};

/* A replica has told that it has the master's state as of then. 0: it does not follow. Main thread. */
static inline void reach_note(struct reach *reach, uint64_t as_of_ns, uint64_t behind)
{
    atomic_store_explicit(&reach->behind, behind, memory_order_relaxed);
    atomic_store_explicit(&reach->as_of_ns, as_of_ns, memory_order_relaxed);
    atomic_store_explicit(&reach->follows, as_of_ns != 0, memory_order_release);
}

/* It has not answered in time, or is no replica any more. */
static inline void reach_end(struct reach *reach)
{
    atomic_store_explicit(&reach->follows, false, memory_order_relaxed);
}

/* A connection to it was lost: what it told before may be of another process. Any thread. */
static inline void reach_doubt(struct reach *reach)
{
    atomic_fetch_add_explicit(&reach->doubts, 1, memory_order_relaxed);
    reach_end(reach);
}

static inline uint32_t reach_doubts(const struct reach *reach)
{
    return atomic_load_explicit(&reach->doubts, memory_order_relaxed);
}

/* The time as of which the node has the master's state; 0: it does not follow, or that was more than lag_max_ns ago. */
static inline uint64_t reach_as_of(const struct reach *reach, uint64_t now_ns, uint64_t lag_max_ns)
{
    if (!atomic_load_explicit(&reach->follows, memory_order_acquire))
        return 0;
    uint64_t as_of_ns = atomic_load_explicit(&reach->as_of_ns, memory_order_relaxed);
    return now_ns <= as_of_ns || now_ns - as_of_ns <= lag_max_ns ? as_of_ns : 0;
}

static inline bool reach_is_in_sync(const struct reach *reach, uint64_t now_ns, uint64_t lag_max_ns)
{
    return reach_as_of(reach, now_ns, lag_max_ns) != 0;
}

#endif
