/*
 * Decides named limits in weir's own memory while Redis is away: the same questions, answered by this process alone.
 *
 * Funnels and buckets are GCRA, as exact as in Redis; so are fixed windows; sliding windows, exact ones too, are the
 * two counters of approx.lua. One for all workers: shards, each with its own lock and its own part of the memory. When
 * that is full of keys that still count there is no decision, for what is not counted must not pass.
 */
#ifndef WEIR_QUOTA_LOCAL_H
#define WEIR_QUOTA_LOCAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "quota/ask.h"
#include "quota/outcome.h"

#define LOCAL_BYTES_MAX ((size_t)16 << 20) /* memory for all keys: some 100,000 */

struct local;

/* The time of a call: monotonic, for debts; and unix time in us, for windows. */
struct local_time {
    uint64_t now_ns;
    int64_t unix_us;
};

/* Ends the process when there is no memory. */
struct local *local_new(void);
void local_free(struct local *local);

/*
 * Decide one call with rates on one key; or on several, all or nothing. The asks' keys are those in Redis, with prefix;
 * `hashes` has the hash of each. False: there is no room to count it; nothing is decided or changed.
 */
__attribute__((warn_unused_result)) bool local_decide(struct local *local, const struct quota_ask *ask,
                                                      const uint64_t *hashes, struct local_time time,
                                                      struct quota_outcome *outcome);

/* How many bytes of memory the keys take now. */
size_t local_bytes(const struct local *local);

#endif
