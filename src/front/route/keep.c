#include "front/route/keep.h"

#include "front/route/unanswered.h"

enum kept_kind keep_kind(const struct command *command)
{
    if ((command->flags & CMD_WRITE) != 0)
        return KEPT_WRITE;
    return (command->flags & CMD_READONLY) != 0 ? KEPT_READ : KEPT_OTHER;
}

bool keep_always(struct client *client, const struct command *command, struct slice bytes, uint32_t n)
{
    struct extra *extra = client_want_extra(client);
    return extra != NULL &&
           unanswered_add(&extra->unanswered, &client->front->loop->pool, keep_kind(command), bytes, n) != NULL;
}

struct slice keep_bytes(const struct request *request)
{
    const struct command *command = request->command;
    bool is_plain = command->flow == FLOW_ONE && command->effect == EFFECT_NONE && !command->may_forge &&
                    command->id != 0 && !request->is_large;
    return is_plain ? request->bytes : slice_of("", 0);
}

void keep_nothing(struct client *client)
{
    if (client->extra != NULL)
        unanswered_clear(&client->extra->unanswered, &client->front->loop->pool);
}
