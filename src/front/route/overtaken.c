#include "front/route/overtaken.h"

#include "front/client/client.h"
#include "front/route/request.h"
#include "limit/command/keys.h"

/* Describes the request in `bytes`. False: the bytes are empty or no request. */
static bool overtaken_describe(const struct client *client, struct slice bytes,
                               struct request *request)
{
    struct request_scan scan = {0};
    size_t used;
    *request = (struct request){0};
    if (bytes.len == 0 ||
        request_scan(&scan, &request_limits_normal, bytes.at, bytes.len, &used) != SCAN_FRAME)
        return false;
    describe_request(request, client->front, &scan, bytes);
    return true;
}

static bool overtaken_is_read(const struct request *request)
{
    return keep_kind(request->command) == KEPT_READ;
}

static bool is_overtaken_by(const struct client *client, struct slice refused,
                            const struct request *request)
{
    struct request own;
    if (!overtaken_describe(client, refused, &own))
        return true;
    return !(overtaken_is_read(&own) && overtaken_is_read(request)) &&
           keys_overlap(own.command, own.bytes, own.argc, request->command, request->bytes,
                        request->argc);
}

int32_t overtaken_slot_of(const struct client *client, struct slice bytes)
{
    struct request request;
    return overtaken_describe(client, bytes, &request)
               ? keys_slot(request.command, bytes, request.argc)
               : KEYS_NO_SLOT;
}

void overtaken_note_run(const struct place *place, struct slice bytes)
{
    const struct client *client = place->client;
    const struct spread *spread = client_extra(client)->spread;
    struct request request;
    bool is_known = overtaken_describe(client, bytes, &request);
    int32_t slot = is_known ? keys_slot(request.command, bytes, request.argc) : KEYS_NO_SLOT;
    for (struct list *at = spread->refused.next; at != &spread->refused; at = at->next) {
        struct refused *refused = container_of(at, struct refused, in_spread);
        if (refused->from == place->row && refused->slot >= 0 && !refused->is_overtaken)
            refused->is_overtaken =
                !is_known ||
                (refused->slot == slot && is_overtaken_by(client, refused->request, &request));
    }
}
