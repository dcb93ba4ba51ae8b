/*
 * Orders that every worker has a part in (LIMIT CLIENTS, LIMIT KICK): they go round, from one worker to the next, and
 * each
 * does its part on its own thread. So nobody waits for anybody, and what is told of two workers is not of one moment.
 */
#ifndef WEIR_FRONT_ROUND_H
#define WEIR_FRONT_ROUND_H

#include "front/front.h"
#include "front/commands/order.h"

#define ROUND_ROWS_MAX 1000 /* clients that LIMIT CLIENTS tells of; of the others how many there are */

/* Some of this worker's part, in each iteration of the loop. True: that was the rest. One order at a time. */
bool front_round_some(struct front *front, struct order *order);

#endif
