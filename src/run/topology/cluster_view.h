/*
 * Which node of a Redis Cluster serves each slot, out of the answers of several nodes over time.
 *
 * Pure: no clock, nothing is sent. Main thread. Its owner (run/topology/cluster.h) asks nodes CLUSTER NODES,
 * one at a time, and says here which it asks, and what is answered.
 *
 * The rules, for each slot:
 * - The owner with the higher config epoch counts. An older epoch never replaces a newer one, and
 *   of two that are equal the one that is there stays, unless the other end itself says that it
 *   serves the slot.
 * - A node that says of itself that it serves a slot no longer is believed, unless its own epoch is
 *   older than the one known of it.
 * - All else is a challenge: an answer with older epochs, one that no longer knows an owner, one
 *   in which all nodes are unknown (a cluster that was built anew). It replaces everything at once
 *   when most masters of the answer say the same, and every other master that was known has been
 *   asked since, and none of these has contradicted. So a node of the minority side never wins.
 * - A redirect is a hint: it only has other nodes asked, the one that it names first.
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

struct cluster_view *cluster_view_new(void); /* nothing is known; out of memory ends the process */
void cluster_view_free(struct cluster_view *view);

/* ---- what is heard ---- */

/*
 * The node that was asked at `host` has answered this. True: what is known is another now (slots,
 * roles, addresses, slots on their way, what is failed): cluster_view_node and the others say it.
 */
bool cluster_view_take(struct cluster_view *view, const struct cluster_nodes *answer, const char *host,
                       uint64_t now_ns);

/* A node has answered a command for this slot with MOVED, or with ASK, to host:port. */
void cluster_view_note_redirect(struct cluster_view *view, uint16_t slot, struct slice host, uint16_t port,
                                uint64_t now_ns);

/* This node is asked now: whether it answers or not, others come first the next time. */
void cluster_view_note_asked(struct cluster_view *view, uint16_t node, uint64_t now_ns);

/*
 * True while an answer contradicts a redirect, or what is known, and not all nodes have been asked
 * since: another is to be asked without waiting for the next occasion.
 */
bool cluster_view_wants_another(const struct cluster_view *view);

/*
 * Which node is to be asked next: the one that a redirect names, else the one that was asked
 * longest ago, those that are failed last. CLUSTER_NOBODY: none is known with an address.
 */
uint16_t cluster_view_next(const struct cluster_view *view);

/* ---- what is known ---- */

struct cluster_view_node {
    char id[CLUSTER_ID];         /* "": there is no node at this number */
    char host[CLUSTER_HOST];     /* where to dial; "": not known */
    char hostname[CLUSTER_HOST]; /* "": none */
    uint16_t port;               /* 0: not known */
    uint16_t master;             /* of a replica its master's number; else CLUSTER_NOBODY */
    uint64_t epoch;
    uint64_t asked_ns; /* 0: never */
    uint16_t n_slots;  /* that it serves, by all that was heard */
    bool is_replica;
    bool is_failed;    /* most masters say so */
    bool is_candidate; /* only a challenge tells of it: it is only to be asked */
};

/*
 * Nodes have numbers below this. A node keeps its number; a number may be another node's after it
 * has left.
 */
size_t cluster_view_count(const struct cluster_view *view);
const struct cluster_view_node *cluster_view_node(const struct cluster_view *view, size_t number);

/* The node that has announced this address, by digits or by name. CLUSTER_NOBODY: none has. */
uint16_t cluster_view_find(const struct cluster_view *view, struct slice host, uint16_t port);

/* The node that serves the slot, or CLUSTER_NOBODY. */
uint16_t cluster_view_owner(const struct cluster_view *view, uint16_t slot);

/* Whether the slot is on its way, and from or to which other node (CLUSTER_NOBODY: not known). */
enum slot_state cluster_view_state(const struct cluster_view *view, uint16_t slot, uint16_t *other);

/* How many slots have an owner. */
size_t cluster_view_served(const struct cluster_view *view);

#endif
