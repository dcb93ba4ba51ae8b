/*
 * At which node each batch of a worker is asked, and when: at once, behind an older one, or again.
 *
 * On a cluster the keys of a batch have one slot, and it goes to the node that serves the slot;
 * else all go to the home node. Of a slot that no node serves the home node is asked, which says
 * CLUSTERDOWN. Invariant: of one slot no batch is sent while an older one is under way to another
 * node or waits for that; and on a cluster none while one is under way that was refused before. So
 * what is asked about one key stays in order.
 *
 * A batch that Redis has not run is held, and asked again until it is decided or its wait is over:
 *
 *   READONLY, LOADING, MASTERDOWN   each 50 ms until failover-wait is over, at another node if that is the master by
 *                                   then
 *   CLUSTERDOWN                     after 10 .. 100 ms until failover-wait is over; the topology is asked for
 *   MOVED                           at once at the node that it names, which serves the slot from now on; the topology
 *                                   is asked for. An address that is no other master's: as CLUSTERDOWN
 *   ASK                             at once at the node that it names, behind ASKING
 *   TRYAGAIN                        each key by itself; a call on several keys after 1 .. 50 ms until redirect-timeout
 *
 * A sixth MOVED or ASK, or one for another slot, is the end: `-UPSTREAM moved`. What a cluster has
 * not decided in time counts as unanswered: limit-when-down. Decided once: only what Redis says
 * that it has not run is asked again. Owner: the exchange; the worker's thread.
 */
#ifndef WEIR_QUOTA_ROUTES_H
#define WEIR_QUOTA_ROUTES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "net/alarms.h"
#include "quota/batch.h"
#include "quota/script_node.h"
#include "upstream/node/nodes.h"

#define ROUTES_NEAR 64 /* lists of batches by slot: a question is compared with those of its list */

/* The batches of one slot that are sent and not answered. */
struct slot_use {
    uint16_t n_sent;
    uint16_t number; /* of the node where they are */
    bool is_careful; /* one of them was refused before: no other is sent until it is answered */
};

struct routes {
    const struct batch_ops *calls; /* the owner of the calls */
    struct nodes *nodes;
    struct list members;           /* struct script_node: nodes that were asked */
    struct list near[ROUTES_NEAR]; /* batches to be sent, by their slot and batch.order */
    struct slot_use *uses;         /* by slot; heap; without a cluster there is one */
    uint16_t n_numbers;            /* of members */
    bool is_cluster;
    struct list held;   /* batches that are asked again, or wait behind one; by batch.order */
    struct alarm again; /* for the first of those that is due */
    struct alarms *alarms;
    const struct script_node_ops *ops; /* the members' */
    void *arg;
};

/* All outlive it, and `alarms` have room for one. Out of memory ends the process. */
void routes_init(struct routes *routes, struct nodes *nodes, struct alarms *alarms, const struct batch_ops *calls,
                 const struct script_node_ops *ops, void *arg);
void routes_fini(struct routes *routes); /* its batches are dropped with their calls */

static inline uint64_t routes_now_ns(const struct routes *routes)
{
    return routes->alarms->loop->now_ns;
}

static inline struct script_node *routes_member_at(const struct list *at)
{
    return container_of(at, struct script_node, in_routes);
}

static inline struct batch *routes_near_at(const struct list *at)
{
    return container_of(at, struct batch, in_slot);
}

static inline struct list *routes_near(struct routes *routes, uint16_t slot)
{
    return &routes->near[slot % ROUTES_NEAR];
}

/* True if Redis has refused it before. */
static inline bool routes_was_refused(const struct batch *batch)
{
    return batch->until_ns != 0 || batch->n_hops > 0;
}

/* The row that serves the slot; without a cluster the home node's. NULL: none does. */
struct nodes_row *routes_row(const struct routes *routes, uint16_t slot);

/*
 * A batch in no list is to be sent where its slot is served, with all that wait of the slot; in
 * order. False: out of memory, and it has failed.
 */
bool routes_put(struct routes *routes, struct batch *batch);

/* It is not among those to be sent any more. */
void routes_take_out(struct batch *batch);

/* True if it must not be sent yet. When that may have changed its node is woken. */
bool routes_must_wait(struct routes *routes, const struct batch *batch);

/* It is sent; it is answered, or never will be; it will not be sent. */
void routes_note_sent(struct routes *routes, const struct batch *batch);
void routes_note_over(struct routes *routes, const struct batch *batch);
void routes_note_unsent(struct routes *routes, const struct batch *batch);

/* It and all its calls fail for want of memory. */
void routes_starve(struct routes *routes, struct batch *batch);

/* A batch in no list was answered with this error: it fails, or is asked again. */
void routes_take_error(struct routes *routes, struct batch *batch, struct slice error);

/* There is no connection to its node; `error` says why. */
void routes_take_lack(struct routes *routes, struct batch *batch, struct slice error, bool is_away);

/* It waits with a held one that it must not overtake. False: it has failed. */
bool routes_put_behind(struct routes *routes, struct batch *batch, const struct batch *before);

/* The worker has adopted another topology: what has not been decided is asked where its slot is served now. */
void routes_adopt(struct routes *routes);

#endif
