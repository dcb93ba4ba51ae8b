#include "front/route/destination.h"

#include "front/commands/decisions.h"
#include "front/client/read_side.h"
#include "front/route/reads.h"
#include "limit/command/keys.h"
#include "quota/quota.h"

static int32_t slot_of_request(struct client *client, const struct request *request)
{
    return quota_decides(request->command) ? decisions_slot(client, request)
                                           : keys_slot(request->command, request->bytes, request->argc);
}

static bool is_for_many(const struct command *command)
{
    return command->fanout == FANOUT_MASTERS || command->fanout == FANOUT_NODES || command->fanout == FANOUT_SCAN;
}

static void tell(struct explained_call *call, const struct nodes_row *row, const char *why)
{
    call->server = slice_str(row != NULL ? lanes_node(&row->lanes)->text : "none");
    call->server_why = slice_str(row != NULL ? why : "no node serves the slot");
}

static void tell_of_cluster(struct client *client, const struct request *request, struct explained_call *call)
{
    const struct nodes *nodes = &client->front->nodes;
    const struct command *command = request->command;
    bool is_own = command->flow == FLOW_OWN && !quota_decides(command);
    int32_t slot = is_own ? KEYS_NO_SLOT : slot_of_request(client, request);
    call->has_slot = slot >= 0;
    call->slot = slot >= 0 ? (uint16_t)slot : 0;
    if (is_own) {
        call->server = SLICE("none");
        call->server_why = SLICE("weir itself answers");
    } else if (slot == KEYS_CROSSING || is_for_many(command)) {
        call->server = SLICE("several");
        call->server_why =
            slot == KEYS_CROSSING ? SLICE("its keys have different slots") : SLICE("it concerns each master");
    } else if (slot >= 0) {
        tell(call, nodes_slot_row(nodes, (uint16_t)slot), "it serves the slot");
    } else if ((command->flags & CMD_PUBSUB) != 0) {
        tell(call, nodes_pubsub_row(nodes), "all channels that are no shard's are there");
    } else {
        tell(call, nodes_home(nodes), "it is the home node, and the command names no key");
    }
}

void destination_tell(struct client *client, const struct request *request, struct explained_call *call)
{
    const char *why;
    call->is_of_cluster = client->front->nodes.commons.upstream->is_cluster;
    if (call->is_of_cluster) {
        tell_of_cluster(client, request, call);
        return;
    }
    if (read_side_of(client) == NULL)
        return;
    call->server = slice_str(reads_explain(client, request->command, &why)->text);
    call->server_why = slice_str(why);
}
