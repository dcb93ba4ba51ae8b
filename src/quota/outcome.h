/*
 * What became of a question: the outcome of each call that the integers of one answer stand for.
 *
 * Integers only, as in quota/reading.h, by which the integers are read. Any thread. A script decides n calls on one key
 * as if they had come one after the other: the first of them pass, and from the first that is refused on none does.
 */
#ifndef WEIR_QUOTA_OUTCOME_H
#define WEIR_QUOTA_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "quota/ask.h"
#include "quota/reading.h"

/* The outcome of the k-th of n, counted from 0. Only for asks with rates. */
void quota_outcome(const struct quota_ask *ask, const int64_t *numbers, uint64_t n, uint64_t k,
                   struct quota_outcome *outcome);

/* A key may be under a penalty once its calls have been decided. */
struct quota_hold {
    int64_t left_ns;  /* 0: it is not */
    uint64_t granted; /* tries there was room for before it began, or whatever stands against them */
};

/* The same where keys may be under penalties: a hold for each of several keys, or one. */
bool quota_holds_are_sane(const struct quota_ask *ask, const int64_t *numbers, const struct quota_hold *holds,
                          uint64_t n);
uint64_t quota_granted_held(const struct quota_ask *ask, const int64_t *numbers, const struct quota_hold *holds,
                            uint64_t n);
void quota_outcome_held(const struct quota_ask *ask, const int64_t *numbers, const struct quota_hold *holds, uint64_t n,
                        uint64_t k, struct quota_outcome *outcome);

/* ---- a denial is remembered, so that the next call need not ask ---- */

/* Another weir may have reset the key. */
#define QUOTA_MEMORY_NS NS_PER_S

/* False: the last of the n was let through, or a smaller call may be at any time: there is no denial to remember. */
bool quota_remember(const struct quota_ask *ask, const int64_t *numbers, uint64_t n, struct quota_memory *memory);

/*
 * Is `ask`, on the same key of the same database, still denied `elapsed_ns` after the remembered question was sent?
 * Then the outcome tells it, with times recomputed. False: it may pass by now, or nothing is known about it: Redis must
 * be asked. Of another cost than the remembered one a window knows nothing.
 */
__attribute__((warn_unused_result)) bool quota_recall(const struct quota_memory *memory, const struct quota_ask *ask,
                                                      uint64_t elapsed_ns, struct quota_outcome *outcome);

#endif
