/*
 * One server of the upstream: its address, and facts that workers and the main thread have learnt
 * of the server.
 *
 * Reference-counted; any thread. Login, TLS and time-outs are in the node's upstream.
 */
#ifndef WEIR_UPSTREAM_NODE_H
#define WEIR_UPSTREAM_NODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/link.h"
#include "upstream/fair/contention.h"
#include "upstream/lane/lack.h"
#include "upstream/lane/own_words.h"
#include "upstream/lane/owned.h"
#include "upstream/login/login.h"
#include "upstream/node/node_role.h"
#include "upstream/node/offsets.h"
#include "upstream/upstream.h"

#define NODE_TRIP_MORE 128

struct node {
    _Atomic unsigned holders;
    struct upstream *upstream; /* outlives the node */
    struct endpoint endpoint;
    char *text; /* the address as configured, for the log; heap */
    /* the name that the node's certificate must have, without upstream-tls-server-name; heap */
    char *server_name;
    char *address;        /* the resolved address; "": none yet; heap */
    struct owned *owned;  /* connections to the node that have an owner now */
    struct proven proven; /* passwords with which clients of any worker have logged in */
    /* weir cannot use the server (a cluster, a Sentinel, too old): no lane is opened */
    _Atomic bool is_barred;
    /* number of the newest of weir's passwords that the node has accepted: login.h */
    _Atomic uint32_t proven_number;
    /* permissions and features that weir lacks at the node: a bit for each enum lack */
    _Atomic uint32_t lacks;
    _Atomic uint8_t nonce_form; /* enum nonce_form that Redis answers; set by control.c */
    _Atomic bool answers;       /* weir's own connection is up; set by control.c */
    _Atomic bool is_silent;     /* weir's own probe gets no answer (heartbeat.h) */
    _Atomic bool is_told_login; /* the log says that Redis refuses weir's own login */
    /* the log says that the node is away: set once, because all workers notice at the same time */
    _Atomic bool is_told_away;
    /* the log says that the node answered a redirect without a slot or an address */
    _Atomic bool is_told_redirect;
    /* auth_probe must check if the node still requires a password */
    _Atomic bool is_doubted;
    _Atomic uint32_t auth_generation; /* see node_auth_generation */
    _Atomic uint32_t maxclients;      /* maxclients of the node; 0: unknown */
    /* estimated round trip, see node_note_trip; main thread; 0: unknown */
    uint64_t trip_ns;
    /* subjects that send to the node, on all workers; one reference */
    struct contention *contention;
    _Atomic uint8_t role;  /* enum node_role of the node's last answer */
    _Atomic bool is_asked; /* set by node_ask */
    /* weir's own connection cannot learn the node's role: lanes with clients' logins ask */
    _Atomic bool asks_lanes;
    /* a former master that is a replica now: nothing more is sent to the node */
    _Atomic bool is_demoted;
    /* a cluster replica that clients read from; its shared lanes send READONLY */
    _Atomic bool is_read_only;
    struct reach reach; /* lag behind the master, if clients may read from the node */
    /*
     * estimated reply bytes still to arrive for calls of clients that have left:
     * front/client/remains.h
     */
    _Atomic uint64_t left_bytes;
    /* CLIENT PAUSE ... WRITE has passed through weir, and delays writes until this time */
    _Atomic uint64_t paused_until_ns;
};

/* Arguments of node_new. */
struct node_origin {
    struct upstream *upstream;
    const char *text; /* the address as configured; copied */
    /* as in struct node; copied; NULL: none, as for a node without an address */
    const char *server_name;
    const char *address;       /* address of the endpoint; copied */
    struct endpoint endpoint;  /* of length 0: the address is unknown */
    const struct node *before; /* the node that the new node replaces; NULL: none */
    /*
     * without `before`: a node to share the contention with; NULL: the new node gets a new
     * contention
     */
    const struct node *kin;
};

/* Returns a node with one reference. Out of memory ends the process. */
struct node *node_new(const struct node_origin *origin);
struct node *node_get(struct node *node);
void node_put(struct node *node); /* NULL is allowed */

/* Like link_connect, to this node. */
__attribute__((warn_unused_result)) int node_connect(struct node *node, struct link *link,
                                                     struct loop *loop, const struct link_ops *ops);

/*
 * False: the node's name is not resolved yet, or has no address now. No connection to the node is
 * possible.
 */
static inline bool node_has_address(const struct node *node)
{
    return node->endpoint.length > 0;
}

static inline enum node_role node_role(const struct node *node)
{
    return (enum node_role)atomic_load_explicit(&node->role, memory_order_relaxed);
}

/*
 * A probe of weir's own took `took_ns`. The shortest time counts, because longer times include
 * waiting in Redis. Each longer time raises the estimate by one part in NODE_TRIP_MORE, because the
 * path may have become longer. Main thread.
 */
void node_note_trip(struct node *node, uint64_t took_ns);

/*
 * Send nothing more to the node, and close clients that wait at the node. The node is a replica
 * now, and its name leads to a master.
 */
void node_demote(struct node *node);

/*
 * Note the role from an answer to HELLO. A master that has become a replica is demoted, for good.
 * In a cluster the role follows from the topology. The main thread asks the nodes, and the node
 * keeps getting calls until other nodes are known to serve the slots.
 */
void node_note_role(struct node *node, enum node_role role);

