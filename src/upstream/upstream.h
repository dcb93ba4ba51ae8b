/*
 * What all servers that weir forwards to have in common: time-outs, TLS, and how many connections there may be to them.
 *
 * One for the process, set at the start but for what its owner says. Any thread.
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

/* Where reads go when there are replicas, as the configuration says. */
enum reads {
    READS_MASTER,   /* all go to the master */
    READS_ASKED,    /* those of clients that have sent READONLY may go to replicas */
    READS_REPLICAS, /* those of all clients may */
};

struct reads_settings {
    enum reads reads;
    uint64_t poll_ns;    /* how often master and replicas are asked for their offsets */
    uint64_t lag_max_ns; /* a replica is read from while it has the master's offset of so long ago */
    bool own_writes;     /* a client reads its own writes: from the master until a replica has them */
};

/* What a command with keys in several slots of a Redis Cluster becomes, as the configuration says. */
enum cross_slot {
    CROSS_SLOT_SPLIT,     /* MGET, DEL, UNLINK, EXISTS, TOUCH: one part for each slot; others: -CROSSSLOT */
    CROSS_SLOT_SPLIT_ALL, /* MSET too, which is not atomic then */
    CROSS_SLOT_REFUSE,    /* -CROSSSLOT, as Redis Cluster */
};

/* How a worker is told that others need the connections that it only keeps: embedded in what keeps them. */
struct shed {
    struct list in_upstream;
    uv_async_t async; /* on the worker's loop */
};

struct upstream {
    pthread_mutex_t tls_lock;    /* of the next, which a reload replaces */
    struct tls_context *tls;     /* one reference; NULL: plain */
    uint64_t connect_timeout_ns; /* for connecting, and for each answer until a connection is ready */
    uint64_t timeout_ns;         /* for any answer to a call that does not block; 0: none */
    uint64_t check_ns;           /* how often each node is asked whether it still answers; 0: never */
    bool has_user;               /* upstream-user is set; else weir logs in as Redis' user default */
    bool is_replicated;          /* there may be several servers, of which one at a time is the master */
    struct reads_settings reads; /* of replicas; READS_MASTER unless is_replicated or is_cluster */
    struct rate dial_rate;       /* connections opened for clients, all workers together; count 0: any number */
    struct funnel dials;         /* by that rate */
    _Atomic uint64_t away_ns;    /* when a node was found away last, by any worker; 0: never */
    bool lends_login;            /* clients that do not log in travel as weir's own user */
    struct room room;            /* for clients' connections to all nodes together */
    pthread_mutex_t sheds_lock;  /* of the next four */
    struct list sheds;           /* struct shed, one for each worker */
    uv_async_t *asked;           /* woken by upstream_ask; NULL: there is none; under the same lock */
    uv_async_t *on_refusal;      /* woken by upstream_note_refusal; NULL: none; under the same lock */
    uv_async_t *poll;            /* woken by upstream_poll; NULL: there is none; under the same lock */
    uint32_t hurry;              /* tests only: what takes seconds takes so many times less; 0: as long as it takes */

    /* What follows is set only where is_cluster. */
    bool is_cluster;                   /* masters share the slots of a Redis Cluster */
    bool emulates_cluster;             /* CLUSTER SLOTS and the like of clients are answered: one node, which is weir */
    enum cross_slot cross_slot;        /* what a command with keys in several slots becomes */
    uint64_t redirect_timeout_ns;      /* how long a command may be sent from node to node */
    const char *cluster_announce_host; /* what clients are told of that one node; NULL: where the client connected */
    uint16_t cluster_announce_port;
    _Atomic uint32_t redirected_s[SLOT_COUNT]; /* when the slot saw MOVED, ASK or TRYAGAIN last, in seconds; 0: never */
    _Atomic bool is_topology_asked; /* upstream_ask_topology; cleared by the main thread when a node is asked */
};

#define REDIRECTED_S 60 /* so long a slot counts as one that may move again (chosen) */

/* Any worker has met a redirect of the slot. */
static inline void upstream_note_redirected(struct upstream *upstream, uint16_t slot, uint64_t now_ns)
{
    atomic_store_explicit(&upstream->redirected_s[slot], (uint32_t)(now_ns / NS_PER_S) + 1, memory_order_relaxed);
}

/* True if one has within the last REDIRECTED_S seconds. Workers' clocks of the loop differ a little. */
static inline bool upstream_redirected_lately(const struct upstream *upstream, uint16_t slot, uint64_t now_ns)
{
    uint32_t at_s = atomic_load_explicit(&upstream->redirected_s[slot], memory_order_relaxed);
    return at_s != 0 && (int32_t)((uint32_t)(now_ns / NS_PER_S) + 1 - at_s) < REDIRECTED_S;
}

void upstream_init(struct upstream *upstream); /* of zeroed memory */
void upstream_fini(struct upstream *upstream);

/* What connections use from now on; those there are keep theirs. Takes a reference of its own. NULL: plain. */
void upstream_set_tls(struct upstream *upstream, struct tls_context *tls);

/* A reference for the caller, or NULL. */
struct tls_context *upstream_tls(struct upstream *upstream);

/* True if a request that a server has not run may go to another: it is kept until it is answered. */
static inline bool upstream_keeps(const struct upstream *upstream)
{
    return upstream->is_replicated || upstream->is_cluster;
}

/* So long; in a hurry, less. */
static inline uint64_t upstream_time(const struct upstream *upstream, uint64_t ns)
{
    return upstream->hurry > 0 ? ns / upstream->hurry : ns;
}

/* Have all workers give back the connections that they only keep: each async's callback is called on its own thread. */
void upstream_shed(struct upstream *upstream);
void upstream_enter_shed(struct upstream *upstream, struct shed *shed);
void upstream_leave_shed(struct upstream *upstream, struct shed *shed);

/* Have the main thread look which nodes it is to ask (node_ask). */
void upstream_ask(struct upstream *upstream);

/*
 * A reply says that slots are served elsewhere than known, or by no node: have a node asked which nodes there are
 * (run/topology/cluster.h). Any thread, any number of times: no more than one question in 100 ms follows. Nothing
 * without a cluster.
 */
void upstream_ask_topology(struct upstream *upstream);

/* By this it is woken; NULL: by nothing any more. */
void upstream_set_asked(struct upstream *upstream, uv_async_t *asked);

/* Have replicas asked now how far they are (run/topology/replica_poll.h). Any thread. */
void upstream_poll(struct upstream *upstream);

/* By which async that wakes the main thread; NULL: by none any more. */
void upstream_set_poll(struct upstream *upstream, uv_async_t *poll);

/* A server has refused weir's own login: have upstream-password-file looked at. Any thread. */
void upstream_note_refusal(struct upstream *upstream);

/* By which async that wakes the main thread; NULL: by none any more. */
void upstream_set_on_refusal(struct upstream *upstream, uv_async_t *async);

#endif
