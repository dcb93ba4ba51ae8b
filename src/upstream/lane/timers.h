/*
 * What time does to a worker's lanes to one node: one that is not opened in time, hangs, is stalled, idle or unused for
 * too long is given up; one whose password has been replaced logs in again.
 *
 * Two timers, started by lanes_tick and lanes_sweep, each of which stops by itself when there is nothing left to look
 * at.
 */
#ifndef WEIR_UPSTREAM_TIMERS_H
#define WEIR_UPSTREAM_TIMERS_H

#include "upstream/lane/lanes.h"

/* Behind lanes_init, and before lanes_close. */
void timers_init(struct lanes *lanes);
void timers_close(struct lanes *lanes);

#endif
