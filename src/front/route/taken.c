#include "front/route/taken.h"

#include <stdlib.h>

#include "front/client/charge.h"
#include "front/route/fair_share.h"
#include "front/route/hop.h"
#include "front/route/overtaken.h"
#include "front/client/timing.h"

/* A call that came back from a place. The reply's position is reserved in the place's strand. */
struct taken {
    struct hop hop;
    struct early_piece *position; /* NULL: the reply is muted */
    uint8_t counted;
    bool is_muted;
};

static void taken_on_reply(struct hop *hop, struct slice reply)
{
    struct taken *taken = container_of(hop, struct taken, hop);
    struct client *client = hop->client;
    struct replies *replies = &client->extra->replies;
    if (hop->arrived_ns != 0)
        timing_not_sent(client, hop->tag, hop->arrived_ns, hop->waited_us);
    charge_answered(client, taken->counted);
    if (taken->is_muted)
        reply = slice_of("", 0);
    else
        charge_bytes_out(client, reply.len, taken->counted);
    const struct spread_outlet outlet = {client_put_out, client};
    if (!client_is_closed(client) && taken->position != NULL &&
        !replies_fill(replies, taken->position, reply))
        client_close_starved(client);
    if (!client_is_closed(client))
        client_limit_unread(client, 0);
    if (!client_is_closed(client) && !spread_go_on(client_extra(client)->spread, replies, &outlet))
        client_close_starved(client);
    free(taken);
}

static void taken_on_lost(struct hop *hop)
{
    free(container_of(hop, struct taken, hop));
}

/*
 * Each key was sent in a request of its own. `reply` is the reply to the whole request; empty: the
 * client is closed.
 */
static void on_keys(void *arg, struct slice reply)
{
    struct taken *taken = arg;
    if (reply.len > 0)
        taken_on_reply(&taken->hop, reply);
    else
        taken_on_lost(&taken->hop);
}

static bool taken_on_try_again(struct hop *hop, struct slice request)
{
    const struct client_ops *client_ops = hop->client->front->client_ops;
    return client_ops->by_keys(hop->client, request, on_keys, container_of(hop, struct taken, hop));
}

static const struct hop_ops ops = {
    .on_reply = taken_on_reply, .on_try_again = taken_on_try_again, .on_lost = taken_on_lost};

bool taken_begin(struct place *place, const struct call *call, enum not_run row, struct slice reply)
{
    struct client *client = place->client;
    if (client->state >= CLIENT_CLOSING)
        return false;
    struct slice bytes = unanswered_oldest(&place->unanswered);
    const struct hop_request request = {.bytes = bytes,
                                        .slot = overtaken_slot_of(client, bytes),
                                        .tag = tags_at(&place->lane_user.lane->tags, 0),
                                        .order = spread_order_of(client->extra->spread, place)};
    const bool is_muted = (call->flags & CALL_MUTE) != 0;
    const struct hop_refusal refusal = {place, row, reply};
    struct taken *taken = malloc(sizeof *taken);
    struct early_piece *position =
        taken != NULL && !is_muted ? strand_hold(&client->extra->replies, &place->strand) : NULL;
    if (taken == NULL || (position == NULL && !is_muted) ||
        !hop_start_refused(&taken->hop, &ops, client, &request, &refusal)) {
        free(taken);
        client_close_starved(client);
        return true;
    }
    taken->position = position;
    taken->counted = call->counted;
    taken->is_muted = is_muted;
    taken->hop.arrived_ns = call->arrived_ns;
    taken->hop.waited_us = call->waited_us;
    fair_share_note_answered(client, call->sent_ns, 1);
    unanswered_drop(&place->unanswered, &client->front->loop->pool, 1);
    return true;
}
