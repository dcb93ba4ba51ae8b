#include "front/cluster/gather.h"

#include <stdlib.h>
#include <string.h>

#include "resp/scan.h"

void gather_begin(struct client *client, struct slice request)
{
    struct extra *extra = client_need_extra(client);
    if (extra == NULL || extra->gather != NULL)
        return;
    struct gather *gather = malloc(sizeof *gather + request.len);
    if (gather == NULL)
        return;
    *gather = (struct gather){.request_len = request.len};
    if (request.len > 0)
        memcpy(gather->request, request.at, request.len);
    extra->gather = gather;
}

bool gather_take(struct client *client, const char *data, size_t n)
{
    struct gather *gather = client->extra->gather;
    if (bytes_add(&gather->reply, slice_of(data, n), GATHER_MAX))
        return true;
    gather_release(client);
    return false;
}

struct slice gathered(const struct client *client)
{
    const struct gather *gather = client_extra(client)->gather;
    return gather != NULL ? bytes_slice(&gather->reply) : slice_of("", 0);
}

size_t gathered_before(const struct client *client)
{
    struct slice bytes = gathered(client);
    struct reply_scan scan = {0};
    size_t start = 0;
    size_t at = 0;
    size_t used;
    while (at < bytes.len && reply_scan(&scan, bytes.at + at, bytes.len - at, &used) == SCAN_FRAME) {
        start = at;
        at += used;
    }
    return start;
}

struct slice gather_request(const struct client *client)
{
    const struct gather *gather = client->extra->gather;
    return slice_of(gather->request, gather->request_len);
}

/* It is the caller's from here on; NULL: there was none. */
static struct gather *take_out(struct client *client)
{
    struct gather *gather = client_extra(client)->gather;
    if (gather != NULL)
        client->extra->gather = NULL;
    return gather;
}

void gather_drop(struct client *client)
{
    struct gather *gather = take_out(client);
    if (gather == NULL)
        return;
    bytes_fini(&gather->reply);
    free(gather);
}

void gather_release(struct client *client)
{
    struct gather *gather = take_out(client);
    if (gather == NULL)
        return;
    if (gather->reply.len > 0)
        client_output(client, gather->reply.at, gather->reply.len);
    bytes_fini(&gather->reply);
    free(gather);
}
