/*
 * A call that comes back from a place: Redis has not run the call, and the call continues as a hop.
 *
 * The reply keeps its position within the place's run. The call's charge, counters and times
 * continue in the hop. Owner: the hop itself, from the refusal to the reply. Thread: the worker's.
 */
#ifndef WEIR_FRONT_TAKEN_H
#define WEIR_FRONT_TAKEN_H

#include "front/route/place.h"
#include "upstream/node/not_run.h"

/* As client_ops.on_not_run, for the oldest call at the place. */
bool taken_begin(struct place *place, const struct call *call, enum not_run row,
                 struct slice reply);

#endif
