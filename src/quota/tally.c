#include "quota/tally.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

struct named_tally *named_tally_new(struct slice name)
{
    struct named_tally *tally = mem_zalloc(1, sizeof *tally);
    atomic_init(&tally->holders, 1);
    snprintf(tally->name, sizeof tally->name, "%.*s", (int)name.len, name.at);
    return tally;
}

struct named_tally *named_tally_get(struct named_tally *tally)
{
    atomic_fetch_add_explicit(&tally->holders, 1, memory_order_relaxed);
    return tally;
}

void named_tally_put(struct named_tally *tally)
{
    if (tally != NULL && atomic_fetch_sub_explicit(&tally->holders, 1, memory_order_acq_rel) == 1)
        free(tally);
}

void named_tally_add(struct named_tally *tally, enum tally_result result, uint64_t ns)
{
    atomic_fetch_add_explicit(&tally->results[result], 1, memory_order_relaxed);
    if (ns > 0)
        histo_add_shared(&tally->times, ns);
}

uint64_t named_tally_asked(const struct named_tally *tally)
{
    uint64_t sum = 0;
    for (int r = 0; r < TALLY_RESULTS; r++)
        sum += count_read(&tally->results[r]);
    return sum;
}
