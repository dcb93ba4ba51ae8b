/*
 * Time-outs of a worker's lanes to one node. A lane that opens too slowly, hangs, or is stopped,
 * idle or unused for too long is closed. A lane with a replaced password logs in again.
 *
 * lanes_tick and lanes_sweep start the two timers. Each timer stops itself when nothing is left to
 * check.
 */
#ifndef WEIR_UPSTREAM_TIMERS_H
#define WEIR_UPSTREAM_TIMERS_H

#include "upstream/lane/lanes.h"

/* Call timers_init after lanes_init, and timers_close before lanes_close. */
void timers_init(struct lanes *lanes);
void timers_close(struct lanes *lanes);

#endif
