#include "front/cluster/changed_reply.h"

#include "front/cluster/emulated.h"
#include "front/cluster/gather.h"
#include "front/client/session.h"

bool changed_reply_is_due(const struct client *client, enum effect effect)
{
    return (effect == EFFECT_HELLO || effect == EFFECT_INFO) && client->front->nodes.commons.upstream->is_cluster;
}

void changed_reply_ask(struct client *client)
{
    client_wait(client, WAIT_ANSWER);
    gather_begin(client, SLICE(""));
}

void changed_reply_answered(struct client *client, enum effect effect)
{
    struct slice bytes = gathered(client);
    size_t before = gathered_before(client);
    struct slice reply = slice_of(bytes.at + before, bytes.len - before);
    const char *node = lane_node(client->rider.lane)->text;
    struct build out;
    build_init(&out, session_protocol(client) == 3);
    bool is_changed = effect == EFFECT_HELLO ? emulated_hello(reply, &out) : emulated_info(reply, node, &out);
    if (is_changed && !out.is_broken) {
        if (before > 0)
            client_output(client, bytes.at, before);
        client_output(client, out.at, out.len);
        gather_drop(client);
    } else {
        gather_release(client);
    }
    build_fini(&out);
    client_resume(client, WAIT_ANSWER);
}
