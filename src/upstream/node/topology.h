/*
 * Which servers the upstream consists of at one moment, and which of them serves each slot of a Redis Cluster.
 *
 * Immutable but for what the nodes themselves learn, and for slots, which a redirect may give to another row at once.
 *
 * Counted by references, which workers and the main thread have; any thread. One server is a
 * topology of one row. A master and its replicas: row 0 is the master. A cluster: rows 0 to
 * n_masters - 1 are the masters that serve slots, and behind them stand replicas, where clients may
 * read from these.
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
    SLOT_MIGRATING, /* its owner says that its keys move to another node */
    SLOT_IMPORTING, /* only another node says that it takes the slot's keys */
};

/*
 * Which row of a topology serves each slot of a Redis Cluster, and which slots are on their way to another node.
 *
 * Entries are read and written by any thread: a worker that was told MOVED changes the slot's entry at once, and the
 * topology that replaces this one follows. States are set before the topology is published, then immutable.
 */
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

/* ---- servers ---- */

struct topology_row {
    struct node *node; /* one reference; no two rows have the same */
    uint16_t master;   /* the row of its master; of a master its own */
    /* Of a cluster: as the node is announced, which redirects repeat. Copied, heap; NULL: not announced. */
    const char *host, *hostname;
    uint16_t port;
};

struct topology {
    _Atomic unsigned holders;
    size_t n_rows;          /* at least one; behind the masters they are replicas, where clients may read from these */
    size_t n_masters;       /* at least one; 1 unless it is a cluster */
    struct slot_map *slots; /* owned; NULL: no cluster */
    uint16_t pubsub;        /* the row where classic pub/sub is; TOPOLOGY_HOME unless it is a cluster */
    struct topology_row rows[];
};

/*
 * Of these nodes, each with a reference of its own; n > 0. All belong to the first. Out of memory
 * ends the process.
 */
struct topology *topology_new(struct node *const *nodes, size_t n);

/*
 * Of a cluster: the first n_masters of the rows are masters, 0 < n_masters <= n < SLOT_UNSERVED.
 * Takes over `slots`: each entry is below n_masters or SLOT_UNSERVED. Out of memory ends the
 * process.
 */
struct topology *topology_new_cluster(const struct topology_row *rows, size_t n, size_t n_masters,
                                      struct slot_map *slots);

struct topology *topology_get(struct topology *topology); /* one more holder; any thread */
void topology_put(struct topology *topology);             /* safe on NULL */

/*
 * The home node, the first row: where clients log in, and where commands go for which no other node
 * can be told. Of a master and its replicas it is the master; while there is none, a node without
 * an address. Of a cluster it is the same master as before, as long as that serves slots.
 */
#define TOPOLOGY_HOME 0

/*
 * Classic pub/sub (SUBSCRIBE, PSUBSCRIBE, PUBLISH, PUBSUB) of all a cluster's clients is at one
 * master, so that the counts and the order of messages are those of one server: of the masters that
 * serve slots the one with the least address as text. The rule needs no agreement: workers, and
 * other weirs that the cluster tells the same addresses, choose alike.
 */

static inline struct node *topology_home(const struct topology *topology)
{
    return topology->rows[TOPOLOGY_HOME].node;
}

#endif
