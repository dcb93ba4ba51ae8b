/*
 * LIMIT commands that Redis decides (LIMIT FUNNEL ..., CL.THROTTLE), on their way: a run of them flows as one, whatever
 * else the client sends waits for their answers, and they for its.
 */
#ifndef WEIR_FRONT_DECISIONS_H
#define WEIR_FRONT_DECISIONS_H

#include <stdbool.h>

#include "front/client/client.h"
#include "front/route/request.h"
#include "quota/quota.h"

/* Can the next one go, or must something else be answered first? Then the client's link will be woken. */
bool decisions_can_go(struct client *client);

/* Ask; the gate has let it pass. */
void decisions_ask(struct client *client, const struct request *request);

/* A reply of weir's own behind those of the calls that are asked now. */
void decisions_answer_behind(struct client *client, struct slice reply);

/* For quota_new. */
void decisions_done(struct decision *decision);

/*
 * The client has ended its side: no call of its waits longer. False: one is waiting now, so the client is to be
 * closed.
 */
bool decisions_hurry(struct client *client);

/* The client is closed: its calls are forgotten; what is on its way is decided for nobody. */
void decisions_cancel(struct client *client);

/* On a cluster: the slot of the keys of a LIMIT command, as they stand in Redis; or KEYS_NO_SLOT, KEYS_CROSSING. */
int32_t decisions_slot(struct client *client, const struct request *request);

#endif
