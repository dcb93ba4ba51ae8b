/*
 * One node that decides a worker's calls: the connection for weir's scripts, the batches that are
 * unsent or sent, and the handling of late answers.
 *
 * The connection is opened when it is needed, and loads the scripts first. Redis answers batches in
 * order. When the connection is lost, the sent batches have no answer, and are not sent again.
 *
 * No batch, sent or not, waits longer than upstream-timeout. When the oldest batch has waited that
 * long, all batches of the node fail. Later batches fail at once until the node has answered a new
 * connection (circuit.h). An alarm opens that connection.
 *
 * A node that the topology has no more is leaving: it gets no new batch, and its sent batches are
 * still answered. Owner: the exchange. Thread: the worker's.
 */
#ifndef WEIR_QUOTA_SCRIPT_NODE_H
#define WEIR_QUOTA_SCRIPT_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/list.h"
#include "base/slice.h"
#include "net/alarms.h"
#include "quota/batch.h"
#include "quota/circuit.h"
#include "upstream/lane/lanes.h"
#include "upstream/script.h"

struct script_node;

/* on_reply and on_lost hand over the batch, which is in no list. Only on_look may free the node. */
struct script_node_ops {
    /* the connection may have changed, or batches were added */
    void (*on_look)(struct script_node *node);
    void (*on_none)(struct script_node *node); /* the unsent batches get no connection */
    /* `reply` is whole */
    void (*on_reply)(struct script_node *node, struct batch *batch, struct slice reply);
    /* the batch gets no answer */
    void (*on_lost)(struct script_node *node, struct batch *batch, struct slice error);
};

struct script_node {
    struct list in_routes;
    const struct script_node_ops *ops;
    void *arg; /* the exchange */
    struct alarms *alarms;
    struct list open; /* unsent batches, still being filled or waiting; by batch.order */
    struct list sent; /* batches that wait for their answer, oldest first */
    uint32_t sent_us; /* how long the sent batches occupy Redis, estimated */
    uint16_t number;  /* index among the worker's nodes */
    bool is_leaving;  /* the topology no longer has this node */
    /*
     * Redis said that it is no master: end of the time in which a new master may appear; 0: Redis
     * has not said so
     */
    uint64_t moves_until_ns;
    /* set while a batch waits, if there is an upstream-timeout: the oldest batch may be late */
    struct alarm patience;
    struct alarm probe; /* set while the circuit is open: the next probe */
    struct circuit circuit;
    struct weir_lane base;
    struct login *login; /* login of the connection, one reference; NULL: no login */
    struct bytes reply;  /* the reply to the oldest request, as far as received */
    char *refusal;       /* heap: the error with which Redis refused login or scripts; NULL: none */
    char shas[SCRIPT_COUNT][SCRIPT_SHA_LEN + 1];
    unsigned n_loads;   /* number of SCRIPT LOADs answered; SCRIPT_COUNT: all of shas are known */
    unsigned n_loading; /* number of SCRIPT LOADs sent on this connection */
    unsigned n_lost;    /* number of losses in a row while scripts were loading */
    uint64_t whole_ns;  /* since when calls carry their scripts; 0: calls use hashes */
    bool is_let_in;     /* Redis has loaded the first script, or denies weir SCRIPT LOAD */
    bool is_unloaded;   /* Redis has refused to load another script */
    /*
     * True if the connection is missing because the node is unreachable, or the circuit is open. A
     * node that refuses weir, or does not decide, leaves is_away false: such a node is no reason to
     * let calls pass.
     */
    bool is_away;
};

/*
 * Creates the node that these lanes lead to. Takes over the reference on `login`. `like`: another
 * node of the worker, which has the scripts' hashes already; or NULL. Returns NULL: out of memory.
 */
struct script_node *script_node_new(struct lanes *lanes, struct alarms *alarms, struct login *login,
                                    const struct script_node *like, const struct script_node_ops *ops, void *arg);

/* Drops the node's batches with their calls. No callback follows. */
void script_node_free(struct script_node *node);

/* Inserts a batch into `open`, in order. on_look follows at the end of this iteration. */
void script_node_add(struct script_node *node, struct batch *batch);

/* Notes that a call with this asked_ns has joined a batch of `open`. */
void script_node_note_asked(struct script_node *node, struct batch *batch, uint64_t asked_ns);

/* Sends a batch that is in no list. False: out of memory, and the caller still owns the batch. */
__attribute__((warn_unused_result)) bool script_node_send(struct script_node *node, struct batch *batch);

/*
 * Marks the node as leaving. The caller moves the batches of `open` to other nodes. on_look
 * follows.
 */
void script_node_leave(struct script_node *node);

enum script_conn_state {
    SCRIPT_CONN_READY,
    SCRIPT_CONN_NOT_YET, /* being opened: on_look follows */
    SCRIPT_CONN_NONE,    /* the node is unreachable, does not answer, or refuses weir */
};

/* Returns the state of the connection. Opens the connection if need be. */
enum script_conn_state script_node_find(struct script_node *node);

/* Returns an error reply that says why there is no connection. */
struct slice script_node_why_none(const struct script_node *node);

/*
 * True if `error` says that Redis did not run the call, which must be sent again with its script.
 */
bool script_node_takes_back(struct script_node *node, struct slice error);

/* Redis has answered a batch without an error: weir has the rights for that batch. */
void script_node_note_answered(const struct script_node *node, const struct batch *batch);

static inline struct node *script_node_of(const struct script_node *node)
{
    return lanes_node(node->base.lanes);
}

/* on_look follows at the end of this iteration. */
static inline void script_node_wake(struct script_node *node)
{
    link_wake(&node->base.hollow);
}

static inline uint64_t script_node_now_ns(const struct script_node *node)
{
    return node->alarms->loop->now_ns;
}

#endif
