#include "front/cluster/gather.h"

#include <stdlib.h>

#include "base/bytes.h"
#include "front/client/session.h"
#include "front/cluster/emulated.h"
#include "quota/command_merge.h"
#include "resp/scan.h"

#define GATHER_MAX (8 << 20) /* bytes; a longer reply is passed on unchanged (chosen) */

struct gather {
    /*
     * push messages that came before the reply, followed by the part of the reply received so far
     */
    struct bytes reply;
    size_t request_len;
    char request[];
};

bool gather_is_due(const struct client *client, enum effect effect)
{
    return effect == EFFECT_COMMAND || ((effect == EFFECT_HELLO || effect == EFFECT_INFO) &&
                                        client->front->nodes.worker_lanes.upstream->is_cluster);
}

void gather_begin(struct client *client, struct slice request)
{
    client_wait(client, WAIT_ANSWER);
    struct extra *extra = client_need_extra(client);
    if (extra == NULL || extra->gather != NULL)
        return;
    struct gather *gather = malloc(sizeof *gather + request.len);
    if (gather == NULL)
        return;
    *gather = (struct gather){.request_len = request.len};
    memcpy(gather->request, request.at, request.len);
    extra->gather = gather;
}

static void pass_on(struct client *client, struct slice bytes)
{
    if (bytes.len > 0)
        client_output(client, bytes.at, bytes.len);
}

bool gather_take(struct client *client, const char *data, size_t n)
{
    struct gather *gather = client->extra->gather;
    if (bytes_add(&gather->reply, slice_of(data, n), GATHER_MAX))
        return true;
    client->extra->gather = NULL;
    pass_on(client, bytes_slice(&gather->reply));
    bytes_fini(&gather->reply);
    free(gather);
    return false;
}

/* Returns the last frame, which is the reply. *before holds the bytes in front of the reply. */
static struct slice last_frame(struct slice bytes, struct slice *before)
{
    struct reply_scan scan = {0};
    size_t start = 0;
    size_t at = 0;
    size_t used;
    while (at < bytes.len &&
           reply_scan(&scan, bytes.at + at, bytes.len - at, &used) == SCAN_FRAME) {
        start = at;
        at += used;
    }
    *before = slice_of(bytes.at, start);
    return slice_of(bytes.at + start, bytes.len - start);
}

/* Builds the changed reply in `out`. False if the reply stays unchanged. */
static bool gather_change(struct client *client, const struct gather *gather, enum effect effect,
                          struct slice reply, struct build *out)
{
    if (effect == EFFECT_HELLO)
        return emulated_hello(reply, out);
    if (effect == EFFECT_INFO)
        return emulated_info(reply, lane_node(client->lane_user.lane)->text, out);
    return command_merge(slice_of(gather->request, gather->request_len), reply,
                         client->front->rules->cell != QUOTA_CELL_OFF, out);
}

static void pass_changed(struct client *client, const struct gather *gather, enum effect effect)
{
    struct slice before;
    struct slice reply = last_frame(bytes_slice(&gather->reply), &before);
    struct build out;
    build_init(&out, session_protocol(client) == 3);
    bool is_changed = gather_change(client, gather, effect, reply, &out) && !out.is_broken;
    pass_on(client, before);
    pass_on(client, is_changed ? slice_of(out.at, out.len) : reply);
    build_fini(&out);
}

void gather_end(struct client *client, enum effect effect)
{
    const struct gather *gather = client_extra(client)->gather;
    if (gather != NULL && gather->reply.len > 0)
        pass_changed(client, gather, effect);
    gather_drop(client);
    client_resume(client, WAIT_ANSWER);
}

void gather_drop(struct client *client)
{
    struct gather *gather = client_extra(client)->gather;
    if (gather == NULL)
        return;
    client->extra->gather = NULL;
    bytes_fini(&gather->reply);
    free(gather);
}
