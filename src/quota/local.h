/*
 * Decides named limits in this process's memory while Redis is unavailable.
 *
 * Funnels and buckets are GCRA, as exact as in Redis. Fixed windows are exact too. Sliding windows,
 * exact ones included, use the two counters of approx.lua. If the memory is full of keys that still
 * count, a call is not decided: a call that is not counted must not pass.
 *
 * All workers share one struct local, which consists of shards, each with its own lock and its own
 * part of the memory.
 */
#ifndef WEIR_QUOTA_LOCAL_H
#define WEIR_QUOTA_LOCAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "quota/decision_request.h"
#include "quota/outcome.h"

#define LOCAL_BYTES_MAX ((size_t)16 << 20) /* bytes for all keys: some 100,000; chosen */

struct local;

/* The time of a call: monotonic, for debts; and unix time in us, for windows. */
struct local_time {
    uint64_t now_ns;
    int64_t unix_us;
};

/* Ends the process when out of memory. */
struct local *local_new(void);
void local_free(struct local *local);

/*
 * Decides one call with rates, on one key or on several, all or nothing. The key of each request is
 * the key in Redis, with prefix. `hashes` has the hash of each key. False: the memory has no room
 * to count the call. Then nothing is decided or changed.
 */
__attribute__((warn_unused_result)) bool local_decide(struct local *local,
                                                      const struct decision_request *ask,
                                                      const uint64_t *hashes,
                                                      struct local_time time,
                                                      struct quota_outcome *outcome);

/* Returns how many bytes of memory the keys take now. */
size_t local_bytes(const struct local *local);

#endif