/*
 * The main thread must ask the node for its role, and resolve its name. Called when a lane was lost
 * or refused, or a reply says that the node takes no writes. Repeated calls cause one question.
 */
void node_ask(struct node *node);

static inline bool node_is_asked(const struct node *node)
{
    return atomic_load_explicit(&node->is_asked, memory_order_relaxed);
}

/*
 * Note whether a node of a cluster is a replica that clients read from. Affects lanes opened from
 * now on.
 */
static inline void node_set_read_only(struct node *node, bool is_read_only)
{
    atomic_store_explicit(&node->is_read_only, is_read_only, memory_order_relaxed);
}

static inline bool node_is_read_only(const struct node *node)
{
    return atomic_load_explicit(&node->is_read_only, memory_order_relaxed);
}

/* True if the node was a master, and now says that it is a replica. */
static inline bool node_is_demoted(const struct node *node)
{
    return atomic_load_explicit(&node->is_demoted, memory_order_relaxed);
}

static inline bool node_is_barred(const struct node *node)
{
    return atomic_load_explicit(&node->is_barred, memory_order_relaxed);
}

/* True if the node is up, as far as known, but does not answer. */
static inline bool node_is_silent(const struct node *node)
{
    return atomic_load_explicit(&node->is_silent, memory_order_relaxed);
}

/* True if weir's own connection to the node is up: lanes can probably be opened. */
static inline bool node_answers(const struct node *node)
{
    return atomic_load_explicit(&node->answers, memory_order_relaxed);
}

/* Returns the nonce form that proves that a lane to the node is clean. */
static inline enum nonce_form node_nonce_form(const struct node *node)
{
    return (enum nonce_form)atomic_load_explicit(&node->nonce_form, memory_order_relaxed);
}

/*
 * node_lacks notes a missing permission or feature. The lack is logged once, until
 * node_lacks_no_more.
 */
void node_lacks(struct node *node, enum lack lack);
void node_lacks_no_more(struct node *node, enum lack lack);

/*
 * node_login_keys returns the configuration keys of weir's own login, for the log. node_login_lack
 * returns the lack when the node refuses that login.
 */
const char *node_login_keys(const struct node *node);
enum lack node_login_lack(const struct node *node);

/*
 * Note whether the node accepts weir's own login. Logs when a refused login is accepted. Any
 * thread.
 */
void node_note_login(struct node *node, bool is_accepted);

/* The node has answered MOVED or ASK without a slot or an address: logged once. Any thread. */
void node_note_bad_redirect(struct node *node);

/* The node may no longer require a password: auth_probe must check. */
static inline void node_doubt(struct node *node)
{
    atomic_store_explicit(&node->is_doubted, true, memory_order_relaxed);
}

/*
 * Redis decides whether a connection is served without a login when the connection is opened. Later
 * changes of the password of `default` do not affect the connection. Each node therefore has auth
 * generations: a new generation begins whenever that password may have been set or removed. A
 * client that connected in one auth generation uses no connection opened in an earlier generation.
 * The lowest bit of the number is set if a password is required, as far as known.
 */
#define AUTH_GENERATION_NEEDS_AUTH 1u

static inline uint32_t node_auth_generation(const struct node *node)
{
    return atomic_load_explicit(&node->auth_generation, memory_order_acquire);
}

/* weir has passed on a command that may have set or removed the password. */
static inline void node_end_auth_generation(struct node *node)
{
    atomic_fetch_add_explicit(&node->auth_generation, 2, memory_order_acq_rel);
}

/*
 * A new connection has found out whether a password is required. A change begins a new auth
 * generation.
 */
static inline void node_note_auth(struct node *node, bool needs_auth)
{
    uint32_t auth_generation = node_auth_generation(node);
    while (
        (auth_generation & AUTH_GENERATION_NEEDS_AUTH) != (uint32_t)needs_auth &&
        !atomic_compare_exchange_weak_explicit(&node->auth_generation, &auth_generation,
                                               (auth_generation + 2) ^ AUTH_GENERATION_NEEDS_AUTH,
                                               memory_order_acq_rel, memory_order_acquire))
        ;
}

/*
 * weir has passed on CLIENT PAUSE ... WRITE. A later pause does not shorten a longer pause.
 * until_ns 0 ends the pause.
 */
static inline void node_pause(struct node *node, uint64_t until_ns)
{
    uint64_t now = atomic_load_explicit(&node->paused_until_ns, memory_order_relaxed);
    while ((until_ns == 0 || now < until_ns) &&
           !atomic_compare_exchange_weak_explicit(&node->paused_until_ns, &now, until_ns,
                                                  memory_order_relaxed, memory_order_relaxed))
        ;
}

static inline bool node_is_paused(const struct node *node, uint64_t now_ns)
{
    return now_ns < atomic_load_explicit(&node->paused_until_ns, memory_order_relaxed);
}

/*
 * The estimated reply bytes still to arrive for calls of clients that have left. node_add_left adds
 * `bytes`; a negative number (modulo 2^64) subtracts.
 */
static inline uint64_t node_left_bytes(const struct node *node)
{
    return atomic_load_explicit(&node->left_bytes, memory_order_relaxed);
}

static inline void node_add_left(struct node *node, uint64_t bytes)
{
    atomic_fetch_add_explicit(&node->left_bytes, bytes, memory_order_relaxed);
}

#endif
