/*
 * One server of the upstream: its address, and what workers and the main thread have learnt of it.
 *
 * Counted by references; any thread. Login, TLS and time-outs are those of the upstream that it belongs to.
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
    struct upstream *upstream; /* lives longer */
    struct endpoint endpoint;
    char *text;             /* its address as configured, for the log; heap */
    char *server_name;      /* what its certificate must bear, where upstream-tls-server-name says nothing; heap */
    char *address;          /* where that leads; "": nowhere yet; heap */
    struct owned *owned;    /* the connections to it that have an owner now */
    struct proven proven;   /* passwords by which clients of any worker have come in */
    _Atomic bool is_barred; /* weir cannot serve it (a cluster, a Sentinel, too old): no lane is asked for */
    _Atomic uint32_t proven_number; /* of weir's passwords, the newest one that it has accepted: login.h */
    _Atomic uint32_t lacks;         /* what weir does not get of it: a bit for each enum lack */
    _Atomic uint8_t nonce_form;     /* enum nonce_form that it answers; set by control.c */
    _Atomic bool answers;           /* weir's own connection is up; set by control.c */
    _Atomic bool is_silent;         /* it does not answer weir's own question (heartbeat.h) */
    _Atomic bool is_told_login;     /* the log says that it does not accept weir's own login */
    _Atomic bool is_told_away;      /* the log says that it is away: workers find it out at the same time */
    _Atomic bool is_told_redirect;  /* the log says that it has answered a redirect without a slot or an address */
    _Atomic bool is_doubted;        /* auth_probe is to ask whether it still wants a password */
    _Atomic uint32_t epoch;         /* node_epoch */
    _Atomic uint32_t maxclients;    /* connections that it takes, as far as is known; 0: it is not */
    uint64_t trip_ns;               /* node_note_trip; the main thread's. 0: not known */
    struct contention *contention;  /* who sends to it, on all workers; one reference */
    _Atomic uint8_t role;           /* enum node_role, as it has said last */
    _Atomic bool is_asked;          /* node_ask */
    _Atomic bool asks_lanes;        /* it does not tell weir its role: lanes of clients that have logged in ask */
    _Atomic bool is_demoted;   /* it is a replica in place of which there is a master: nothing more is sent to it */
    _Atomic bool is_read_only; /* of a cluster: a replica that clients read from; its shared lanes say READONLY */
    struct reach reach;        /* how far it is behind the master, where clients may read from it */
    _Atomic uint64_t
        left_bytes; /* what clients that have gone left under way, as far as known: front/client/remains.h */
    _Atomic uint64_t paused_until_ns; /* CLIENT PAUSE ... WRITE has passed through weir and holds writes until then */
};

/* What a node is made of. */
struct node_origin {
    struct upstream *upstream;
    const char *text;          /* as configured; copied */
    const char *server_name;   /* as in struct node; copied; NULL: none, as of a node without an address */
    const char *address;       /* of the endpoint; copied */
    struct endpoint endpoint;  /* of length 0: its address is not known */
    const struct node *before; /* the node whose place it takes; NULL: none */
    const struct node *kin;    /* where there is none before: its contention is this one's; NULL: its own */
};

/* With one reference. Out of memory ends the process. */
struct node *node_new(const struct node_origin *origin);
struct node *node_get(struct node *node);
void node_put(struct node *node); /* safe on NULL */

/* As link_connect, to this node. */
__attribute__((warn_unused_result)) int node_connect(struct node *node, struct link *link, struct loop *loop,
                                                     const struct link_ops *ops);

/* False: its name has not been resolved yet, or leads nowhere now. No connection to it can be had. */
static inline bool node_has_address(const struct node *node)
{
    return node->endpoint.length > 0;
}

static inline enum node_role node_role(const struct node *node)
{
    return (enum node_role)atomic_load_explicit(&node->role, memory_order_relaxed);
}

/*
 * A question of weir's own was answered after so long. The least counts, since others wait behind what Redis does;
 * and one part in
 * NODE_TRIP_MORE more with each answer that takes longer, as the way may have become longer. Main thread.
 */
void node_note_trip(struct node *node, uint64_t took_ns);

/* Nothing more is sent to it, and clients that wait there are closed: it is a replica, and its name leads to a master. */
void node_demote(struct node *node);

/*
 * It has said so in HELLO. A master that is a replica now is demoted, for good. In a cluster its role follows from the
 * topology: the main thread has nodes asked, and clients' calls are answered there until slots are known to be
 * elsewhere.
 */
void node_note_role(struct node *node, enum node_role role);

