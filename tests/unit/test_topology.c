/*
 * Tests of topologies: rows and their masters, one reference to each node, and the slots of a
 * cluster.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "upstream/node/topology.h"

/* Nodes here only count their references. */
struct node *node_get(struct node *node)
{
    atomic_fetch_add(&node->holders, 1);
    return node;
}

void node_put(struct node *node)
{
    atomic_fetch_sub(&node->holders, 1);
}

static void test_master_and_replicas(void **state)
{
    (void)state;
    struct node all[3] = {{.holders = 1}, {.holders = 1}, {.holders = 1}};
    struct node *nodes[] = {&all[0], &all[1], &all[2]};
    struct topology *topology = topology_new(nodes, 3);
    assert_int_equal(topology->n_rows, 3);
    assert_int_equal(topology->n_masters, 1);
    assert_null(topology->slots);
    assert_int_equal(topology->pubsub, TOPOLOGY_DEFAULT);
    assert_ptr_equal(topology_default_node(topology), nodes[0]);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(topology->rows[i].master, TOPOLOGY_DEFAULT);
    topology_put(topology_get(topology));
    assert_int_equal(atomic_load(&nodes[0]->holders), 2);
    topology_put(topology);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(atomic_load(&all[i].holders), 1);
}

static unsigned served(const struct slot_map *map)
{
    unsigned n = 0;
    for (uint16_t slot = 0; slot < SLOT_COUNT; slot++)
        n += slot_map_row(map, slot) != SLOT_UNSERVED;
    return n;
}

static void test_cluster(void **state)
{
    (void)state;
    struct node all[3] = {{.holders = 1, .text = "b:7"},
                          {.holders = 1, .text = "a:9"},
                          {.holders = 1, .text = "a:1"}};
    struct node *nodes[] = {&all[0], &all[1], &all[2]};
    struct topology_row rows[] = {
        {.node = nodes[0],
         .master = 0,
         .host = "10.0.0.1",
         .hostname = "one.example",
         .port = 7000},
        {.node = nodes[1], .master = 1, .host = "::1", .port = 7000},
        {.node = nodes[2], .master = 1, .host = "10.0.0.1", .port = 7001}};
    struct slot_map *slots = slot_map_new();
    for (uint16_t slot = 0; slot < SLOT_COUNT; slot++)
        assert_int_equal(slot_map_row(slots, slot), SLOT_UNSERVED);
    slot_map_set(slots, 0, 1);
    slot_map_set(slots, SLOT_COUNT - 1, 0);
    assert_int_equal(served(slots), 2);
    struct topology *topology = topology_new_cluster(rows, 3, 2, slots);
    assert_int_equal(topology->n_rows, 3);
    assert_int_equal(topology->n_masters, 2);
    assert_int_equal(topology->rows[2].master, 1);
    assert_int_equal(topology->pubsub, 1); /* a replica does not count, whatever its address is */
    assert_int_equal(slot_map_row(topology->slots, 0), 1);
    assert_int_equal(slot_map_row(topology->slots, 1), SLOT_UNSERVED);
    assert_string_equal(topology->rows[0].hostname, "one.example");
    assert_string_equal(topology->rows[2].host, "10.0.0.1");
    assert_null(topology->rows[2].hostname);
    assert_int_equal(slot_map_row(topology->slots, SLOT_COUNT - 1), 0);
    slot_map_set(topology->slots, 0, SLOT_UNSERVED);
    assert_int_equal(served(topology->slots), 1);
    topology_put(topology);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(atomic_load(&all[i].holders), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_master_and_replicas),
        cmocka_unit_test(test_cluster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
