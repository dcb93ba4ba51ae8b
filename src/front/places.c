#include "front/places.h"

#include "limit/keys.h"

bool places_take(const struct client *client, const struct request *request)
{
    (void)client;
    (void)request;
    return false;
}

struct nodes_row *places_row_for(const struct client *client, const struct request *request)
{
    int32_t slot = keys_slot(request->command, request->bytes, request->argc);
    return slot >= 0 ? nodes_slot_row(&client->front->nodes, (uint16_t)slot) : front_home(client->front);
}
