/*
 * Which row of a topology serves each slot of a Redis Cluster, and which slots are on their way to
 * another node.
 *
 * Owned by its topology (upstream/node/topology.h). Entries are read and written by any thread: a worker
 * that was told MOVED changes the slot's entry at once, and the topology that replaces this one
 * follows. States are set before the topology is published, then immutable.
 */
#ifndef WEIR_UPSTREAM_SLOT_MAP_H
#define WEIR_UPSTREAM_SLOT_MAP_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "limit/command/slot.h"

#define SLOT_UNSERVED UINT16_MAX /* in place of a row: no node serves the slot */

enum slot_state {
    SLOT_STABLE,
    SLOT_MIGRATING, /* its owner says that its keys move to another node */
    SLOT_IMPORTING, /* only another node says that it takes the slot's keys */
};

struct slot_map {
    _Atomic uint32_t version; /* another before any entry changes */
    _Atomic uint16_t rows[SLOT_COUNT];
    uint8_t states[SLOT_COUNT]; /* enum slot_state; only shown to operators */
};

/* No slot is served, all are stable. Out of memory ends the process. */
struct slot_map *slot_map_new(void);
void slot_map_free(struct slot_map *map); /* safe on NULL */

/* How many slots a node serves. */
size_t slot_map_served(const struct slot_map *map);

/* The row that serves the slot, or SLOT_UNSERVED. */
static inline uint16_t slot_map_row(const struct slot_map *map, uint16_t slot)
{
    return atomic_load_explicit(&map->rows[slot], memory_order_acquire);
}

/* What slot_map_row has said before this was read holds as long as it is the same. */
static inline uint32_t slot_map_version(const struct slot_map *map)
{
    return atomic_load_explicit(&map->version, memory_order_relaxed);
}

static inline void slot_map_set(struct slot_map *map, uint16_t slot, uint16_t row)
{
    atomic_fetch_add_explicit(&map->version, 1, memory_order_relaxed);
    atomic_store_explicit(&map->rows[slot], row, memory_order_release);
}

#endif
