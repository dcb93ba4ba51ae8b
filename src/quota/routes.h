/*
 * Chooses the node to which each batch of a worker is sent, and when: at once, behind an older
 * batch, or as a retry.
 *
 * On a cluster the keys of a batch have one slot, and the batch goes to the node that serves the
 * slot. Else all batches go to the default node. If no node serves a slot, the default node is
 * asked, and answers CLUSTERDOWN.
 *
 * Invariants, which keep the calls about one key in order: No batch of a slot is sent while an
 * older batch of that slot is in flight or queued at another node. On a cluster a batch that was
 * refused before shares its slot with no other batch in flight.
 *
 * A batch that Redis has not run waits here, and is retried until it is decided or its wait ends:
 *
 *   error        retry
 *
 *   READONLY,    each 50 ms until failover-wait ends, at another node if that is the master then
 *   LOADING,
 *   MASTERDOWN
 *   CLUSTERDOWN  after 10 .. 100 ms until failover-wait ends; weir refreshes the topology
 *   MOVED        at once at the node that MOVED names, which serves the slot from now on; weir
 *                refreshes the topology. If no other master has that address: as CLUSTERDOWN
 *   ASK          at once at the node that ASK names, behind ASKING
 *   TRYAGAIN     each key alone; a call on several keys after 1 .. 50 ms until redirect-timeout
 *
 * A sixth MOVED or ASK, or a MOVED or ASK for another slot, fails the batch: `-UPSTREAM moved`. A
 * batch that a cluster has not decided in time counts as unanswered: limit-when-down. Each call is
 * decided at most once: weir retries only batches that Redis reports as not run.
 *
 * Owner: the exchange. Thread: the worker's.
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

/* chosen: lists of batches by slot; a call is compared with the batches of its list */
#define ROUTES_NEAR 64

/* The batches of one slot that are in flight. */
struct slot_use {
    uint16_t n_sent;
    uint16_t number; /* number of the node that the batches were sent to */
    /* one of the batches was refused before: no other batch is sent until that batch is answered */
    bool is_careful;
};

struct routes {
    const struct batch_ops *calls; /* callbacks of the owner of the calls */
    struct nodes *nodes;
    struct list members;           /* struct script_node: nodes that batches were sent to */
    struct list near[ROUTES_NEAR]; /* unsent batches, by their slot and batch.order */
    struct slot_use *uses;         /* by slot; heap; without a cluster one element */
    uint16_t n_numbers;            /* number of members made */
    bool is_cluster;
    /* batches that wait for a retry, or behind a batch that does; by batch.order */
    struct list held;
    struct alarm again; /* due with the earliest retry in `held` */
    struct alarms *alarms;
    const struct script_node_ops *ops; /* callbacks of the members */
    void *arg;
};

/*
 * `nodes`, `alarms`, `calls` and `ops` outlive `routes`. `alarms` has room for one more alarm. Out
 * of memory ends the process.
 */
void routes_init(struct routes *routes, struct nodes *nodes, struct alarms *alarms,
                 const struct batch_ops *calls, const struct script_node_ops *ops, void *arg);
void routes_fini(struct routes *routes); /* drops the batches with their calls */

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

/* True if Redis has refused the batch before. */
static inline bool routes_was_refused(const struct batch *batch)
{
    return batch->until_ns != 0 || batch->n_hops > 0;
}

/*
 * Returns the row of the node that serves the slot; without a cluster the row of the default node.
 * NULL: no node serves the slot.
 */
struct nodes_row *routes_row(const struct routes *routes, uint16_t slot);

/*
 * Queues a batch, which is in no list, at the node that serves its slot. Moves the slot's unsent
 * batches there too, in order. False: out of memory, and the batch has failed.
 */
bool routes_put(struct routes *routes, struct batch *batch);

/* Removes an unsent batch from its lists. */
void routes_take_out(struct batch *batch);

/*
 * True if the batch must not be sent yet. The batch's node is woken when the reason may have ended.
 */
bool routes_must_wait(struct routes *routes, const struct batch *batch);

/*
 * routes_note_sent notes that a batch has been sent. routes_note_over notes that a sent batch has
 * been answered or lost. routes_note_unsent notes that an unsent batch will not be sent.
 */
void routes_note_sent(struct routes *routes, const struct batch *batch);
void routes_note_over(struct routes *routes, const struct batch *batch);
void routes_note_unsent(struct routes *routes, const struct batch *batch);

/* Fails the batch and its calls: out of memory. */
void routes_starve(struct routes *routes, struct batch *batch);

/* Takes a batch, which is in no list, with Redis' error reply: fails or retries it. */
void routes_take_error(struct routes *routes, struct batch *batch, struct slice error);

/* Takes a batch that is in no list and has no connection to its node. `error` says why. */
void routes_take_lack(struct routes *routes, struct batch *batch, struct slice error, bool is_away);

/*
 * Lets a batch wait behind `before`, which waits for a retry and must not be overtaken. False: the
 * batch has failed.
 */
bool routes_put_behind(struct routes *routes, struct batch *batch, const struct batch *before);

/*
 * Called when the worker has adopted another topology. Unanswered batches go to the nodes that
 * serve their slots now, unless they are in flight.
 */
void routes_adopt(struct routes *routes);

#endif
