/*
 * One node of which a worker asks decisions: the connection on which it calls weir's scripts there,
 * the batches that are to be sent or are sent, and what happens when an answer is late.
 *
 * The connection is opened when it is needed, and loads the scripts first. Batches are answered in
 * order. When the connection is lost, those that were sent have no answer: nothing is asked twice.
 *
 * Sent or not, no batch waits longer than upstream-timeout: when the oldest has, all of the node
 * fail, and later ones fail at once until the node has answered a new connection (circuit.h). An
 * alarm has that connection opened.
 *
 * A node that is in the topology no more is leaving: nothing is sent there, and what was sent is
 * still answered. Owner: the exchange; the worker's thread.
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

/* on_reply and on_lost hand over the batch, which is in no list. None but on_look may free the node. */
struct script_node_ops {
    void (*on_look)(struct script_node *node); /* the connection may have changed, or batches were added */
    void (*on_none)(struct script_node *node); /* no connection can be had for what is to be sent */
    void (*on_reply)(struct script_node *node, struct batch *batch, struct slice reply); /* a whole one */
    void (*on_lost)(struct script_node *node, struct batch *batch, struct slice error);  /* there will be no answer */
};

struct script_node {
    struct list in_routes;
    const struct script_node_ops *ops;
    void *arg; /* the exchange */
    struct alarms *alarms;
    struct list open;        /* batches that are still being filled or wait to be sent; by batch.order */
    struct list sent;        /* and those that wait for their answer, oldest first */
    uint32_t sent_us;        /* how long those keep Redis busy, estimated */
    uint16_t number;         /* of the worker's nodes */
    bool is_leaving;         /* its node is in the topology no more */
    uint64_t moves_until_ns; /* Redis has said that it is no master: until then another may be; 0: it has not */
    struct alarm patience;   /* set while anything is asked, if there is an upstream-timeout: the oldest may be due */
    struct alarm probe;      /* set while the circuit is open: Redis is to be tried */
    struct circuit circuit;
    /* The connection: */
    struct weir_lane base;
    struct login *login; /* that it logs in by, one reference; NULL: not at all */
    struct bytes reply;  /* to the oldest request, as far as it has come */
    char *refusal;       /* heap: the error with which Redis refused login or scripts; NULL: none */
    char shas[SCRIPT_COUNT][SCRIPT_SHA_LEN + 1];
    unsigned n_loads;   /* how many SCRIPT LOADs were answered; SCRIPT_COUNT: all of shas are known */
    unsigned n_loading; /* how many were sent on this connection */
    unsigned n_lost;    /* how often in a row the connection was lost while scripts were loaded */
    uint64_t whole_ns;  /* since when calls must carry their scripts; 0: they do not */
    bool is_let_in;     /* Redis has taken the first script, or will have none loaded */
    bool is_unloaded;   /* Redis has refused another one */
    /*
     * There is no connection because its node cannot be reached, or the circuit is open. A node
     * that is there, but does not let weir in or does not decide, is no reason to let any call
     * through.
     */
    bool is_away;
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

enum script_conn_state {
    SCRIPT_CONN_READY,
    SCRIPT_CONN_NOT_YET, /* being opened: on_look follows */
    SCRIPT_CONN_NONE,    /* the node is away, does not answer, or refuses */
};

/* The state of the connection; opens it if need be. */
enum script_conn_state script_node_find(struct script_node *node);

/* Why there is no connection, as an error reply. */
struct slice script_node_why_none(const struct script_node *node);

/* True if this error says that a call was not run, as it must carry its script. */
bool script_node_takes_back(struct script_node *node, struct slice error);

/* A batch was answered, not with an error: weir has the rights for that. */
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
