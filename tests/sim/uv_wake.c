/* Asyncs and signals, which wake a loop from outside. */
#include <uv.h>

#include "tests/sim/loops.h"
#include "tests/sim/uv_turn.h"

/* ---- asyncs ---- */

int uv_async_init(uv_loop_t *uv, uv_async_t *async, uv_async_cb on_sent)
{
    uv_begin_handle(uv, (uv_handle_t *)async, UV_ASYNC);
    async->async_cb = on_sent;
    async->pending = 0;
    uv_go_handle((uv_handle_t *)async);
    return 0;
}

int uv_async_send(uv_async_t *async)
{
    struct sim_loop *loop = loop_of(async->loop);
    if (async->pending != 0)
        return 0;
    async->pending = 1;
    async->queue[0] = loop->pending;
    loop->pending = async;
    if (loop->is_running)
        world_wake(&loop->party);
    return 0;
}

void uv_run_asyncs(struct sim_loop *loop)
{
    uv_async_t *async = loop->pending;
    loop->pending = NULL;
    while (async != NULL) {
        uv_async_t *next = async->queue[0];
        async->pending = 0;
        if (!uv_is_closing((uv_handle_t *)async))
            async->async_cb(async);
        async = next;
    }
}

void uv_forget_sent(struct sim_loop *loop, const uv_handle_t *async)
{
    for (uv_async_t **at = &loop->pending; *at != NULL; at = (uv_async_t **)&(*at)->queue[0])
        if ((uv_handle_t *)*at == async) {
            *at = (*at)->queue[0];
            return;
        }
}

/* ---- signals ---- */

static uv_signal_t *signals[64];
static bool has_caught; /* a signal may be pending */

int uv_signal_init(uv_loop_t *uv, uv_signal_t *handle)
{
    uv_begin_handle(uv, (uv_handle_t *)handle, UV_SIGNAL);
    handle->caught_signals = handle->dispatched_signals = 0;
    return 0;
}

int uv_signal_start(uv_signal_t *handle, uv_signal_cb on_signal, int number)
{
    handle->signal_cb = on_signal;
    handle->signum = number;
    signals[number] = handle;
    uv_go_handle((uv_handle_t *)handle);
    return 0;
}

void loop_signal(int number)
{
    uv_signal_t *handle = signals[number];
    if (handle == NULL)
        return;
    handle->caught_signals++;
    has_caught = true;
    world_wake(&loop_of(handle->loop)->party);
}

bool uv_is_signalled(const struct sim_loop *loop)
{
    for (size_t i = 0; has_caught && i < sizeof signals / sizeof signals[0]; i++)
        if (signals[i] != NULL && signals[i]->caught_signals > 0 &&
            loop_of(signals[i]->loop) == loop)
            return true;
    return false;
}

void uv_run_signals(struct sim_loop *loop)
{
    if (!has_caught)
        return;
    has_caught = false;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        uv_signal_t *handle = signals[i];
        if (handle == NULL || handle->caught_signals == 0)
            continue;
        if (loop_of(handle->loop) != loop) {
            has_caught = true;
            continue;
        }
        unsigned n = handle->caught_signals;
        handle->caught_signals = 0;
        for (; n > 0 && !uv_is_closing((uv_handle_t *)handle); n--)
            handle->signal_cb(handle, handle->signum);
    }
}

void uv_end_signal(uv_signal_t *handle)
{
    if (handle->signum != 0)
        signals[handle->signum] = NULL;
}
