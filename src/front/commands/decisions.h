/*
 * LIMIT commands that Redis decides (LIMIT FUNNEL ..., CL.THROTTLE), from request to reply.
 * Consecutive decisions of a client are pipelined. Other requests wait for the replies of all
 * decisions. Decisions wait for the replies of other requests.
 */
#ifndef WEIR_FRONT_DECISIONS_H
#define WEIR_FRONT_DECISIONS_H

#include <stdbool.h>

#include "front/client/client.h"
#include "front/route/request.h"
#include "quota/quota.h"

/*
 * True if the next decision request may go. False if earlier requests must be answered first; the
 * client's link will be woken.
 */
bool decisions_can_go(struct client *client);

/* Starts the decision. The gate has let the request pass. */
void decisions_ask(struct client *client, const struct request *request);

/* Queues a reply of weir behind the replies of pending decisions. */
void decisions_answer_behind(struct client *client, struct slice reply);

/* Receives each finished decision: a callback for quota_new. */
void decisions_done(struct decision *decision);

/*
 * Called when the client has half-closed. From now on no decision of the client begins to wait for
 * a permit. False if a decision is already waiting; the caller must then close the client.
 */
bool decisions_hurry(struct client *client);

/*
 * Called when the client is closed. Forgets the client's decisions; decisions sent to Redis end
 * without a reply.
 */
void decisions_cancel(struct client *client);

/*
 * On a cluster: returns the slot of the keys of a LIMIT command, by the names of the keys in Redis.
 * Returns KEYS_CROSSING if the keys have several slots, KEYS_NO_SLOT if the request is invalid or
 * memory is out.
 */
int32_t decisions_slot(struct client *client, const struct request *request);

#endif
