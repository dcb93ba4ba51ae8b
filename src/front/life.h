/*
 * The life of a front: it begins with its worker, lets clients in, adopts other tables, closes them all, and ends.
 */
#ifndef WEIR_FRONT_LIFE_H
#define WEIR_FRONT_LIFE_H

#include "front/front.h"

/* Takes over the references of `tables`. `index` is the worker's among settings->n_workers. */
void front_init(struct front *front, struct loop *loop, struct front_settings *settings, unsigned index, void *worker,
                const struct tables *tables);

/*
 * A connection from `peer` was accepted. `entrance` lives as long as the front. A connection
 * over TCP whose peer has no address is closed unserved: no limit by address could bind it.
 */
void front_accept(struct front *front, int fd, const struct link_peer *peer, const struct entrance *entrance);

/* Somebody wants in, and the system has no descriptor for it. */
void front_accept_failed(struct front *front, const struct entrance *entrance);

/*
 * Other tables; takes over the references. They bind the next command of every client, and every connection once
 * front_bind_some has been called, in one iteration of the loop after the other, until it returns true: then the tables
 * before are let go. Not while that is still under way. Where only the topology is another, nothing is bound.
 */
void front_adopt(struct front *front, const struct tables *tables);
bool front_bind_some(struct front *front);

static inline bool front_is_binding(const struct front *front)
{
    return walk_is_on(&front->binding_walk);
}

/* Close every client and every lane; asynchronous. */
void front_close(struct front *front);

/* After the loop has ended. */
void front_fini(struct front *front);

#endif
