/*
 * WAIT coverage: WAIT and WAITAOF count replicas, or disks, for all writes of a client, even if the
 * writes went on several lanes.
 *
 * Redis answers WAIT for the last command on WAIT's own connection that Redis sent to replicas. A
 * client may have written on another lane before its first WAIT. The first WAIT therefore pins the
 * client to a private lane, for its writes and further WAITs. weir opens the private lane with a
 * write of its own (lend_covering), which Redis runs after all earlier writes. A published message
 * in place of the write would not suffice: Redis sends messages to replicas, but not to its
 * append-only file.
 *
 * In three cases weir does not open a lane with a write:
 * - weir may not write the key.
 * - The client is pinned to another lane already.
 * - A lane to Redis was lost since the client wrote.
 *
 * In all three cases WAIT counts no replica until Redis has answered a write on the client's lane.
 * Inside MULTI, WAIT covers its own lane only.
 */
#ifndef WEIR_FRONT_WAIT_COVERAGE_H
#define WEIR_FRONT_WAIT_COVERAGE_H

#include "front/client/client.h"
#include "front/route/request.h"
#include "front/rules.h"
#include "upstream/lane/calls.h"

#define COVERAGE_KEY_ROOM PREFIX_COVER_ROOM

/* Returns worker_lanes.n_broken in the form of client.wrote_at, which is never 0. */
static inline uint32_t coverage_time(const struct client *client)
{
    return client->front->nodes.worker_lanes.n_broken | 1U << 31;
}

/*
 * True if a lane was lost since the client wrote: Redis may have restarted without the client's
 * writes.
 */
static inline bool coverage_is_lost(const struct client *client)
{
    return client->wrote_at != 0 && client->wrote_at != coverage_time(client);
}

/* Records that the client may have written on another lane than the lane of its next WAIT. */
static inline void coverage_note_elsewhere(struct client *client)
{
    if (client->wrote_at == 0)
        client->wrote_at = coverage_time(client);
}

/* Called when the client sends a request that may write. */
static inline void coverage_note_write(struct client *client)
{
    if (!client_has_own_lane(client))
        coverage_note_elsewhere(client);
}

/*
 * True if only a further write on the client's lane can give WAIT coverage: the client keeps a lane
 * that covers only later writes. A pin keeps the lane. `lanes = private` keeps the lane too,
 * although the client may have had another lane before RESET.
 */
static inline bool coverage_is_sought(const struct client *client)
{
    return client->wrote_at != 0 && client_has_own_lane(client) &&
           (client->pins != 0 || client->front->settings->lanes_private);
}

/* True if weir must open the lane for this request with a write. */
static inline bool coverage_is_wanted(const struct client *client, const struct request *request)
{
    return client->wrote_at != 0 && request_effect(request) == EFFECT_WAIT &&
           !transaction_is_open(&client->transaction) && !coverage_is_lost(client);
}

/* True if a write that may cover this WAIT is not answered yet. */
static inline bool coverage_must_wait(const struct client *client, const struct request *request)
{
    return coverage_is_sought(client) && client->lane_user.in_flight > 0 &&
           request_effect(request) == EFFECT_WAIT;
}

/*
 * Returns the key of the covering write, in `out`: one of the keys that weir's own user may write
 * for LIMIT.
 */
struct slice coverage_key(const struct client *client, char out[COVERAGE_KEY_ROOM]);

/* Called when the client has got `lane`, a private lane that is ready. */
void coverage_note_lane(struct client *client, struct lane *lane);

/*
 * Called when `call` was recorded for a request of the client on its private lane, outside MULTI.
 */
void coverage_note_sent(struct client *client, const struct request *request, struct call *call);

/*
 * Called by the row WAIT (coverage_wait_answered) and the row WRITE (coverage_write_answered) of
 * stateful.c.
 */
void coverage_wait_answered(struct client *client, const struct call *call,
                            const struct glimpse *reply);
void coverage_write_answered(struct client *client, const struct glimpse *reply);

#endif
