#include "upstream/node/backoff.h"

#include <sys/random.h>

#include "base/clock.h"

#define FIRST_NS (50 * NS_PER_MS)
#define LAST_NS (1000 * NS_PER_MS) /* chosen: a server that is back is noticed within a second */

/* Without jitter all waiting clients would retry at once. */
static void backoff_draw_seed(struct backoff *backoff, uint64_t now_ns)
{
    if (getrandom(&backoff->random, sizeof backoff->random, GRND_NONBLOCK) !=
        (ssize_t)sizeof backoff->random)
        backoff->random = now_ns;
    backoff->random |= 1;
}

static uint64_t next_random(struct backoff *backoff, uint64_t now_ns)
{
    if (backoff->random == 0)
        backoff_draw_seed(backoff, now_ns);
    uint64_t x = backoff->random;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    backoff->random = x;
    return x;
}

void backoff_fail(struct backoff *backoff, uint64_t now_ns)
{
    uint64_t delay = LAST_NS;
    if (backoff->failures < 5 && (FIRST_NS << backoff->failures) < LAST_NS)
        delay = FIRST_NS << backoff->failures;
    backoff->failures++;
    uint64_t half = delay / 2;
    backoff->due_ns = now_ns + half + next_random(backoff, now_ns) % half;
}

void backoff_reset(struct backoff *backoff)
{
    backoff->failures = 0;
    backoff->due_ns = 0;
}
