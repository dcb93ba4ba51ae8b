/*
 * One node that decides a worker's calls: the connection for weir's scripts, the batches that are
 * unsent or sent, and the handling of late answers.
 *
 * The connection is opened when it is needed, and loads the scripts first. Redis answers batches in
 * order. When the connection is lost, the sent batches have no answer, and are not sent again.
 *
 * No batch, sent or not, waits longer than upstream-timeout. When the oldest batch has waited that
 * long, all batches of the node fail. Later batches fail at once until the node has answered a new
 * connection (struct circuit). An alarm opens that connection.
 *
 * A node that the topology no longer has is leaving: it gets no new batch, and its sent batches are
 * still answered. Owner: the exchange. Thread: the worker's.
 */
#ifndef WEIR_QUOTA_SCRIPT_NODE_H
#define WEIR_QUOTA_SCRIPT_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/slice.h"
#include "net/alarms.h"
#include "quota/batch.h"
#include "upstream/lane/lanes.h"
#include "upstream/script.h"

/* ---- the circuit breaker in front of the node; time is an argument ---- */

/* chosen: more frequent tries do not help a node that refuses */
#define CIRCUIT_AGAIN_NS (500 * NS_PER_MS)

/*
 * A call without an answer within upstream-timeout opens the circuit. While the circuit is open,
 * calls are answered without the node. Probes try to reach the node, whether or not calls arrive.
 * An answer closes the circuit. Zeroed: closed, without a failure.
 */
struct circuit {
    uint64_t failed_ns; /* when a connection was refused or failed; 0: not since the last answer */
    bool is_open;       /* a call has timed out, and no answer has arrived since */
};

/* Returns when a call of time asked_ns times out. timeout_ns 0: UINT64_MAX, never. */
static inline uint64_t circuit_due_ns(uint64_t asked_ns, uint64_t timeout_ns)
{
    return timeout_ns > 0 ? asked_ns + timeout_ns : UINT64_MAX;
}

/* Notes that a connection was refused, or could not be made. */
static inline void circuit_fail(struct circuit *circuit, uint64_t now_ns)
{
    circuit->failed_ns = now_ns;
}

/* Notes that a call has timed out. */
static inline void circuit_open(struct circuit *circuit)
{
    circuit->is_open = true;
}

/* Notes that the node has answered. */
static inline void circuit_close(struct circuit *circuit)
{
    *circuit = (struct circuit){0};
}

/* True if a new connection may be tried. */
static inline bool circuit_may_try(const struct circuit *circuit, uint64_t now_ns)
{
    return circuit->failed_ns == 0 || now_ns >= circuit->failed_ns + CIRCUIT_AGAIN_NS;
}

/* Returns when the next probe is due after a probe at now_ns; UINT64_MAX: the circuit is closed. */
static inline uint64_t circuit_probe_ns(const struct circuit *circuit, uint64_t now_ns)
{
    if (!circuit->is_open)
        return UINT64_MAX;
    return (circuit_may_try(circuit, now_ns) ? now_ns : circuit->failed_ns) + CIRCUIT_AGAIN_NS;
}

/* ---- the node ---- */

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
     * end of the time in which a new master may appear, after Redis said that it is no master; 0:
     * Redis has not said this
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
     * True if the connection is missing because the node is unreachable, or the circuit is open.
     * False if the node refuses weir or does not decide: calls do not pass for that reason.
     */
    bool is_away;
};

/*
 * Creates the node that these lanes lead to. Takes over the reference on `login`. `like`: another
 * node of the worker, which has the scripts' hashes already; or NULL. Returns NULL: out of memory.
 */
struct script_node *script_node_new(struct lanes *lanes, struct alarms *alarms, struct login *login,
                                    const struct script_node *like,
                                    const struct script_node_ops *ops, void *arg);

/* Drops the node's batches with their calls. No callback follows. */
void script_node_free(struct script_node *node);

/* Inserts a batch into `open`, in order. on_look follows at the end of this iteration. */
void script_node_add(struct script_node *node, struct batch *batch);

/* Notes that a call with this asked_ns has joined a batch of `open`. */
void script_node_note_asked(struct script_node *node, struct batch *batch, uint64_t asked_ns);

/* Sends a batch that is in no list. False: out of memory, and the caller still owns the batch. */
__attribute__((warn_unused_result)) bool script_node_send(struct script_node *node,
                                                          struct batch *batch);

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

/* Returns an error reply that says why the node has no connection. */
struct slice script_node_why_none(const struct script_node *node);

/*
 * True if `error` says that Redis did not run the call, which must be sent again with its script.
 */
bool script_node_takes_back(struct script_node *node, struct slice error);

/* Notes that Redis has answered a batch without an error: weir has the rights for that batch. */
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
