/* Replaces src/net/resolver.c: a look-up takes some time, and finds what tests/sim/moves.c says. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tests/sim/moves.h"
#include "tests/sim/run.h"

struct resolver {
    uv_async_t async;
    struct bell bell;
    void (*on_resolved)(void *arg, const struct resolved *resolved);
    void *arg;
    struct resolved result;
    bool is_looking;
};

static void on_ring(struct bell *bell)
{
    struct resolver *resolver = container_of(bell, struct resolver, bell);
    moves_found(&resolver->result);
    uv_async_send(&resolver->async);
}

static void on_async(uv_async_t *async)
{
    struct resolver *resolver = async->data;
    resolver->is_looking = false;
    resolver->on_resolved(resolver->arg, &resolver->result);
}

struct resolver *resolver_new(struct loop *loop, const char *host, uint16_t port,
                              void (*on_resolved)(void *arg, const struct resolved *resolved),
                              void *arg)
{
    if (strcmp(host, MOVES_NAME) != 0)
        run_fail(0, "%s:%u is looked up", host, (unsigned)port);
    struct resolver *resolver = mem_zalloc(1, sizeof *resolver);
    resolver->on_resolved = on_resolved;
    resolver->arg = arg;
    resolver->bell.ring = on_ring;
    uv_async_init(&loop->uv, &resolver->async, on_async);
    resolver->async.data = resolver;
    return resolver;
}

void resolver_look(struct resolver *resolver)
{
    resolver->is_looking = true;
    world_ring_at(&resolver->bell, world.now_ns + moves_look_ns());
}

bool resolver_is_looking(const struct resolver *resolver)
{
    return resolver->is_looking;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void resolver_close(struct resolver *resolver)
{
    if (resolver == NULL)
        return;
    world_silence(&resolver->bell);
    uv_close((uv_handle_t *)&resolver->async, on_closed);
}
