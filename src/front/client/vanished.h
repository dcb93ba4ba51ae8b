/*
 * Closes clients on hosts that have vanished while replies are under way. Where no reply is, keepalive does.
 *
 * Every tcp_peer_look_ns a walk asks each client's socket (link_has_vanished), some in each iteration of the loop.
 */
#ifndef WEIR_FRONT_VANISHED_H
#define WEIR_FRONT_VANISHED_H

#include "front/front.h"

void vanished_init(struct front *front);

/* To be called when the first client has come. */
void vanished_watch(struct front *front);

#endif
