#include "upstream/fair/contention.h"

#include <stdlib.h>

#include "base/mem.h"

struct contention *contention_new(void)
{
    struct contention *contention = mem_zalloc(1, sizeof *contention);
    atomic_init(&contention->holders, 1);
    return contention;
}

struct contention *contention_get(struct contention *contention)
{
    atomic_fetch_add_explicit(&contention->holders, 1, memory_order_relaxed);
    return contention;
}

void contention_put(struct contention *contention)
{
    if (atomic_fetch_sub_explicit(&contention->holders, 1, memory_order_acq_rel) == 1)
        free(contention);
}
