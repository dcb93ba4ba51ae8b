/*
 * The end of a passthrough lane (lane_pass_through). How many answers are still to come nobody can count, so behind
 * all requests goes
 * a nonce: what comes before its answer is the owner's, and with it the lane ends. An owner who has asked for silence
 * hears no answer: for him RESET, which ends that, and another nonce stand behind it.
 */
#ifndef WEIR_UPSTREAM_RAW_END_H
#define WEIR_UPSTREAM_RAW_END_H

#include "upstream/lane/lane.h"

/*
 * Nothing more will be sent on it. When the owner has had all, it is woken, without a lane. May be
 * called again. Where the owner has ended its side of its own connection, lane_part does instead:
 * Redis gives what it can write at once.
 */
void raw_end_begin(struct lane *lane);

/* On a lane that ends so: take these bytes. */
void raw_end_take(struct lane *lane, struct slice bytes);

/* On such a lane: no more will come. What is held of it goes to the owner. */
void raw_end_flush(struct lane *lane);

#endif
