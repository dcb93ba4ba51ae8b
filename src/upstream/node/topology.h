/*
 * The servers of the upstream at one moment, and the server of each slot of a Redis Cluster.
 *
 * A topology is immutable, except for its slots, and for facts that its nodes learn. A redirect may
 * assign a slot to another row at once.
 *
 * Reference-counted by workers and the main thread; any thread. One server is a topology of one
 * row. A master and its replicas: row 0 is the master. A cluster: rows 0 to n_masters - 1 are the
 * masters that serve slots. Replicas follow the masters, if clients may read from replicas.
 */
#ifndef WEIR_UPSTREAM_TOPOLOGY_H
#define WEIR_UPSTREAM_TOPOLOGY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "limit/command/slot.h"
#include "upstream/node/node.h"

/* ---- slots ---- */

#define SLOT_UNSERVED UINT16_MAX /* in place of a row: no node serves the slot */

enum slot_state {
    SLOT_STABLE,
    SLOT_MIGRATING, /* the slot's owner says that the slot's keys move to another node */
    SLOT_IMPORTING, /* only the importing node says that the slot's keys move */
};

/*
 * The row of a topology that serves each slot of a Redis Cluster, and the slots that migrate.
 *
 * Entries are read and written by any thread: a worker that receives MOVED changes the slot's entry
 * at once. A new topology follows later. States are set before the topology is published, then
 * immutable.
 */
struct slot_map {
    _Atomic uint32_t version; /* incremented before any entry changes */
    _Atomic uint16_t rows[SLOT_COUNT];
    uint8_t states[SLOT_COUNT]; /* enum slot_state; only shown to operators */
};

/*
 * Returns a map in which no slot is served, and all slots are stable. Out of memory ends the
 * process.
 */
struct slot_map *slot_map_new(void);
void slot_map_free(struct slot_map *map); /* NULL is allowed */

/* The row that serves the slot, or SLOT_UNSERVED. */
static inline uint16_t slot_map_row(const struct slot_map *map, uint16_t slot)
{
    return atomic_load_explicit(&map->rows[slot], memory_order_acquire);
}

/* Returns the version. Earlier results of slot_map_row stay valid while the version is equal. */
static inline uint32_t slot_map_version(const struct slot_map *map)
{
    return atomic_load_explicit(&map->version, memory_order_relaxed);
}

static inline void slot_map_set(struct slot_map *map, uint16_t slot, uint16_t row)
{
    atomic_fetch_add_explicit(&map->version, 1, memory_order_relaxed);
    atomic_store_explicit(&map->rows[slot], row, memory_order_release);
}

/* ---- servers ---- */

struct topology_row {
    struct node *node; /* one reference; each node is in one row only */
    uint16_t master;   /* row of the node's master, or a master's own row */
    /*
     * Of a cluster: the node's announced host and name, as used in redirects. Copied, heap; NULL:
     * not announced.
     */
    const char *host, *hostname;
    uint16_t port;
};

struct topology {
    _Atomic unsigned holders;
    /* at least one; replicas stand behind the masters, if clients may read from replicas */
    size_t n_rows;
    size_t n_masters;       /* at least one; 1 without a cluster */
    struct slot_map *slots; /* owned; NULL: no cluster */
    uint16_t pubsub;        /* the row of classic pub/sub; TOPOLOGY_DEFAULT without a cluster */
    struct topology_row rows[];
};

/*
 * Returns a topology of `n` > 0 nodes, with a reference to each node. The first node is the master
 * of all. Out of memory ends the process.
 */
struct topology *topology_new(struct node *const *nodes, size_t n);

/*
 * Returns a topology of a cluster. The first n_masters of the rows are masters, 0 < n_masters <= n
 * < SLOT_UNSERVED. Takes over `slots`: each entry is below n_masters or SLOT_UNSERVED. Out of
 * memory ends the process.
 */
struct topology *topology_new_cluster(const struct topology_row *rows, size_t n, size_t n_masters,
                                      struct slot_map *slots);

struct topology *topology_get(struct topology *topology); /* one more reference; any thread */
void topology_put(struct topology *topology);             /* NULL is allowed */

/*
 * The default node, the first row: clients log in at this node, and commands without another node
 * go to this node. With a master and replicas the default node is the master; without a master, a
 * node without an address. In a cluster the default node stays one master for as long as that
 * master serves slots.
 */
#define TOPOLOGY_DEFAULT 0

/*
 * Classic pub/sub (SUBSCRIBE, PSUBSCRIBE, PUBLISH, PUBSUB) of all clients of a cluster is at one
 * master. Counts and the order of messages are then the same as with one server. The choice is the
 * master with the smallest address as text, among the masters that serve slots. The rule needs no
 * coordination: workers, and other instances of weir that see the same addresses, choose alike.
 */

static inline struct node *topology_default_node(const struct topology *topology)
{
    return topology->rows[TOPOLOGY_DEFAULT].node;
}

#endif
