/*
 * How far replicas are behind their master, by replication offsets. Time is an argument.
 *
 *     asked at 10.0 s      the master has 500   "as of 10.0 s": the master had at most 500 then
 *     asked at 10.3 s      the master has 740
 *     a replica has 610    it has 500, not 740: a copy of the master as of 10.0 s, at least
 *
 * A replica has the master's state as of the time when weir asked for the newest offset that the
 * replica has reached. Everything that the master had answered before that time is in the replica.
 * This time shows how far a replica is behind, and whether the replica has a client's own writes
 * and reads. No time is estimated.
 *
 * struct offsets is the main thread's; struct reach is written by the main thread and read by
 * workers.
 */
#ifndef WEIR_UPSTREAM_OFFSETS_H
#define WEIR_UPSTREAM_OFFSETS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "upstream/node/node_role.h"

#define OFFSETS_ID 40 /* characters of a replication ID */
/* chosen: offsets kept; older offsets are thinned out to reach far back */
#define OFFSETS_HISTORY 64

/* A server's answer to INFO replication. */
struct offsets_word {
    enum node_role role;
    /* a replica: its link to its master is up, and no full copy is in progress */
    bool is_linked;
    uint64_t offset;         /* a master: reported; a replica: reached */
    char id[OFFSETS_ID + 1]; /* the replication ID that the offset belongs to; "": unknown */
};

/* Parse INFO's text. False: `info` has another form. */
__attribute__((warn_unused_result)) bool offsets_read(struct slice info, struct offsets_word *word);

struct offsets_told {
    uint64_t asked_ns; /* when the question was sent */
    uint64_t offset;
};

/* The reports of one master, the oldest first. Zeroed: no reports. */
struct offsets {
    struct offsets_told told[OFFSETS_HISTORY];
    size_t n;
    char id[OFFSETS_ID + 1];
};

/*
 * Note a report of the master, which weir asked for at asked_ns. Another replication ID begins a
 * new history.
 */
void offsets_note(struct offsets *offsets, const struct offsets_word *master, uint64_t asked_ns);

/* Forget all reports: another server is the master, or no server is the master. */
void offsets_forget(struct offsets *offsets);

/*
 * The time as of which this replica has the master's state; 0: unknown, or the replica does not
 * follow.
 */
uint64_t offsets_as_of(const struct offsets *offsets, const struct offsets_word *replica);

/* How many bytes the replica is behind the master's last report. */
uint64_t offsets_behind(const struct offsets *offsets, const struct offsets_word *replica);

/* The lag of one node. Zeroed: unknown, and the node does not follow. */
struct reach {
    _Atomic uint64_t as_of_ns; /* offsets_as_of of the last report; 0: unknown */
    _Atomic uint64_t behind;   /* bytes, at the last report */
    /* how often a connection to the node was lost: the node may have restarted */
    _Atomic uint32_t doubts;
    uint64_t asked_ns; /* when the replica was last asked; main thread */
    /* the node's last answer arrived in time, and said that the node follows the master */
    _Atomic bool follows;
};

/*
 * A replica has reported the master's state as of as_of_ns. 0: the replica does not follow the
 * master. Main thread.
 */
static inline void reach_note(struct reach *reach, uint64_t as_of_ns, uint64_t behind)
{
    atomic_store_explicit(&reach->behind, behind, memory_order_relaxed);
    atomic_store_explicit(&reach->as_of_ns, as_of_ns, memory_order_relaxed);
    atomic_store_explicit(&reach->follows, as_of_ns != 0, memory_order_release);
}

/* The node has not answered in time, or is no longer a replica. */
static inline void reach_end(struct reach *reach)
{
    atomic_store_explicit(&reach->follows, false, memory_order_relaxed);
}

/* A connection to the node was lost: earlier reports may be from another process. Any thread. */
static inline void reach_doubt(struct reach *reach)
{
    atomic_fetch_add_explicit(&reach->doubts, 1, memory_order_relaxed);
    reach_end(reach);
}

static inline uint32_t reach_doubts(const struct reach *reach)
{
    return atomic_load_explicit(&reach->doubts, memory_order_relaxed);
}

/*
 * The time as of which the node has the master's state; 0: the node does not follow, or lags more
 * than lag_max_ns.
 */
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
