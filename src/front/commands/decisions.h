/*
 * LIMIT commands that Redis decides (LIMIT FUNNEL ..., CL.THROTTLE), from request to reply.
 * Consecutive decisions of a client are pipelined. A request of another kind waits for the replies
 * of all decisions, and vice versa.
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

/* Callback for quota_new. */
void decisions_done(struct decision *decision);

/*
 * Called when the client has half-closed: none of its decisions waits any longer. False if a
 * decision is already waiting; the caller must then close the client.
 */
bool decisions_hurry(struct client *client);

/*
 * Called when the client is closed. Forgets the client's decisions; decisions sent to Redis end
 * without a reply.
 */
void decisions_cancel(struct client *client);

/*
 * On a cluster: returns the slot of the keys of a LIMIT command, as the keys are named in Redis. If
 * the keys have no single slot, returns KEYS_NO_SLOT or KEYS_CROSSING.
 */
int32_t decisions_slot(struct client *client, const struct request *request);

#endif
