/*
 * When to try again after failures: the pause is twice as long after each one, up to a bound, with jitter so that many
 * who failed together do not try together.
 *
 * Zeroed: no failure yet. Used by its owner's thread only.
 */
#ifndef WEIR_UPSTREAM_BACKOFF_H
#define WEIR_UPSTREAM_BACKOFF_H

#include <stdint.h>

struct backoff {
    uint64_t random;   /* xorshift state; 0: not seeded yet */
    uint64_t due_ns;   /* when to try again; 0: nothing has failed since backoff_reset */
    uint32_t failures; /* since then */
};

/* One more failure at `now_ns`; sets due_ns. */
void backoff_fail(struct backoff *backoff, uint64_t now_ns);
void backoff_reset(struct backoff *backoff);

#endif
