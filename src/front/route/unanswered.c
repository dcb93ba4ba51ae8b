#include "front/route/unanswered.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "resp/scan.h"

static uint64_t unanswered_size_of(const struct kept *kept)
{
    return sizeof *kept + kept->len;
}

static struct kept *get(struct pool *pool, size_t size)
{
    if (size <= CELL_BYTES)
        return pool_get_cell(pool);
    struct kept *kept = malloc(size);
    if (kept != NULL)
        pool_note_more(pool, size);
    return kept;
}

static void unanswered_put(struct pool *pool, struct kept *kept)
{
    if (unanswered_size_of(kept) <= CELL_BYTES) {
        pool_put_cell(pool, kept);
        return;
    }
    pool_note_less(pool, unanswered_size_of(kept));
    free(kept);
}

struct kept *unanswered_add(struct unanswered *unanswered, struct pool *pool, enum kept_kind kind,
                            struct slice bytes, uint32_t n)
{
    size_t len = unanswered->bytes <= UNANSWERED_MAX ? bytes.len : 0;
    struct kept *kept = get(pool, sizeof *kept + len);
    if (kept == NULL)
        return NULL;
    *kept = (struct kept){.n = n, .n_left = n, .len = (uint32_t)len, .kind = (uint8_t)kind};
    if (len > 0)
        memcpy(kept->bytes, bytes.at, len);
    if (unanswered->first == NULL)
        unanswered->first = kept;
    else
        unanswered->last->next = kept;
    unanswered->last = kept;
    unanswered->bytes += len;
    return kept;
}

struct kept *unanswered_add_more(struct unanswered *unanswered, struct pool *pool,
                                 enum kept_kind kind, struct slice bytes, uint32_t n)
{
    struct kept *last = unanswered->last;
    if (unanswered->first == NULL || last->kind != kind || last->len == 0 || bytes.len == 0 ||
        unanswered_size_of(last) + bytes.len > CELL_BYTES || unanswered->bytes > UNANSWERED_MAX)
        return unanswered_add(unanswered, pool, kind, bytes, n);
    memcpy(last->bytes + last->len, bytes.at, bytes.len);
    last->len += (uint32_t)bytes.len;
    last->n += n;
    last->n_left += n;
    unanswered->bytes += bytes.len;
    return last;
}

static void drop_first(struct unanswered *unanswered, struct pool *pool)
{
    struct kept *kept = unanswered->first;
    unanswered->first = kept->next;
    unanswered->bytes -= kept->len;
    unanswered_put(pool, kept);
}

void unanswered_drop(struct unanswered *unanswered, struct pool *pool, uint32_t n)
{
    while (n > 0) {
        struct kept *kept = unanswered->first;
        assert(kept != NULL);
        uint32_t part = n < kept->n_left ? n : kept->n_left;
        kept->n_left -= part;
        n -= part;
        if (kept->n_left == 0)
            drop_first(unanswered, pool);
    }
}

/*
 * The requests of an entry were found by this parser when they were sent, so the parser finds them
 * again.
 */
struct slice unanswered_oldest(const struct unanswered *unanswered)
{
    const struct kept *kept = unanswered->first;
    struct request_scan scan = {0};
    size_t at = 0, used = 0;
    for (uint32_t i = 0; kept->len > 0 && i <= kept->n - kept->n_left; i++) {
        at += used;
        enum scan_result result =
            request_scan(&scan, &request_limits_normal, kept->bytes + at, kept->len - at, &used);
        assert(result == SCAN_FRAME);
        (void)result;
    }
    return slice_of(kept->bytes + at, used);
}

void unanswered_clear(struct unanswered *unanswered, struct pool *pool)
{
    while (unanswered->first != NULL)
        drop_first(unanswered, pool);
}

/* ---- returned calls ---- */

struct returned_call *returned_add(struct returned *returned, struct pool *pool,
                                   struct slice request)
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

static bool unanswered_add_bytes(struct returned *returned, struct pool *pool, struct bytes *to,
                                 struct slice piece)
{
    size_t before = to->room;
    bool is_added = bytes_add(to, piece, SIZE_MAX);
    pool_note_more(pool, to->room - before);
    returned->bytes += is_added ? piece.len : 0;
    return is_added;
}

static void drop_bytes(struct bytes *bytes, struct pool *pool)
{
    pool_note_less(pool, bytes->room);
    bytes_fini(bytes);
}

bool returned_read(struct returned *returned, struct pool *pool, struct slice piece)
{
    return unanswered_add_bytes(returned, pool, &returned->frame, piece);
}

void returned_end_reply(struct returned *returned)
{
    assert(returned->last->reply.len == 0);
    returned->last->reply = returned->frame;
    returned->frame = (struct bytes){0};
}

bool returned_say(struct returned *returned, struct pool *pool, struct slice reply)
{
    return unanswered_add_bytes(returned, pool, &returned->last->behind, reply);
}

bool returned_end_behind(struct returned *returned, struct pool *pool)
{
    struct bytes frame = returned->frame;
    returned->frame = (struct bytes){0};
    returned->bytes -= frame.len;
    bool is_said = frame.len == 0 || returned_say(returned, pool, bytes_slice(&frame));
    drop_bytes(&frame, pool);
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
    drop_bytes(&call->reply, pool);
    drop_bytes(&call->behind, pool);
    pool_note_less(pool, sizeof *call + call->len);
    free(call);
}

void returned_clear(struct returned *returned, struct pool *pool)
{
    struct returned_call *call;
    while ((call = returned_take(returned)) != NULL)
        returned_free(call, pool);
    returned->bytes = 0;
    drop_bytes(&returned->frame, pool);
}
