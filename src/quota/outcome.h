/*
 * The outcome of each call, from the integers that a script returned for n equal calls, and the
 * reply with that outcome.
 *
 * quota/reading.h interprets the integers. A script decides n calls on one key as if they arrived
 * one after the other. Calls pass until the first refusal, and no call passes after the refusal.
 *
 * Any thread.
 */
#ifndef WEIR_QUOTA_OUTCOME_H
#define WEIR_QUOTA_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/slice.h"
#include "quota/decision_request.h"
#include "quota/reading.h"
#include "resp/build.h"

/* Computes the outcome of call k of n, counted from 0. Only for requests with rates. */
void quota_outcome(const struct decision_request *ask, const int64_t *numbers, uint64_t n,
                   uint64_t k, struct quota_outcome *outcome);

/* The penalty of a key after its calls have been decided. */
struct quota_hold {
    int64_t left_ns;  /* how long the penalty still lasts; 0: no penalty */
    uint64_t granted; /* how many tries the rates had room for before the penalty began */
};

/*
 * As quota_numbers_are_sane, quota_granted and quota_outcome, for keys that may have penalties.
 * `holds` has one element for each key.
 */
bool quota_holds_are_sane(const struct decision_request *ask, const int64_t *numbers,
                          const struct quota_hold *holds, uint64_t n);
uint64_t quota_granted_held(const struct decision_request *ask, const int64_t *numbers,
                            const struct quota_hold *holds, uint64_t n);
void quota_outcome_held(const struct decision_request *ask, const int64_t *numbers,
                        const struct quota_hold *holds, uint64_t n, uint64_t k,
                        struct quota_outcome *outcome);

/* ---- caching a denial: the next call then needs no round trip to Redis ---- */

/*
 * The longest time for which a denial is cached. Chosen: another weir process may reset the key at
 * any time.
 */
#define QUOTA_MEMORY_NS NS_PER_S

/*
 * Sets *memory from the integers. False: no denial can be cached, because the last call passed or a
 * smaller call would pass.
 */
bool quota_remember(const struct decision_request *ask, const int64_t *numbers, uint64_t n,
                    struct quota_memory *memory);

/*
 * True if `ask`, on the same key, is still denied `elapsed_ns` after the cached call was sent:
 * *outcome is set, with times recomputed. False: Redis must decide. A window is always sent to
 * Redis when the cost differs from the cached cost.
 */
__attribute__((warn_unused_result)) bool quota_recall(const struct quota_memory *memory,
                                                      const struct decision_request *ask,
                                                      uint64_t elapsed_ns,
                                                      struct quota_outcome *outcome);

/* ---- replies ---- */

/*
 * Writes five integers, with PARTIAL six. Times are in ms, rounded up. Several keys add the name of
 * the refusing key. RESP3 gets a map, unless the request says otherwise (quota_shape). THROTTLE:
 * redis-cell's array, in seconds, in either protocol version.
 */
void quota_reply(struct build *out, const struct decision_request *ask,
                 const struct quota_outcome *outcome);

/*
 * Writes the reply to ACQUIRE, RENEW and RELEASE. `numbers` are the integers of holders.lua.
 * `token` is the token that ACQUIRE sent.
 */
void quota_reply_holding(struct build *out, const struct decision_request *ask,
                         const int64_t *numbers, struct slice token);

#endif
