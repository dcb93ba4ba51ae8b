#include "upstream/node/topology.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

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

static struct topology *new_topology(size_t n, size_t n_masters)
{
    assert(n_masters > 0 && n_masters <= n && n < SLOT_UNSERVED);
    struct topology *topology = mem_alloc(sizeof *topology + n * sizeof topology->rows[0]);
    atomic_init(&topology->holders, 1);
    topology->n_rows = n;
    topology->n_masters = n_masters;
    topology->slots = NULL;
    topology->pubsub = TOPOLOGY_DEFAULT;
    return topology;
}

struct topology *topology_new(struct node *const *nodes, size_t n)
{
    struct topology *topology = new_topology(n, 1);
    for (size_t i = 0; i < n; i++)
        topology->rows[i] =
            (struct topology_row){.node = node_get(nodes[i]), .master = TOPOLOGY_DEFAULT};
    return topology;
}

static uint16_t find_pubsub(const struct topology *topology)
{
    uint16_t least = TOPOLOGY_DEFAULT;
    for (uint16_t i = 0; i < topology->n_masters; i++)
        if (strcmp(topology->rows[i].node->text, topology->rows[least].node->text) < 0)
            least = i;
    return least;
}

static const char *topology_copy(const char *text)
{
    return text != NULL ? mem_strndup(text, strlen(text)) : NULL;
}

struct topology *topology_new_cluster(const struct topology_row *rows, size_t n, size_t n_masters,
                                      struct slot_map *slots)
{
    struct topology *topology = new_topology(n, n_masters);
    topology->slots = slots;
    for (size_t i = 0; i < n; i++) {
        assert(i < n_masters ? rows[i].master == i : rows[i].master < n_masters);
        topology->rows[i] = rows[i];
        topology->rows[i].host = topology_copy(rows[i].host);
        topology->rows[i].hostname = topology_copy(rows[i].hostname);
        (void)node_get(rows[i].node);
    }
    topology->pubsub = find_pubsub(topology);
    return topology;
}

struct topology *topology_get(struct topology *topology)
{
    atomic_fetch_add_explicit(&topology->holders, 1, memory_order_relaxed);
    return topology;
}

void topology_put(struct topology *topology)
{
    if (topology == NULL ||
        atomic_fetch_sub_explicit(&topology->holders, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; i < topology->n_rows; i++) {
        node_put(topology->rows[i].node);
        free((char *)(uintptr_t)topology->rows[i].host);
        free((char *)(uintptr_t)topology->rows[i].hostname);
    }
    slot_map_free(topology->slots);
    free(topology);
}
