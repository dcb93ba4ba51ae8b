/*
 * What the answers to special requests mean for their client's state: where it may go on, and whether it goes on at all.
 */
#ifndef WEIR_FRONT_EFFECT_H
#define WEIR_FRONT_EFFECT_H

#include "front/client.h"
#include "resp/glimpse.h"
#include "upstream/lane.h"

/* A call with CALL_LOOK has been answered. */
void effect_apply(struct client *client, const struct call *call, const struct glimpse *reply);

/* What was queued since MULTI will not be carried out, or has been. */
void effect_forget_queued(struct client *client);

/* It keeps its own lane for good, and nobody has it afterwards. */
void effect_pin(struct client *client);

/* HOLD_*: Redis remembers that of it on its lane from now on. */
void effect_bind(struct client *client, uint8_t what);

/* It has left its lane, and nothing that Redis remembers of it there binds it any more. */
void effect_release(struct client *client);

/* From here on its replies cannot be told apart. */
void effect_be_raw(struct client *client);

#endif
