/*
 * What named limits count in weir's own memory while Redis is away: the same questions, answered by this process alone.
 *
 * Funnels and buckets are GCRA, as exact as in Redis; fixed windows are counted in; a sliding window, exact or not, is
 * the two counters of approx.lua. All workers share one: shards, each under its own lock and with its own part of the
 * memory. When that is full of what still counts there is no answer, for what is not counted must not pass.
 */
#ifndef WEIR_QUOTA_LOCAL_H
#define WEIR_QUOTA_LOCAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "quota/ask.h"
#include "quota/outcome.h"

#define LOCAL_BYTES_MAX ((size_t)16 << 20) /* of all that is counted: some 100,000 keys */

struct local;

/* The time of a call: monotonic, for debts; and of the calendar, for windows, in us since 1970. */
struct local_time {
    uint64_t now_ns;
    int64_t unix_us;
};

/* Ends the process when there is no memory. */
struct local *local_new(void);
void local_free(struct local *local);

/*
 * Decide one call of an algorithm with rates on a key, as it would be called in Redis, that has this hash; or of several,
 * all or nothing, with a hash for each. False: there is no room to count it in, and nothing is decided.
 */
__attribute__((warn_unused_result)) bool local_decide(struct local *local, const struct quota_ask *ask,
                                                      const uint64_t *hashes, struct local_time time,
                                                      struct quota_outcome *outcome);

/* What is counted now, in bytes. */
size_t local_bytes(const struct local *local);

#endif
