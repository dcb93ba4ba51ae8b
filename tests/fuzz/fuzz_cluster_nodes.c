/*
 * Any bytes as the answer of a node to CLUSTER NODES. The answer is refused, or the parsed nodes
 * are consistent. The view that is made from such answers is consistent too.
 */
#include "run/topology/cluster_view.h"
#include "upstream/node/cluster_nodes.h"

#include "pieces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_nodes(const struct cluster_nodes *nodes)
{
    size_t n_served = 0;
    REQUIRE(nodes->n > 0 && nodes->n <= CLUSTER_NODES_MOST && nodes->myself < nodes->n);
    for (size_t i = 0; i < nodes->n; i++) {
        const struct cluster_node *node = &nodes->nodes[i];
        REQUIRE(strlen(node->id) == CLUSTER_ID - 1);
        REQUIRE(cluster_nodes_find(nodes, node->id) == i);
        REQUIRE(memchr(node->host, '\0', sizeof node->host) != NULL);
        REQUIRE(memchr(node->hostname, '\0', sizeof node->hostname) != NULL);
        REQUIRE(node->host[0] == '\0' || node->port > 0);
        REQUIRE(node->n_slots == 0 || node->is_master);
        n_served += node->n_slots;
    }
    for (size_t slot = 0; slot < SLOT_COUNT; slot++)
        if (nodes->owners[slot] != CLUSTER_NOBODY) {
            REQUIRE(nodes->owners[slot] < nodes->n);
            n_served--;
        }
    REQUIRE(n_served == 0);
    for (size_t i = 0; i < nodes->n_moves; i++)
        REQUIRE(nodes->moves[i].slot < SLOT_COUNT &&
                strlen(nodes->moves[i].other) == CLUSTER_ID - 1);
}

static void check_view(const struct cluster_view *view)
{
    size_t n_served = 0;
    uint16_t next = cluster_view_next(view), other;
    REQUIRE(next == CLUSTER_NOBODY || cluster_view_node(view, next)->port != 0);
    for (uint16_t slot = 0; slot < SLOT_COUNT; slot++) {
        uint16_t owner = cluster_view_owner(view, slot);
        (void)cluster_view_state(view, slot, &other);
        REQUIRE(other == CLUSTER_NOBODY || cluster_view_node(view, other)->id[0] != '\0');
        if (owner == CLUSTER_NOBODY)
            continue;
        REQUIRE(owner < cluster_view_count(view));
        REQUIRE(cluster_view_node(view, owner)->id[0] != '\0' &&
                !cluster_view_node(view, owner)->is_candidate);
        n_served++;
    }
    REQUIRE(n_served == cluster_view_served(view));
}

/* Takes the parts of the input, each up to a NUL, as the answers of successive nodes of a view. */
static void take(struct cluster_view *view, const uint8_t *data, size_t n, uint64_t now_ns)
{
    char why[256];
    struct cluster_nodes nodes;
    char *copy = piece_copy(data, n);
    if (cluster_nodes_read(&nodes, slice_of(copy, n), (struct why){why, sizeof why})) {
        check_nodes(&nodes);
        cluster_view_note_asked(view, cluster_view_next(view), now_ns);
        (void)cluster_view_take(view, &nodes, "10.0.0.9", now_ns);
        (void)cluster_view_wants_another(view);
        check_view(view);
        cluster_nodes_fini(&nodes);
    } else {
        REQUIRE(nodes.nodes == NULL && why[0] != '\0');
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct cluster_view *view = cluster_view_new();
    uint64_t now_ns = 1000000000;
    for (size_t at = 0; at < n;) {
        const uint8_t *end = memchr(data + at, 0, n - at);
        size_t len = end != NULL ? (size_t)(end - (data + at)) : n - at;
        take(view, data + at, len, now_ns);
        now_ns += 100000000;
        at += len + 1;
    }
    cluster_view_free(view);
    return 0;
}
