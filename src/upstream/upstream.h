/*
 * What all servers that weir forwards to have in common: time-outs, TLS, and how many connections there may be to them.
 * Any thread.
 */
#ifndef WEIR_UPSTREAM_UPSTREAM_H
#define WEIR_UPSTREAM_UPSTREAM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "net/tls_context.h"
#include "upstream/room.h"

#define UPSTREAM_WORKERS_MAX 256

struct upstream {
    pthread_mutex_t tls_lock;               /* of the next, which a reload replaces */
    struct tls_context *tls;                /* one reference; NULL: plain */
    uint64_t connect_timeout_ns;            /* for connecting, and for each answer until a connection is ready */
    uint64_t timeout_ns;                    /* for any answer to a call that does not block; 0: none */
    bool lends_login;                       /* who does not log in travels as weir's own user */
    struct room room;                       /* for connections of clients' */
    pthread_mutex_t shed_lock;              /* of the next */
    uv_async_t *shed[UPSTREAM_WORKERS_MAX]; /* each worker's: give back what is only kept; NULL: none */
    uint32_t hurry; /* tests only: what takes seconds takes so many times less; 0: as long as it takes */
};

void upstream_init(struct upstream *upstream); /* of zeroed memory */
void upstream_fini(struct upstream *upstream);

/* What connections use from now on; those there are keep theirs. Takes a reference of its own. NULL: plain. */
void upstream_set_tls(struct upstream *upstream, struct tls_context *tls);

/* A reference for the caller, or NULL. */
struct tls_context *upstream_tls(struct upstream *upstream);

/* Have all workers give back the connections that they only keep: `shed` of each is called on its own thread. */
void upstream_shed(struct upstream *upstream);
void upstream_enter_shed(struct upstream *upstream, uv_async_t *shed);
void upstream_leave_shed(struct upstream *upstream, uv_async_t *shed);

#endif
