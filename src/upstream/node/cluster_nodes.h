/*
 * What one node of a Redis Cluster answers to CLUSTER NODES, read: each node that it knows, and
 * which serves each slot.
 *
 * Read whole or not at all: what contradicts itself is named. Formats of Redis 6.2 to 8 and Valkey,
 * over TCP and TLS. Bounded by CLUSTER_TEXT_MAX and CLUSTER_NODES_MOST. Safe on any bytes. Nothing
 * is dialled here. Any thread.
 *
 * Decisions. A host that is empty or `?` is one that the node does not know: only of the node
 * itself it is the host that was asked. Fields behind the host name, and lines that begin with
 * `vars`, are passed over. Nodes in a handshake have no name yet, and are passed over too. Two
 * nodes that serve slots may not have one address.
 */
#ifndef WEIR_UPSTREAM_CLUSTER_NODES_H
#define WEIR_UPSTREAM_CLUSTER_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/why.h"
#include "limit/command/slot.h"

#define CLUSTER_TEXT_MAX (1 << 20) /* bytes of an answer */
#define CLUSTER_NODES_MOST 1000
#define CLUSTER_ID 41    /* room for the name of a node: 40 hexadecimal digits */
#define CLUSTER_HOST 256 /* room for a name or the digits of an address */

#define CLUSTER_NOBODY UINT16_MAX /* in place of a node */

struct cluster_node {
    char id[CLUSTER_ID];
    char master_id[CLUSTER_ID]; /* of a replica, where it is known; else "" */
    char host
        [CLUSTER_HOST]; /* digits of an address, or a name; "": not known, or of the node itself where it was asked */
    char hostname[CLUSTER_HOST]; /* that it announces besides (cluster-announce-hostname); "": none */
    uint16_t port;               /* where clients connect; 0: not known */
    uint64_t epoch;              /* its config epoch; a replica's is its master's */
    bool is_master, is_replica;  /* neither: it has not said yet */
    bool is_failing;             /* the node that answers does not reach it (`fail?`) */
    bool is_failed;              /* most masters do not reach it (`fail`) */
    bool is_linked;              /* the node that answers has a connection to it, or is it */
    uint16_t n_slots;            /* that it serves */
};

/* A slot on its way, as its two ends say: only the node that answers tells of its own. */
struct cluster_move {
    uint16_t slot;
    bool is_import;         /* it comes to the node that answers; else it leaves that */
    char other[CLUSTER_ID]; /* the other end */
};

struct cluster_nodes {
    struct cluster_node *nodes; /* heap */
    size_t n;
    size_t myself;               /* which of them has answered */
    uint16_t owners[SLOT_COUNT]; /* which of them serves each slot, or CLUSTER_NOBODY */
    struct cluster_move *moves;  /* heap */
    size_t n_moves;
};

/*
 * Read the text of a reply. False: *nodes is empty, and `why` says what is wrong with it, for the
 * log.
 */
__attribute__((warn_unused_result)) bool cluster_nodes_read(struct cluster_nodes *nodes, struct slice text,
                                                            struct why why);

/* Which of them has this name, or CLUSTER_NOBODY. */
uint16_t cluster_nodes_find(const struct cluster_nodes *nodes, const char *id);

void cluster_nodes_fini(struct cluster_nodes *nodes); /* safe on zeroed */

#endif
