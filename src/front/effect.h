/*
 * What the answers to special requests mean for their client's state: where it may go on, and whether it goes on at
 * all.
 */
#ifndef WEIR_FRONT_EFFECT_H
#define WEIR_FRONT_EFFECT_H

#include "front/client.h"
#include "resp/glimpse.h"
#include "upstream/lane.h"

/* A call with CALL_LOOK has been answered. */
void effect_apply(struct client *client, const struct call *call, const struct glimpse *reply);

#endif
