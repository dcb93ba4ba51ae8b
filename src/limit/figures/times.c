#include "limit/figures/times.h"

#define NS_IN_US 1000

static uint64_t span(uint64_t from_ns, uint64_t to_ns)
{
    return to_ns > from_ns ? to_ns - from_ns : 0;
}

static void count(struct times *times, const struct timed *timed, uint64_t now_ns)
{
    uint64_t end_ns = now_ns > timed->answered_ns ? now_ns : timed->answered_ns;
    uint64_t request_ns = span(timed->arrived_ns, end_ns);
    uint64_t upstream_ns = timed->sent_ns != 0 ? span(timed->sent_ns, timed->answered_ns) : 0;
    uint64_t others_ns = upstream_ns + ((uint64_t)timed->waited_us + timed->share_us) * NS_IN_US;
    histo_add(&times->request, request_ns, timed->n);
    histo_add(&times->overhead, span(others_ns, request_ns), timed->n);
    if (timed->sent_ns != 0)
        histo_add(&times->upstream, upstream_ns, timed->n);
    if (timed->waited_us == 0)
        return;
    histo_add(&times->held, request_ns, timed->n);
    histo_add(&times->released, span(timed->waited_us * (uint64_t)NS_IN_US, request_ns), timed->n);
}

void answered_count(struct answered *answered, struct times *times, uint64_t now_ns)
{
    for (unsigned i = 0; i < answered->n; i++)
        count(times, &answered->entries[i], now_ns);
    answered->n = 0;
}
