/*
 * At which node each batch of a worker is asked, and which may be sent there now.
 *
 * On a cluster the keys of a batch have one slot, and it goes to the node that serves the slot; else all go to the home
 * node. Of a slot that no node serves the home node is asked, which says CLUSTERDOWN.
 * Invariant: of one slot no batch is sent while an older one is under way to another node or waits for that; and on a
 * cluster none while one is under way that was refused before. So what is asked about one key stays in order.
 * Owner: the exchange; the worker's thread.
 */
#ifndef WEIR_QUOTA_ROUTES_H
#define WEIR_QUOTA_ROUTES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "net/alarms.h"
#include "quota/batch_reply.h"
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
    const struct batch_owner *owner;
    struct nodes *nodes;
    struct list members;           /* struct script_node: nodes that were asked */
    struct list near[ROUTES_NEAR]; /* batches to be sent, by their slot and batch.order */
    struct slot_use *uses;         /* by slot; heap; without a cluster there is one */
    uint16_t n_numbers;            /* of members */
    bool is_cluster;
    struct alarms *alarms;
    const struct script_node_ops *ops;
    void *arg;
};

/* All outlive it; ops and arg are the members'. Out of memory ends the process. */
void routes_init(struct routes *routes, struct nodes *nodes, struct alarms *alarms, const struct batch_owner *owner,
                 const struct script_node_ops *ops, void *arg);
void routes_fini(struct routes *routes); /* its batches are dropped with their calls */

static inline uint64_t routes_now_ns(const struct routes *routes)
{
    return routes->alarms->loop->now_ns;
}

static inline struct upstream *routes_upstream(const struct routes *routes)
{
    return routes->nodes->commons.upstream;
}

static inline struct script_node *routes_member_at(const struct list *at)
{
    return container_of(at, struct script_node, in_exchange);
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

/* The member that serves the slot, made if need be. NULL: out of memory. */
struct script_node *routes_of(struct routes *routes, uint16_t slot);

/* The member of this row. NULL: out of memory. */
struct script_node *routes_member(struct routes *routes, struct nodes_row *row);

/* A batch in no list is to be sent to that node; in order. */
void routes_put_at(struct routes *routes, struct batch *batch, struct script_node *node);

/* The same where its slot is served, with all that wait of the slot. Out of memory: it has failed. */
void routes_put(struct routes *routes, struct batch *batch);

/* All of the slot that are to be sent go to this node, but those that follow an ASK. */
void routes_move_slot(struct routes *routes, uint16_t slot, struct script_node *node);

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

/* The worker has adopted another topology. False: nothing is asked elsewhere for that. */
bool routes_adopt(struct routes *routes);

#endif
