/*
 * A call that comes back from a place: Redis has not run it, and it goes on as a hop.
 *
 * Its reply has its position within the run of the place. It is charged, counted and timed as the
 * call was. Owner: itself, from the refusal to the reply; the worker's thread.
 */
#ifndef WEIR_FRONT_TAKEN_H
#define WEIR_FRONT_TAKEN_H

#include "front/route/place.h"
#include "upstream/node/not_run.h"

/* As client_ops.on_not_run: the oldest call at the place. */
bool taken_begin(struct place *place, const struct call *call, enum not_run row, struct slice reply);

#endif
