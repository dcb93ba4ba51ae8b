/*
 * The life of a front. A front begins with its worker, accepts clients, adopts new tables, closes
 * all clients, and ends.
 */
#ifndef WEIR_FRONT_LIFE_H
#define WEIR_FRONT_LIFE_H

#include "front/front.h"

/*
 * Takes over the references of `tables`. `index`: number of the worker, below settings->n_workers.
 */
void front_init(struct front *front, struct loop *loop, struct front_settings *settings,
                unsigned index, void *worker, const struct tables *tables);

/*
 * A listener has accepted a connection from `peer`. `listen_address` outlives the front. A TCP
 * connection without a peer address is closed at once, since limits by address could not apply to
 * the connection.
 */
void front_accept(struct front *front, int fd, const struct link_peer *peer,
                  const struct listen_address *listen_address);

/* A connection could not be accepted, because the system has no free file descriptor. */
void front_accept_failed(struct front *front, const struct listen_address *listen_address);

/*
 * Adopts other tables, and takes over their references. The new tables apply to the next command of
 * each client. The caller then calls front_bind_some once in each iteration of the loop, until
 * front_bind_some returns true. By then every client is bound to the new rules, and the old tables
 * are released. front_adopt is not allowed while front_is_binding is true. If only the topology
 * differs, no client is bound again.
 */
void front_adopt(struct front *front, const struct tables *tables);
bool front_bind_some(struct front *front);

static inline bool front_is_binding(const struct front *front)
{
    return walk_is_on(&front->binding_walk);
}

/* Closes every client and every lane; asynchronous. */
void front_close(struct front *front);

/* Call after the loop has ended. */
void front_fini(struct front *front);

#endif
