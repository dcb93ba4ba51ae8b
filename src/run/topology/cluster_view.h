/*
 * Which node of a Redis Cluster serves each slot, from the answers of several nodes over time.
 *
 * Pure: no clock, no I/O. Main thread. The caller (run/topology/cluster.c) asks nodes CLUSTER
 * NODES, one at a time. The caller tells the view which node is asked, and passes the answers.
 *
 * The rules, for each slot:
 * - The owner with the higher config epoch wins. An older epoch never replaces a newer one. With
 *   equal epochs the known owner stays, unless the other node itself says that it serves the slot.
 * - A node that says that it no longer serves a slot is believed, unless its own epoch is older
 *   than the known epoch.
 * - Any other difference is a challenge: an answer with older epochs, without a known owner, or
 *   with unknown nodes only. Only unknown nodes mean a cluster that was built anew. A challenge
 *   replaces the whole view on three conditions. Most masters of the answer confirm the challenge.
 *   Every other known master has been asked since. None of the other masters contradicts. A node on
 *   the minority side therefore never wins.
 * - A redirect is a hint: it only causes questions to other nodes, first to the node that it names.
 */
#ifndef WEIR_RUN_CLUSTER_VIEW_H
#define WEIR_RUN_CLUSTER_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "upstream/node/cluster_nodes.h"
#include "upstream/node/topology.h"

struct cluster_view;

struct cluster_view *cluster_view_new(void); /* an empty view; out of memory ends the process */
void cluster_view_free(struct cluster_view *view);

/* ---- input ---- */

/*
 * Takes an answer of the node that was asked at `host`. True if the view has changed: slots, roles,
 * addresses, migrations or failed nodes.
 */
bool cluster_view_take(struct cluster_view *view, const struct cluster_nodes *answer,
                       const char *host, uint64_t now_ns);

/* Notes that a node has answered a command for this slot with MOVED or ASK to host:port. */
void cluster_view_note_redirect(struct cluster_view *view, uint16_t slot, struct slice host,
                                uint16_t port, uint64_t now_ns);

/*
 * Notes that this node is asked now. Other nodes are asked before this node is asked again, whether
 * or not this node answers.
 */
void cluster_view_note_asked(struct cluster_view *view, uint16_t node, uint64_t now_ns);

/*
 * True while an answer contradicts a redirect or the view, and not all nodes have been asked since.
 * The next question should then be sent as soon as the pace allows.
 */
bool cluster_view_wants_another(const struct cluster_view *view);

/*
 * Returns the node to ask next: the node that a redirect names, else the node that was asked
 * longest ago, failed nodes last. CLUSTER_NOBODY: no node with an address is known.
 */
uint16_t cluster_view_next(const struct cluster_view *view);

/* ---- the present view ---- */

struct cluster_view_node {
    char id[CLUSTER_ID];         /* "": no node has this number */
    char host[CLUSTER_HOST];     /* where to dial; "": unknown */
    char hostname[CLUSTER_HOST]; /* "": none */
    uint16_t port;               /* 0: unknown */
    uint16_t master;             /* for a replica its master's number; else CLUSTER_NOBODY */
    uint64_t epoch;
    uint64_t asked_ns; /* 0: never */
    uint16_t n_slots;  /* slots that the node serves, by all answers */
    bool is_replica;
    bool is_failed;    /* most masters say that the node has failed */
    bool is_candidate; /* only a challenge names the node: the node is asked, and not used */
};

/*
 * Returns a number above all node numbers. A node keeps its number. The number of a node that has
 * left may be reused.
 */
size_t cluster_view_count(const struct cluster_view *view);

/* Returns the node with this number, which is below cluster_view_count. */
const struct cluster_view_node *cluster_view_node(const struct cluster_view *view, size_t number);

/* Returns the node that has announced this address, as IP address or name. CLUSTER_NOBODY: none. */
uint16_t cluster_view_find(const struct cluster_view *view, struct slice host, uint16_t port);

/* Returns the node that serves the slot, or CLUSTER_NOBODY. */
uint16_t cluster_view_owner(const struct cluster_view *view, uint16_t slot);

/*
 * Returns whether the slot migrates. *other: the other node of the migration; CLUSTER_NOBODY:
 * unknown.
 */
enum slot_state cluster_view_state(const struct cluster_view *view, uint16_t slot, uint16_t *other);

/* Returns how many slots have an owner. */
size_t cluster_view_served(const struct cluster_view *view);

#endif
