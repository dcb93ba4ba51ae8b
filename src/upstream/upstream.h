/*
 * What is known of the upstream, by whoever learnt it last; read and written by all threads.
 */
#ifndef WEIR_UPSTREAM_UPSTREAM_H
#define WEIR_UPSTREAM_UPSTREAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/link.h"
#include "net/tls_context.h"
#include "upstream/owned.h"
#include "upstream/room.h"

#define UPSTREAM_WORKERS_MAX 256

struct upstream {
    struct endpoint endpoint;
    const char *text;                       /* the address as configured, for the log */
    pthread_mutex_t tls_lock;               /* of the next, which a reload replaces */
    struct tls_context *tls;                /* one reference; NULL: plain */
    uint64_t connect_timeout_ns;            /* for connecting, and for each answer until a connection is ready */
    bool lends_login;                       /* who does not log in travels as weir's own user */
    uint64_t timeout_ns;                    /* for any answer to a call that does not block; 0: none */
    _Atomic bool is_barred;                 /* it cannot be served (a cluster, too old): nobody may use it */
    _Atomic bool is_doubted;                /* somebody counts on an epoch that wants a password: does it still? */
    _Atomic uint32_t epoch;                 /* upstream_epoch */
    struct room room;                       /* for connections of clients' */
    pthread_mutex_t shed_lock;              /* of the next */
    uv_async_t *shed[UPSTREAM_WORKERS_MAX]; /* each worker's: give back what is only kept; NULL: none */
    struct owned *owned;                    /* those of them that have an owner now */
    uint32_t hurry; /* tests only: what takes seconds takes so many times less; 0: as long as it takes */
    _Atomic uint64_t paused_until_ns; /* CLIENT PAUSE ... WRITE has passed through weir and holds writes until then */
};

void upstream_init(struct upstream *upstream); /* of zeroed memory */
void upstream_fini(struct upstream *upstream);

/* What connections use from now on; those there are keep theirs. Takes a reference of its own. NULL: plain. */
void upstream_set_tls(struct upstream *upstream, struct tls_context *tls);

/* Have all workers give back the connections that they only keep: `shed` of each is called on its own thread. */
void upstream_shed(struct upstream *upstream);
void upstream_enter_shed(struct upstream *upstream, uv_async_t *shed);
void upstream_leave_shed(struct upstream *upstream, uv_async_t *shed);

/* As link_connect, to the upstream. */
__attribute__((warn_unused_result)) int upstream_connect(struct upstream *upstream, struct link *link,
                                                         struct loop *loop, const struct link_ops *ops);

/*
 * Whom Redis takes a connection for that does not log in is settled when it is opened, and stays whatever becomes of
 * the password of `default`. So time is divided into epochs: a new one whenever that may have changed. Who came in one
 * uses no connection opened in an earlier one. The lowest bit says whether a password is wanted, as far as is known.
 */
#define EPOCH_NEEDS_AUTH 1u

static inline uint32_t upstream_epoch(const struct upstream *upstream)
{
    return atomic_load_explicit(&upstream->epoch, memory_order_acquire);
}

/* Something has passed that may have changed it. */
static inline void upstream_end_epoch(struct upstream *upstream)
{
    atomic_fetch_add_explicit(&upstream->epoch, 2, memory_order_acq_rel);
}

/* A new connection has found out: a new epoch if that is news. */
static inline void upstream_note_auth(struct upstream *upstream, bool needs_auth)
{
    uint32_t epoch = upstream_epoch(upstream);
    while ((epoch & EPOCH_NEEDS_AUTH) != (uint32_t)needs_auth &&
           !atomic_compare_exchange_weak_explicit(&upstream->epoch, &epoch, (epoch + 2) ^ EPOCH_NEEDS_AUTH,
                                                  memory_order_acq_rel, memory_order_acquire))
        ;
}

/* A longer pause is not shortened by a later one; until_ns 0 ends it. */
static inline void upstream_pause(struct upstream *upstream, uint64_t until_ns)
{
    uint64_t now = atomic_load_explicit(&upstream->paused_until_ns, memory_order_relaxed);
    while ((until_ns == 0 || now < until_ns) &&
           !atomic_compare_exchange_weak_explicit(&upstream->paused_until_ns, &now, until_ns, memory_order_relaxed,
                                                  memory_order_relaxed))
        ;
}

static inline bool upstream_is_paused(const struct upstream *upstream, uint64_t now_ns)
{
    return now_ns < atomic_load_explicit(&upstream->paused_until_ns, memory_order_relaxed);
}

#endif
