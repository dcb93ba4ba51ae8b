#include "limit/rate_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct rate_table *rate_table_new(uint64_t order, const struct slot_rate *known, uint16_t n)
{
    struct rate_table *table = mem_zalloc(1, sizeof *table + n * sizeof table->at[0]);
    atomic_init(&table->references, 1);
    table->order = order;
    table->n = n;
    if (n > 0)
        memcpy(table->at, known, n * sizeof table->at[0]);
    return table;
}

struct rate_table *rate_table_get(struct rate_table *table)
{
    if (table != NULL)
        atomic_fetch_add_explicit(&table->references, 1, memory_order_relaxed);
    return table;
}

void rate_table_put(struct rate_table *table)
{
    if (table != NULL && atomic_fetch_sub_explicit(&table->references, 1, memory_order_acq_rel) == 1)
        free(table);
}

void slot_rate_set(struct slot_rate *slot, const struct limit *limit)
{
    enum unit unit = (enum unit)limit->unit;
    if (limit->action == OVER_DENY || unit_is_gauge(unit))
        return; /* what was owed there before goes on as it did */
    slot->rate = limit->rate;
    slot->departures = limit->departures;
    slot->kind = unit_is_bytes(unit) ? SLOT_BYTES : SLOT_UNITS;
}
