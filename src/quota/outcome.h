/*
 * The outcome of each call, from the integers that a script returned for n equal calls, and the
 * reply that tells it.
 *
 * quota/reading.h reads the integers. A script decides n calls on one key as if they had come one
 * after the other: the first of them pass, and from the first that is refused on none does. Any
 * thread.
 */
#ifndef WEIR_QUOTA_OUTCOME_H
#define WEIR_QUOTA_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/slice.h"
#include "quota/ask.h"
#include "quota/reading.h"
#include "resp/build.h"

/* The outcome of call k of n, counted from 0. Only for asks with rates. */
void quota_outcome(const struct quota_ask *ask, const int64_t *numbers, uint64_t n, uint64_t k,
                   struct quota_outcome *outcome);

/* The penalty that a key is under after its calls have been decided. */
struct quota_hold {
    int64_t left_ns;  /* how long it still lasts; 0: none */
    uint64_t granted; /* how many tries the rates had room for before it began */
};

/* The same for keys that may be under penalties; `holds`: one for each of several keys, or one. */
bool quota_holds_are_sane(const struct quota_ask *ask, const int64_t *numbers, const struct quota_hold *holds,
                          uint64_t n);
uint64_t quota_granted_held(const struct quota_ask *ask, const int64_t *numbers, const struct quota_hold *holds,
                            uint64_t n);
void quota_outcome_held(const struct quota_ask *ask, const int64_t *numbers, const struct quota_hold *holds, uint64_t n,
                        uint64_t k, struct quota_outcome *outcome);

/* ---- remembering a denial, so that the next call need not ask Redis ---- */

/* How long at most: another weir may have reset the key. */
#define QUOTA_MEMORY_NS NS_PER_S

/* Set *memory from the answer. False: there is no denial to remember; the last call passed, or a smaller one would. */
bool quota_remember(const struct quota_ask *ask, const int64_t *numbers, uint64_t n, struct quota_memory *memory);

/*
 * True if `ask`, on the same key, is still denied `elapsed_ns` after the remembered question was
 * sent: *outcome is set, with times recomputed. False: Redis must be asked; for a window that is so
 * for any other cost than the remembered one.
 */
__attribute__((warn_unused_result)) bool quota_recall(const struct quota_memory *memory, const struct quota_ask *ask,
                                                      uint64_t elapsed_ns, struct quota_outcome *outcome);

/* ---- replies ---- */

/*
 * Five integers, with PARTIAL six, times in ms rounded up, and for several keys which one refused; in RESP3 a map,
 * unless the ask says otherwise (quota_shape). THROTTLE: redis-cell's array, in seconds, in either version.
 */
void quota_reply(struct build *out, const struct quota_ask *ask, const struct quota_outcome *outcome);

/* The reply to ACQUIRE, RENEW and RELEASE; `numbers` are those of holders.lua, `token` is what ACQUIRE asked with. */
void quota_reply_holding(struct build *out, const struct quota_ask *ask, const int64_t *numbers, struct slice token);

#endif
