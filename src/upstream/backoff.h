/*
 * When to try again: twice as long after each failure, up to a bound, with jitter so that many do not come at once.
 */
#ifndef WEIR_UPSTREAM_BACKOFF_H
#define WEIR_UPSTREAM_BACKOFF_H

#include <stdint.h>

struct backoff {
    uint64_t random; /* xorshift state; 0: not seeded yet */
    uint64_t due_ns; /* 0: nothing is due */
    uint32_t failures;
};

/* One more failure at `now_ns`; sets due_ns. */
void backoff_fail(struct backoff *backoff, uint64_t now_ns);
void backoff_reset(struct backoff *backoff);

#endif
