/*
 * The settings that all servers of the upstream share: time-outs, TLS, and the bound on
 * connections.
 *
 * The process has one upstream, set at the start. Only the functions of this header change the
 * upstream later. Any thread.
 */
#ifndef WEIR_UPSTREAM_UPSTREAM_H
#define WEIR_UPSTREAM_UPSTREAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/clock.h"
#include "base/list.h"
#include "limit/command/slot.h"
#include "limit/funnel.h"
#include "net/tls_context.h"
#include "upstream/lane/room.h"

/* Where reads go if the master has replicas; from the configuration. */
enum reads {
    READS_MASTER,   /* all reads go to the master */
    READS_ASKED,    /* reads of clients that have sent READONLY may go to replicas */
    READS_REPLICAS, /* reads of all clients may go to replicas */
};

struct reads_settings {
    enum reads reads;
    uint64_t poll_ns; /* how often master and replicas are asked for their offsets */
    /* a replica serves reads while it has the master's offset of this long ago */
    uint64_t lag_max_ns;
    /* a client reads its own writes: from the master until a replica has these writes */
    bool own_writes;
};

/*
 * How a command with keys in several slots of a Redis Cluster is handled; from the configuration.
 */
enum cross_slot {
    /* MGET, DEL, UNLINK, EXISTS, TOUCH: one part for each slot; other commands: -CROSSSLOT */
    CROSS_SLOT_SPLIT,
    CROSS_SLOT_SPLIT_ALL, /* MSET too, which is then not atomic */
    CROSS_SLOT_REFUSE,    /* -CROSSSLOT, as in Redis Cluster */
};

/*
 * Tells a worker that other workers need its idle connections. Embedded in the worker's struct
 * nodes.
 */
struct shed {
    struct list in_upstream;
    uv_async_t async; /* on the worker's event loop */
};

struct upstream {
    pthread_mutex_t tls_lock; /* protects `tls`, which a reload replaces */
    struct tls_context *tls;  /* one reference; NULL: no TLS */
    /* time-out of connecting, and of each answer until a connection is ready */
    uint64_t connect_timeout_ns;
    uint64_t timeout_ns; /* time-out of an answer to a call that does not block; 0: none */
    uint64_t check_ns;   /* probe interval for each node; 0: never */
    /* upstream-user is set; else weir logs in as Redis' user default */
    bool has_user;
    bool is_replicated; /* the upstream may have several servers: a master and its replicas */
    /* reads from replicas; READS_MASTER unless is_replicated or is_cluster */
    struct reads_settings reads;
    /* connections opened for clients, by all workers together; count 0: unlimited */
    struct rate dial_rate;
    struct funnel dials;        /* the state of dial_rate */
    _Atomic uint64_t away_ns;   /* when any worker last found a node away; 0: never */
    bool lends_login;           /* clients that do not log in use weir's own user */
    struct room room;           /* the bound on clients' connections to all nodes together */
    pthread_mutex_t sheds_lock; /* protects sheds, asked, on_refusal and poll */
    struct list sheds;          /* struct shed, one for each worker */
    uv_async_t *asked;          /* woken by upstream_ask; NULL: none; under sheds_lock */
    uv_async_t *on_refusal;     /* woken by upstream_note_refusal; NULL: none; under sheds_lock */
    uv_async_t *poll;           /* woken by upstream_poll; NULL: none; under sheds_lock */
    uint32_t hurry;             /* tests only: divides times of seconds; 0: no division */

    /* The following fields are set only if is_cluster. */
    bool is_cluster; /* the masters share the slots of a Redis Cluster */
    /* CLUSTER SLOTS and the like are answered with one node, which is weir */
    bool emulates_cluster;
    enum cross_slot cross_slot;   /* how a command with keys in several slots is handled */
    uint64_t redirect_timeout_ns; /* how long a command may be redirected */
    /*
     * with emulates_cluster: the one node's address for clients; NULL: the address that the client
     * connected to
     */
    const char *cluster_announce_host;
    uint16_t cluster_announce_port;
    /* when the slot last saw MOVED, ASK or TRYAGAIN, in seconds; 0: never */
    _Atomic uint32_t redirected_s[SLOT_COUNT];
    /* set by upstream_ask_topology; cleared by the main thread when it asks a node */
    _Atomic bool is_topology_asked;
};

#define REDIRECTED_S 60 /* chosen: how long after a redirect a slot is expected to move again */

/* A worker has received a redirect for the slot. */
static inline void upstream_note_redirected(struct upstream *upstream, uint16_t slot,
                                            uint64_t now_ns)
{
    atomic_store_explicit(&upstream->redirected_s[slot], (uint32_t)(now_ns / NS_PER_S) + 1,
                          memory_order_relaxed);
}

/*
 * True if the slot saw a redirect within the last REDIRECTED_S seconds. Workers' cached clocks
 * differ a little.
 */
static inline bool upstream_redirected_lately(const struct upstream *upstream, uint16_t slot,
                                              uint64_t now_ns)
{
    uint32_t at_s = atomic_load_explicit(&upstream->redirected_s[slot], memory_order_relaxed);
    return at_s != 0 && (int32_t)((uint32_t)(now_ns / NS_PER_S) + 1 - at_s) < REDIRECTED_S;
}

void upstream_init(struct upstream *upstream); /* needs zeroed memory */
void upstream_fini(struct upstream *upstream);

/*
 * Set TLS for new connections; existing connections keep their context. Takes a reference of its
 * own. NULL: no TLS.
 */
void upstream_set_tls(struct upstream *upstream, struct tls_context *tls);

/* Returns a reference for the caller, or NULL. */
struct tls_context *upstream_tls(struct upstream *upstream);

/*
 * True if a request that a server has not run may be sent to another server: weir then stores each
 * request until the answer.
 */
static inline bool upstream_keeps(const struct upstream *upstream)
{
    return upstream->is_replicated || upstream->is_cluster;
}

/* Returns `ns`, divided by `hurry` in tests. */
static inline uint64_t upstream_time(const struct upstream *upstream, uint64_t ns)
{
    return upstream->hurry > 0 ? ns / upstream->hurry : ns;
}

/*
 * Make all workers give up idle connections: each worker's async callback runs on its own thread.
 */
void upstream_shed(struct upstream *upstream);
void upstream_enter_shed(struct upstream *upstream, struct shed *shed);
void upstream_leave_shed(struct upstream *upstream, struct shed *shed);

/* Make the main thread look for nodes to ask (node_ask). */
void upstream_ask(struct upstream *upstream);

/*
 * A reply says that an unexpected node, or no node, serves a slot. The main thread asks a node for
 * the topology (run/topology/cluster.h). Any thread, any number of times: at most one question in
 * 100 ms follows. No effect without a cluster.
 */
void upstream_ask_topology(struct upstream *upstream);

/* Set the async that upstream_ask wakes; NULL: none. */
void upstream_set_asked(struct upstream *upstream, uv_async_t *asked);

/* Ask replicas for their offsets now (run/topology/replica_poll.h). Any thread. */
void upstream_poll(struct upstream *upstream);

/* Set the async that upstream_poll wakes, on the main thread; NULL: none. */
void upstream_set_poll(struct upstream *upstream, uv_async_t *poll);

/* A server has refused weir's own login: upstream-password-file is checked. Any thread. */
void upstream_note_refusal(struct upstream *upstream);

/* Set the async that upstream_note_refusal wakes, on the main thread; NULL: none. */
void upstream_set_on_refusal(struct upstream *upstream, uv_async_t *async);

#endif
