/*
 * What time does to a worker's lanes: one that is not opened in time, hangs, is stalled, idle or unused for too long is
 * given up.
 *
 * Two timers, each of which stops by itself when there is nothing left to look at.
 */
#ifndef WEIR_UPSTREAM_TIMERS_H
#define WEIR_UPSTREAM_TIMERS_H

#include "upstream/lanes.h"

/* lanes->loop and lanes->upstream are set. */
void timers_init(struct lanes *lanes);
void timers_close(struct lanes *lanes);

/* There is a lane with a deadline, or a reconnect is due. */
void timers_tick(struct lanes *lanes);

/* There is a lane that may become too old. */
void timers_sweep(struct lanes *lanes);

#endif
