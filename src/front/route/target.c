#include "front/route/target.h"

#include "front/cluster/carried.h"
#include "front/cluster/spread.h"
#include "limit/command/keys.h"
#include "limit/command/slot.h"

struct nodes_row *target_row(const struct client *client)
{
    const struct nodes *nodes = &client->front->nodes;
    const struct spread *spread = client_extra(client)->spread;
    for (size_t i = 0; spread != NULL && spread->target != NULL && i < nodes->n; i++)
        if (nodes->rows[i] == spread->target)
            return spread->target;
    return nodes_default_row(nodes);
}

bool target_set(struct client *client, struct nodes_row *row)
{
    struct spread *spread = client_need_spread(client);
    if (spread != NULL)
        spread->target = row;
    return spread != NULL;
}

bool target_is_held(const struct client *client)
{
    const struct lane *lane = client_has_own_lane(client) ? client->lane_user.lane : NULL;
    return lane != NULL && (pin_has(client, PIN_WATCH) || pin_has(client, PIN_PASSTHROUGH) ||
                            transaction_is_open(&client->transaction) || lane_is_subscribed(lane) ||
                            lane_is_monitoring(lane) || client_extra(client)->passage != NULL);
}

int32_t target_slot(const struct request *request)
{
    struct slice key;
    int32_t slot = keys_slot(request->command, request->bytes, request->argc);
    bool is_first_seen = slot == KEYS_HIDDEN_SLOT &&
                         keys_first(request->command, request->bytes, request->argc, &key);
    return is_first_seen ? slot_of(key) : slot;
}

struct nodes_row *target_for(const struct client *client, const struct request *request)
{
    const struct nodes *nodes = &client->front->nodes;
    bool has_lane = client_has_own_lane(client) && client->lane_user.lane != NULL;
    if (target_is_held(client))
        return nodes_row_of(client->lane_user.lane);
    const struct carry *carry = carry_of(client);
    for (size_t i = 0; carry != NULL && carry->is_probed && request->is_large && i < nodes->n; i++)
        if (nodes->rows[i] == carry->owner)
            return carry->owner;
    int32_t slot = target_slot(request);
    struct nodes_row *row = slot >= 0 ? nodes_slot_row(nodes, (uint16_t)slot) : NULL;
    if (row != NULL)
        return row;
    if (slot < 0 && (request->command->flags & CMD_PUBSUB) != 0)
        return nodes_pubsub_row(nodes);
    return has_lane && slot < 0 ? nodes_row_of(client->lane_user.lane) : nodes_default_row(nodes);
}
