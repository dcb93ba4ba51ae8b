/*
 * One node of which a worker asks decisions: its script connection, the batches that are to be sent there, those that
 * are sent, and what happens when an answer is late.
 *
 * Sent or not, no batch waits longer than upstream-timeout: when the oldest has, all of the node fail, and later ones
 * fail at once until the node has answered a new connection (circuit.h). An alarm has that connection opened.
 *
 * A node that is in the topology no more is leaving: nothing is sent there, and what was sent is still answered.
 * Owner: the exchange; the worker's thread.
 */
#ifndef WEIR_QUOTA_SCRIPT_NODE_H
#define WEIR_QUOTA_SCRIPT_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "net/alarms.h"
#include "quota/batch.h"
#include "quota/script_conn.h"

#define SCRIPT_NODE_ALARMS 2

struct script_node;

/* on_reply and on_lost hand over the batch, which is in no list. None but on_look may free the node. */
struct script_node_ops {
    void (*on_look)(struct script_node *node); /* the connection may have changed, or batches were added */
    void (*on_none)(struct script_node *node); /* no connection can be had for what is to be sent */
    void (*on_reply)(struct script_node *node, struct batch *batch, struct slice reply); /* a whole one */
    void (*on_lost)(struct script_node *node, struct batch *batch, struct slice error);  /* there will be no answer */
};

struct script_node {
    struct list in_exchange;
    const struct script_node_ops *ops;
    void *arg; /* the exchange */
    struct script_conn conn;
    struct list open;        /* batches that are still being filled or wait to be sent; by batch.order */
    struct list sent;        /* and those that wait for their answer, oldest first */
    uint32_t sent_us;        /* how long those keep Redis busy, estimated */
    uint16_t number;         /* of the exchange's nodes, from 1 */
    bool is_leaving;         /* its node is in the topology no more */
    uint64_t moves_until_ns; /* Redis has said that it is no master: until then another may be; 0: it has not */
    struct alarm patience;   /* set while anything is asked, if there is an upstream-timeout: the oldest may be due */
    struct alarm probe;      /* set while the circuit is open: Redis is to be tried */
    struct alarms *alarms;
};

/*
 * For the node that these lanes lead to. Takes over the reference on `login`. `like`: another node of the worker,
 * where the hashes of the scripts are known already; or NULL. NULL: out of memory.
 */
struct script_node *script_node_new(struct lanes *lanes, struct alarms *alarms, struct login *login,
                                    const struct script_node *like, const struct script_node_ops *ops, void *arg);

/* Its batches are dropped with their calls. No callback follows. */
void script_node_free(struct script_node *node);

/* Put a batch among those to be sent, in order; on_look follows at the end of this iteration. */
void script_node_add(struct script_node *node, struct batch *batch);

/* A call that was asked then has been added to a batch of `open`. */
void script_node_note_asked(struct script_node *node, struct batch *batch, uint64_t asked_ns);

/* Send a batch that is in no list. False: out of memory, and it is still the caller's. */
__attribute__((warn_unused_result)) bool script_node_send(struct script_node *node, struct batch *batch);

/* Its node is in the topology no more: what is in `open` is the caller's to move. on_look follows. */
void script_node_leave(struct script_node *node);

static inline void script_node_wake(struct script_node *node)
{
    script_conn_wake(&node->conn);
}

static inline uint64_t script_node_now_ns(const struct script_node *node)
{
    return node->alarms->loop->now_ns;
}

#endif
