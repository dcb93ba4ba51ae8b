/*
 * What WAIT and WAITAOF prove: that replicas, or the disk, have what this client has written, wherever it travelled.
 *
 * Redis answers them for the last command of their own connection that replicas were sent, so a client's writes and its
 * question must be one connection's. From its first WAIT on a client that writes keeps a lane of its own. If it may
 * have written elsewhere before, that lane is opened for it with a message that replicas are sent (lend_covering): what
 * the client had written went before it, so the lane speaks for that too. Where weir may publish nothing, or the
 * client's state binds it to the lane that it has, or a lane has been lost since, no replica is counted until a write
 * on that lane has surely been sent to them: the answer says less than could be true, and never more. Inside MULTI the
 * question is the lane's alone.
 */
#ifndef WEIR_FRONT_PROOF_H
#define WEIR_FRONT_PROOF_H

#include "front/client.h"
#include "front/request.h"
#include "front/rules.h"
#include "upstream/calls.h"

#define PROOF_CHANNEL_ROOM PREFIX_CHANNEL_ROOM

/* What was written before may be lost with the lane that it travelled on: Redis may have been started again. */
static inline bool proof_is_lost(const struct client *client)
{
    return client->wrote_elsewhere && client->n_broken != client->front->nodes.commons.n_broken;
}

/* It may have written on another lane than the one that it will have. */
static inline void proof_note_elsewhere(struct client *client)
{
    if (client->wrote_elsewhere)
        return;
    client->wrote_elsewhere = true;
    client->n_broken = client->front->nodes.commons.n_broken;
}

/* The same, if it may have written on the lane of its own that it leaves. */
static inline void proof_note_leaving(struct client *client)
{
    if (client->wrote_here)
        proof_note_elsewhere(client);
    client->wrote_here = false;
}

/* It sends what may write. */
static inline void proof_note_write(struct client *client)
{
    if (client->has_private_lane)
        client->wrote_here = true;
    else
        proof_note_elsewhere(client);
}

/* Is a write looked for on its own lane, since none of its others speaks for what it has written? */
static inline bool proof_is_sought(const struct client *client)
{
    return client->wrote_elsewhere && client->has_private_lane && (client->is_unproven || client->holds != 0);
}

/* Must the lane for this request speak for what the client has written elsewhere? */
static inline bool proof_is_wanted(const struct client *client, const struct request *request)
{
    return client->wrote_elsewhere && request_effect(request) == EFFECT_WAIT &&
           !transaction_is_open(&client->transaction) && !proof_is_lost(client);
}

/* Is what its lane speaks for still on its way? */
static inline bool proof_must_wait(const struct client *client, const struct request *request)
{
    return proof_is_sought(client) && client->rider.in_flight > 0 && request_effect(request) == EFFECT_WAIT;
}

/* Where the message is published, in `out`: where weir's own login may publish. */
struct slice proof_channel(const struct client *client, char out[PROOF_CHANNEL_ROOM]);

/* This is the client's own lane now, and ready. */
void proof_note_lane(struct client *client, struct lane *lane);

/* For special: `call` is noted for a request on the client's own lane, outside MULTI. */
void proof_note_sent(struct client *client, const struct request *request, struct call *call);

/* A call whose effect is EFFECT_WAIT or EFFECT_WRITE has been answered. */
void proof_answered(struct client *client, const struct call *call, const struct glimpse *reply);

#endif
