#include "front/holds.h"

#include "upstream/lend.h"

void holds_be_raw(struct client *client)
{
    client->is_raw = true;
    transaction_drop(&client->transaction);
    holds_pin(client);
}

void holds_pin(struct client *client)
{
    client->holds |= HOLD_PINNED;
    if (!client->has_private_lane || client->rider.lane == NULL)
        return;
    lane_spend(client->rider.lane);
    lend_list(client->rider.lane);
}

void holds_add(struct client *client, uint8_t what)
{
    client->holds |= what;
}

void holds_end(struct client *client)
{
    client->holds = 0;
}

void holds_set(struct client *client, uint8_t what, bool is_on)
{
    client->holds = (uint8_t)(is_on ? client->holds | what : client->holds & ~what);
}
