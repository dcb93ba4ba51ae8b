#include "front/carried.h"

void carried_forget(struct client *client)
{
    struct carry *carry = carry_of(client);
    if (carry == NULL)
        return;
    queue_drop(&carry->queue, &client->front->loop->pool);
    carry->is_begun = carry->is_refused = carry->is_void = false;
    carry->must_move = carry->is_lost = carry->asks_there = false;
}