/*
 * A lane to it has been lost or refused, or a reply says that it takes no writes: have the main thread ask what it is,
 * and look its name up. Any number of these is one question.
 */
void node_ask(struct node *node);

static inline bool node_is_asked(const struct node *node)
{
    return atomic_load_explicit(&node->is_asked, memory_order_relaxed);
}

/* Of a cluster: it is a replica that clients read from. For lanes that are opened from now on. */
static inline void node_set_read_only(struct node *node, bool is_read_only)
{
    atomic_store_explicit(&node->is_read_only, is_read_only, memory_order_relaxed);
}

static inline bool node_is_read_only(const struct node *node)
{
    return atomic_load_explicit(&node->is_read_only, memory_order_relaxed);
}

/* True if it was a master and says that it is a replica. */
static inline bool node_is_demoted(const struct node *node)
{
    return atomic_load_explicit(&node->is_demoted, memory_order_relaxed);
}

static inline bool node_is_barred(const struct node *node)
{
    return atomic_load_explicit(&node->is_barred, memory_order_relaxed);
}

/* Is it there, as far as is known, but does not answer? */
static inline bool node_is_silent(const struct node *node)
{
    return atomic_load_explicit(&node->is_silent, memory_order_relaxed);
}

/* True if weir's own connection to it is up: clients' can be had, as far as is known. */
static inline bool node_answers(const struct node *node)
{
    return atomic_load_explicit(&node->answers, memory_order_relaxed);
}

/* How it is asked whether a lane is clean. */
static inline enum nonce_form node_nonce_form(const struct node *node)
{
    return (enum nonce_form)atomic_load_explicit(&node->nonce_form, memory_order_relaxed);
}

/* Note that weir does not get this of it; the log says so once, until node_lacks_no_more. */
void node_lacks(struct node *node, enum lack lack);
void node_lacks_no_more(struct node *node, enum lack lack);

/* The keys of weir's own login, for the log; and what weir lacks where the node does not accept that login. */
const char *node_login_keys(const struct node *node);
enum lack node_login_lack(const struct node *node);

/* Note whether the node accepts weir's own login. The log says so when a refused login is accepted. Any thread. */
void node_note_login(struct node *node, bool is_accepted);

/* It has answered MOVED or ASK without a slot or an address: the log says so once. Any thread. */
void node_note_bad_redirect(struct node *node);

/* It may not want a password any more: have it asked. */
static inline void node_doubt(struct node *node)
{
    atomic_store_explicit(&node->is_doubted, true, memory_order_relaxed);
}

/*
 * Whether a connection that does not log in is served is settled when it is opened, and stays so whatever becomes of
 * the password of `default`. So time is divided into epochs of a node: a new one begins whenever that password may have
 * been set or removed. A client that came in one epoch uses no connection opened in an earlier one. The number's lowest
 * bit says whether a password is wanted, as far as is known.
 */
#define EPOCH_NEEDS_AUTH 1u

static inline uint32_t node_epoch(const struct node *node)
{
    return atomic_load_explicit(&node->epoch, memory_order_acquire);
}

/* A command has passed that may have set or removed the password. */
static inline void node_end_epoch(struct node *node)
{
    atomic_fetch_add_explicit(&node->epoch, 2, memory_order_acq_rel);
}

/* A new connection has found out whether a password is wanted: a new epoch begins if that is news. */
static inline void node_note_auth(struct node *node, bool needs_auth)
{
    uint32_t epoch = node_epoch(node);
    while ((epoch & EPOCH_NEEDS_AUTH) != (uint32_t)needs_auth &&
           !atomic_compare_exchange_weak_explicit(&node->epoch, &epoch, (epoch + 2) ^ EPOCH_NEEDS_AUTH,
                                                  memory_order_acq_rel, memory_order_acquire))
        ;
}

/* CLIENT PAUSE ... WRITE has passed. A longer pause is not shortened by a later one; until_ns 0 ends it. */
static inline void node_pause(struct node *node, uint64_t until_ns)
{
    uint64_t now = atomic_load_explicit(&node->paused_until_ns, memory_order_relaxed);
    while ((until_ns == 0 || now < until_ns) &&
           !atomic_compare_exchange_weak_explicit(&node->paused_until_ns, &now, until_ns, memory_order_relaxed,
                                                  memory_order_relaxed))
        ;
}

static inline bool node_is_paused(const struct node *node, uint64_t now_ns)
{
    return now_ns < atomic_load_explicit(&node->paused_until_ns, memory_order_relaxed);
}

/*
 * What clients that have gone left under way. node_add_left: so many bytes more; with the negative
 * of it, less.
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
