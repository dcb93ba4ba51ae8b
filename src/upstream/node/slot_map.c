#include "upstream/node/slot_map.h"

#include <stdlib.h>

#include "base/mem.h"

struct slot_map *slot_map_new(void)
{
    struct slot_map *map = mem_zalloc(1, sizeof *map);
    for (size_t slot = 0; slot < SLOT_COUNT; slot++)
        atomic_init(&map->rows[slot], SLOT_UNSERVED);
    return map;
}

void slot_map_free(struct slot_map *map)
{
    free(map);
}

size_t slot_map_served(const struct slot_map *map)
{
    size_t n = 0;
    for (uint16_t slot = 0; slot < SLOT_COUNT; slot++)
        n += slot_map_row(map, slot) != SLOT_UNSERVED;
    return n;
}
