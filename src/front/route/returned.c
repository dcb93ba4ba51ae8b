#include "front/route/returned.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct returned_call *returned_add(struct returned *returned, struct pool *pool, struct slice request)
{
    struct returned_call *call = calloc(1, sizeof *call + request.len);
    if (call == NULL)
        return NULL;
    call->len = (uint32_t)request.len;
    memcpy(call->request, request.at, request.len);
    pool_note_more(pool, sizeof *call + call->len);
    if (returned->first == NULL)
        returned->first = call;
    else
        returned->last->next = call;
    returned->last = call;
    return call;
}

static bool add(struct returned *returned, struct pool *pool, struct bytes *to, struct slice piece)
{
    size_t before = to->room;
    bool is_added = bytes_add(to, piece, SIZE_MAX);
    pool_note_more(pool, to->room - before);
    returned->bytes += is_added ? piece.len : 0;
    return is_added;
}

static void drop(struct bytes *bytes, struct pool *pool)
{
    pool_note_less(pool, bytes->room);
    bytes_fini(bytes);
}

bool returned_read(struct returned *returned, struct pool *pool, struct slice piece)
{
    return add(returned, pool, &returned->frame, piece);
}

void returned_end_reply(struct returned *returned)
{
    assert(returned->last->reply.len == 0);
    returned->last->reply = returned->frame;
    returned->frame = (struct bytes){0};
}

bool returned_say(struct returned *returned, struct pool *pool, struct slice reply)
{
    return add(returned, pool, &returned->last->behind, reply);
}

bool returned_end_behind(struct returned *returned, struct pool *pool)
{
    struct bytes frame = returned->frame;
    returned->frame = (struct bytes){0};
    returned->bytes -= frame.len;
    bool is_said = frame.len == 0 || returned_say(returned, pool, bytes_slice(&frame));
    drop(&frame, pool);
    return is_said;
}

struct returned_call *returned_take(struct returned *returned)
{
    struct returned_call *call = returned->first;
    if (call == NULL)
        return NULL;
    returned->first = call->next;
    returned->bytes -= call->reply.len + call->behind.len;
    return call;
}

void returned_free(struct returned_call *call, struct pool *pool)
{
    drop(&call->reply, pool);
    drop(&call->behind, pool);
    pool_note_less(pool, sizeof *call + call->len);
    free(call);
}

void returned_clear(struct returned *returned, struct pool *pool)
{
    struct returned_call *call;
    while ((call = returned_take(returned)) != NULL)
        returned_free(call, pool);
    returned->bytes = 0;
    drop(&returned->frame, pool);
}
