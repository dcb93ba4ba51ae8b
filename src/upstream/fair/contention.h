/*
 * Contention for a node, on all workers: whether more than one subject, or more than one client of
 * a subject, has sent recently. Also the weight of the waiting subjects, and the round trip to the
 * node.
 *
 * Any thread. All fields are atomics, and are written only when a value changes or is about to
 * expire. While a client sends alone, each read from that client costs two comparisons.
 * Reference-counted: a node and its replacement share one struct.
 */
#ifndef WEIR_UPSTREAM_CONTENTION_H
#define WEIR_UPSTREAM_CONTENTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * Chosen: how long contention is assumed after another sender's request. The queue in Redis must
 * already be short when the request of an occasional client arrives.
 */
#define CONTENTION_NS (1 * NS_PER_S)

/* Whether more than one sender of a kind has sent recently. */
struct mixture {
    _Atomic uintptr_t last;    /* the last known sender; only for comparison */
    _Atomic uint64_t until_ns; /* several senders are assumed until this time */
};

struct contention {
    _Atomic unsigned holders;
    struct mixture subjects;
    struct mixture lane_users;
    _Atomic uint64_t weights; /* sum over the subjects that wait for their share, on all workers */
    /*
     * round trip to the farthest node that shares this struct: the shortest of the last seconds; 0:
     * unknown
     */
    _Atomic uint64_t trip_ns;
};

/* Returns a new struct with one reference. Out of memory ends the process. */
struct contention *contention_new(void);
struct contention *contention_get(struct contention *contention);
void contention_put(struct contention *contention);

static inline bool mixture_is(const struct mixture *mixture, uint64_t now_ns)
{
    return now_ns < atomic_load_explicit(&mixture->until_ns, memory_order_relaxed);
}

/* Note that a sender sends now. Returns true if several senders have sent recently. */
static inline bool mixture_note(struct mixture *mixture, const void *party, uint64_t now_ns)
{
    uint64_t until_ns = atomic_load_explicit(&mixture->until_ns, memory_order_relaxed);
    if (now_ns + CONTENTION_NS / 2 < until_ns)
        return true;
    if (atomic_load_explicit(&mixture->last, memory_order_relaxed) == (uintptr_t)party)
        return now_ns < until_ns;
    bool is_first =
        atomic_exchange_explicit(&mixture->last, (uintptr_t)party, memory_order_relaxed) == 0;
    if (is_first)
        return false;
    atomic_store_explicit(&mixture->until_ns, now_ns + CONTENTION_NS, memory_order_relaxed);
    return true;
}

#endif
