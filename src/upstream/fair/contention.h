/*
 * Who else sends to a node, as all workers know it: whether more than one subject has sent to it lately, or more than
 * one client of a subject; how much weight waits for its share, and how far the node is.
 *
 * Any thread; atomics only, and written seldom: what is known already is not said again. While a client sends alone
 * each of its reads costs two comparisons. Counted by references: a node shares it with the node that takes its place.
 */
#ifndef WEIR_UPSTREAM_CONTENTION_H
#define WEIR_UPSTREAM_CONTENTION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * After another has sent, for so long everybody is taken to be not alone: who sends now and then must find the queue
 * short when it comes, not shorten it by coming.
 */
#define CONTENTION_NS (1 * NS_PER_S)

/* Whether more than one of a kind has sent lately. */
struct mixture {
    _Atomic uintptr_t last;    /* who has sent last, as far as is known; only to be compared */
    _Atomic uint64_t until_ns; /* until when they are taken to be several */
};

struct contention {
    _Atomic unsigned holders;
    struct mixture subjects;
    struct mixture riders;
    _Atomic uint64_t weights; /* of the subjects that wait for their share, on all workers */
    _Atomic uint64_t trip_ns; /* to the farthest node that shares it, the quickest of the last seconds; 0: not known */
};

/* With one reference. Out of memory ends the process. */
struct contention *contention_new(void);
struct contention *contention_get(struct contention *contention);
void contention_put(struct contention *contention);

static inline bool mixture_is(const struct mixture *mixture, uint64_t now_ns)
{
    return now_ns < atomic_load_explicit(&mixture->until_ns, memory_order_relaxed);
}

/* This one sends now. Are they several? */
static inline bool mixture_note(struct mixture *mixture, const void *who, uint64_t now_ns)
{
    uint64_t until_ns = atomic_load_explicit(&mixture->until_ns, memory_order_relaxed);
    if (now_ns + CONTENTION_NS / 2 < until_ns)
        return true;
    if (atomic_load_explicit(&mixture->last, memory_order_relaxed) == (uintptr_t)who)
        return now_ns < until_ns;
    bool is_first = atomic_exchange_explicit(&mixture->last, (uintptr_t)who, memory_order_relaxed) == 0;
    if (is_first)
        return false;
    atomic_store_explicit(&mixture->until_ns, now_ns + CONTENTION_NS, memory_order_relaxed);
    return true;
}

#endif
