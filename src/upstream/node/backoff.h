/*
 * When to retry after failures: the delay doubles with each failure, up to a bound. Because of
 * jitter, parts that failed together do not retry together.
 *
 * Zeroed: no failure yet. Used by its owner's thread only.
 */
#ifndef WEIR_UPSTREAM_BACKOFF_H
#define WEIR_UPSTREAM_BACKOFF_H

#include <stdint.h>

struct backoff {
    uint64_t random;   /* xorshift state; 0: not seeded yet */
    uint64_t due_ns;   /* time of the next attempt; 0: no failure since backoff_reset */
    uint32_t failures; /* number of failures since backoff_reset */
};

/* Note a failure at `now_ns`; sets due_ns. */
void backoff_fail(struct backoff *backoff, uint64_t now_ns);
void backoff_reset(struct backoff *backoff);

#endif
