#include "front/gather.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 4096

void gather_begin(struct client *client, struct slice request)
{
    struct extra *extra = client_need_extra(client);
    if (extra->gather != NULL)
        return;
    struct gather *gather = malloc(sizeof *gather + request.len);
    if (gather == NULL)
        return;
    *gather = (struct gather){.request_len = request.len};
    if (request.len > 0)
        memcpy(gather->request, request.at, request.len);
    extra->gather = gather;
}

static bool make_room(struct gather *gather, size_t n)
{
    size_t room = gather->room > 0 ? gather->room : FIRST_ROOM;
    if (n > GATHER_MAX - gather->len)
        return false;
    while (room < gather->len + n)
        room *= 2;
    char *at = room > gather->room ? realloc(gather->at, room) : gather->at;
    if (at == NULL)
        return false;
    gather->at = at;
    gather->room = room;
    return true;
}

bool gather_take(struct client *client, const char *data, size_t n)
{
    struct gather *gather = client->extra->gather;
    if (!make_room(gather, n)) {
        gather_release(client);
        return false;
    }
    memcpy(gather->at + gather->len, data, n);
    gather->len += n;
    return true;
}

struct slice gathered(const struct client *client)
{
    const struct gather *gather = client_extra(client)->gather;
    return gather != NULL ? slice_of(gather->at, gather->len) : slice_of("", 0);
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
    free(gather->at);
    free(gather);
}

void gather_release(struct client *client)
{
    struct gather *gather = take_out(client);
    if (gather == NULL)
        return;
    if (gather->len > 0)
        client_output(client, gather->at, gather->len);
    free(gather->at);
    free(gather);
}
