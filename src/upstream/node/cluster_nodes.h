/*
 * Parser for the answer of a Redis Cluster node to CLUSTER NODES. The answer has each node that the
 * answering node knows, and the node that serves each slot.
 *
 * An answer is accepted whole or not at all, and contradictions are named. The parser knows the
 * formats of Redis 6.2 to 8 and Valkey, over TCP and TLS. Answers are bounded by CLUSTER_TEXT_MAX
 * and CLUSTER_NODES_MOST. Safe on any bytes. The parser opens no connection. Any thread.
 *
 * An empty host or `?` is unknown to the answering node. An empty host of the answering node itself
 * is the host that weir connected to. Fields behind the host name, and lines that begin with
 * `vars`, are ignored. Nodes in a handshake have no name yet, and are ignored too. Two nodes that
 * serve slots may not have one address.
 */
#ifndef WEIR_UPSTREAM_CLUSTER_NODES_H
#define WEIR_UPSTREAM_CLUSTER_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "base/why.h"
#include "limit/command/slot.h"

#define CLUSTER_TEXT_MAX (1 << 20) /* chosen: bytes of an answer */
#define CLUSTER_NODES_MOST 1000
#define CLUSTER_ID 41    /* room for the name of a node: 40 hexadecimal digits */
#define CLUSTER_HOST 256 /* room for a host name or an IP address */

#define CLUSTER_NOBODY UINT16_MAX /* no node */

struct cluster_node {
    char id[CLUSTER_ID];
    char master_id[CLUSTER_ID]; /* id of a replica's master, if known; else "" */
    /*
     * an IP address, or a name; "": unknown, or for the answering node: the host that weir
     * connected to
     */
    char host[CLUSTER_HOST];
    char hostname[CLUSTER_HOST]; /* announced with cluster-announce-hostname; "": none */
    uint16_t port;               /* for clients; 0: unknown */
    uint64_t epoch;              /* config epoch of the master, or of the replica's master */
    bool is_master, is_replica;  /* neither: unknown yet */
    bool is_failing;             /* the answering node cannot reach this node (`fail?`) */
    bool is_failed;              /* most masters cannot reach this node (`fail`) */
    bool is_linked;              /* the answering node is connected to this node, or is this node */
    uint16_t n_slots;            /* number of slots that the node serves */
};

/* A migrating or importing slot: the answering node reports only its own moves. */
struct cluster_move {
    uint16_t slot;
    bool is_import;         /* importing to the answering node; else migrating from that node */
    char other[CLUSTER_ID]; /* the other node */
};

struct cluster_nodes {
    struct cluster_node *nodes; /* heap */
    size_t n;
    size_t myself;               /* index of the answering node */
    uint16_t owners[SLOT_COUNT]; /* index of the node that serves each slot, or CLUSTER_NOBODY */
    struct cluster_move *moves;  /* heap */
    size_t n_moves;
};

/* Parse the text of a reply. False: *nodes is empty, and `why` is the reason, for the log. */
__attribute__((warn_unused_result)) bool cluster_nodes_read(struct cluster_nodes *nodes,
                                                            struct slice text, struct why why);

/* The index of the node with this name, or CLUSTER_NOBODY. */
uint16_t cluster_nodes_find(const struct cluster_nodes *nodes, const char *id);

void cluster_nodes_fini(struct cluster_nodes *nodes); /* safe on a zeroed struct */

#endif
