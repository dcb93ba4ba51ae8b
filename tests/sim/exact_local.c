#include "tests/sim/exact_local.h"

#define DAY_NS (UINT64_C(86400) * 1000000000)
#define US_NS 1000

void exact_local_ask(struct exact_local *local, int64_t cost)
{
    local->asked += (uint64_t)cost;
}

/* Windows, and their approximation, admit twice the count where two windows meet. */
static struct window_law law_of(const struct asked_key *key, const struct exact_rate *rate)
{
    bool is_funnel = key->kind == EXACT_FUNNEL || key->kind == EXACT_BUCKET;
    uint64_t period_ns = rate->letter == 'd' ? DAY_NS : (uint64_t)rate->period_us * US_NS;
    uint32_t burst = (uint32_t)(is_funnel ? rate->burst : 2 * rate->count);
    return (struct window_law){period_ns, (uint32_t)rate->count, burst, is_funnel, 0};
}

const char *exact_local_passed(struct exact_local *local, const struct asked_key *key, int64_t cost,
                               uint64_t from_ns, uint64_t to_ns)
{
    const struct exact_rate *rates;
    unsigned n = asked_key_rates(key, &rates);
    for (unsigned i = 0; i < n; i++) {
        const struct window_law law = law_of(key, &rates[i]);
        for (int64_t unit = 0; unit < cost; unit++)
            if (!window_admits(&local->passed[i], &law, from_ns, to_ns))
                return "more than its rates let pass while Redis is away";
    }
    return NULL;
}

const char *exact_local_refused(const struct exact_local *local, const struct asked_key *key)
{
    const struct exact_rate *rates;
    unsigned n = asked_key_rates(key, &rates);
    for (unsigned i = 0; i < n; i++)
        if (local->asked > (uint64_t)rates[i].burst)
            return NULL;
    return "refused while Redis is away, and all that was asked has room";
}
