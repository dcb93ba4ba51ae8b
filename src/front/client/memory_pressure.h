/*
 * What a worker does while weir is short of memory (base/ladder.h).
 *
 * The main thread measures and says which step it is; the worker gives back what lies idle, and reads nothing from
 * clients that hold more unread replies than their share, until they have read. Their replies go on, in order. So
 * whoever is not read from can always go on by reading; request bytes, which only reading on can use up, are bounded
 * in another way (front/client/intake.h).
 */
#ifndef WEIR_FRONT_MEMORY_PRESSURE_H
#define WEIR_FRONT_MEMORY_PRESSURE_H

#include "front/front.h"

struct client;

/* Do what the main thread has said. To be called whenever it has, and again and again from LADDER_STALL on. */
void memory_pressure_look(struct front *front);

/* The client is gone. */
void memory_pressure_forget(struct client *client);

#endif
