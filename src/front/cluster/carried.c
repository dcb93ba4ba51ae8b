#include "front/cluster/carried.h"

void carried_forget(struct client *client)
{
    struct carry *carry = carry_of(client);
    if (carry == NULL)
        return;
    queue_drop(&carry->queue, &client->front->loop->pool);
    carry->is_begun = carry->is_refused = carry->is_void = false;
    carry->must_move = carry->is_lost = carry->asks_there = false;
    lease_drop(&carry->watching);
}

void carried_note_left(struct client *client)
{
    struct carry *carry = carry_of(client);
    if (carry == NULL)
        return;
    carry->is_lost |= pin_has(client, PIN_WATCH);
    carry->must_move |= carry->is_begun;
    carry->is_begun = false;
}

void carried_watch(struct client *client)
{
    if (carry_of(client) != NULL && client_has_own_lane(client) && client->lane_user.lane != NULL)
        lease_take(&carry_of(client)->watching, client->lane_user.lane);
}

bool carried_has_lost_watch(const struct client *client)
{
    const struct carry *carry = carry_of(client);
    if (carry->is_lost || !pin_has(client, PIN_WATCH))
        return carry->is_lost;
    return !client_has_own_lane(client) || !lease_holds(&carry->watching) ||
           carry->watching.lane != client->lane_user.lane;
}
