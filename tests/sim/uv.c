/*
 * The part of libuv that weir uses, on the world's time: handles, timers, handles of every
 * iteration, closing. Names and structures are those of <uv.h>. The order of callbacks is that of
 * libuv 1.44: timers, idle, prepare, poll, check, closing.
 */
#include <string.h>
#include <uv.h>

#include "base/list.h"
#include "tests/sim/loops.h"
#include "tests/sim/uv_turn.h"

/* ---- handles ---- */

void uv_begin_handle(uv_loop_t *uv, uv_handle_t *handle, uv_handle_type type)
{
    handle->loop = uv;
    handle->type = type;
    handle->close_cb = NULL;
    handle->flags = REF;
    handle->next_closing = NULL;
    loop_of(uv)->n_handles++;
}

void uv_go_handle(uv_handle_t *handle)
{
    if ((handle->flags & ACTIVE) == 0 && (handle->flags & REF) != 0)
        handle->loop->active_handles++;
    handle->flags |= ACTIVE;
}

void uv_rest_handle(uv_handle_t *handle)
{
    if ((handle->flags & ACTIVE) != 0 && (handle->flags & REF) != 0)
        handle->loop->active_handles--;
    handle->flags &= ~(unsigned)ACTIVE;
}

void uv_unref(uv_handle_t *handle)
{
    if ((handle->flags & ACTIVE) != 0 && (handle->flags & REF) != 0)
        handle->loop->active_handles--;
    handle->flags &= ~(unsigned)REF;
}

void uv_ref(uv_handle_t *handle)
{
    if ((handle->flags & ACTIVE) != 0 && (handle->flags & REF) == 0)
        handle->loop->active_handles++;
    handle->flags |= REF;
}

int uv_is_active(const uv_handle_t *handle)
{
    return (handle->flags & ACTIVE) != 0;
}

int uv_is_closing(const uv_handle_t *handle)
{
    return (handle->flags & (CLOSING | CLOSED)) != 0;
}

/* ---- timers ---- */

static struct due *due_of(uv_timer_t *timer)
{
    return (struct due *)(void *)timer->heap_node;
}

_Static_assert(sizeof(struct due) <= sizeof((uv_timer_t *)NULL)->heap_node,
               "a timer has room for it");

void uv_update_time(uv_loop_t *uv)
{
    uv->time = world.now_ns / 1000000;
}

/* Due work is reported only through the descriptor of uv_backend_fd. */
int uv_backend_timeout(const uv_loop_t *uv)
{
    (void)uv;
    return -1;
}

int uv_timer_init(uv_loop_t *uv, uv_timer_t *timer)
{
    uv_begin_handle(uv, (uv_handle_t *)timer, UV_TIMER);
    timer->timer_cb = NULL;
    timer->timeout = timer->repeat = 0;
    memset(timer->heap_node, 0, sizeof timer->heap_node);
    return 0;
}

int uv_timer_stop(uv_timer_t *timer)
{
    due_drop(&loop_of(timer->loop)->timers, due_of(timer));
    uv_rest_handle((uv_handle_t *)timer);
    return 0;
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb on_due, uint64_t timeout, uint64_t repeat)
{
    struct sim_loop *loop = loop_of(timer->loop);
    if (uv_is_closing((uv_handle_t *)timer) || on_due == NULL)
        return UV_EINVAL;
    timer->timer_cb = on_due;
    timer->repeat = repeat;
    timer->timeout =
        timeout > UINT64_MAX - timer->loop->time ? UINT64_MAX : timer->loop->time + timeout;
    due_set(&loop->timers, due_of(timer), timer->timeout);
    uv_go_handle((uv_handle_t *)timer);
    return 0;
}

void uv_run_timers(struct sim_loop *loop)
{
    struct due *first;
    while ((first = due_first(&loop->timers)) != NULL && first->at <= loop->uv->time) {
        uv_timer_t *timer = container_of(first, uv_timer_t, heap_node);
        uv_timer_stop(timer);
        if (timer->repeat > 0)
            uv_timer_start(timer, timer->timer_cb, timer->repeat, timer->repeat);
        timer->timer_cb(timer);
    }
}

/* ---- handles of every iteration ---- */

static void start_every(int kind, uv_handle_t *handle)
{
    struct sim_loop *loop = loop_of(handle->loop);
    if (uv_is_active(handle))
        return;
    loop->every[kind][loop->n_every[kind]++] = handle;
    uv_go_handle(handle);
}

static void stop_every(int kind, uv_handle_t *handle)
{
    struct sim_loop *loop = loop_of(handle->loop);
    for (unsigned i = 0; i < loop->n_every[kind]; i++)
        if (loop->every[kind][i] == handle)
            loop->every[kind][i] = loop->every[kind][--loop->n_every[kind]];
    uv_rest_handle(handle);
}

/* The three kinds differ only in their names. */
#define EVERY(name, kind)                                                                          \
    int uv_##name##_init(uv_loop_t *uv, uv_##name##_t *name)                                       \
    {                                                                                              \
        uv_begin_handle(uv, (uv_handle_t *)name, UV_##kind);                                       \
        return 0;                                                                                  \
    }                                                                                              \
                                                                                                   \
    int uv_##name##_start(uv_##name##_t *name, uv_##name##_cb on_##name)                           \
    {                                                                                              \
        name->name##_cb = on_##name;                                                               \
        start_every(kind, (uv_handle_t *)name);                                                    \
        return 0;                                                                                  \
    }

EVERY(prepare, PREPARE)
EVERY(check, CHECK)
EVERY(idle, IDLE)

int uv_idle_stop(uv_idle_t *idle)
{
    stop_every(IDLE, (uv_handle_t *)idle);
    return 0;
}

void uv_run_every(struct sim_loop *loop, int kind)
{
    for (unsigned i = 0; i < loop->n_every[kind]; i++) {
        uv_handle_t *handle = loop->every[kind][i];
        if (kind == PREPARE)
            ((uv_prepare_t *)handle)->prepare_cb((uv_prepare_t *)handle);
        else if (kind == CHECK)
            ((uv_check_t *)handle)->check_cb((uv_check_t *)handle);
        else
            ((uv_idle_t *)handle)->idle_cb((uv_idle_t *)handle);
    }
}

/* ---- closing ---- */

void uv_close(uv_handle_t *handle, uv_close_cb on_closed)
{
    if (handle->type == UV_TIMER) {
        uv_timer_stop((uv_timer_t *)handle);
    } else if (handle->type == UV_PREPARE || handle->type == UV_CHECK || handle->type == UV_IDLE) {
        stop_every(handle->type == UV_PREPARE ? PREPARE
                   : handle->type == UV_CHECK ? CHECK
                                              : IDLE,
                   handle);
    } else if (handle->type == UV_SIGNAL) {
        uv_end_signal((uv_signal_t *)handle);
    }
    uv_rest_handle(handle);
    handle->flags |= CLOSING;
    handle->close_cb = on_closed;
    handle->next_closing = handle->loop->closing_handles;
    handle->loop->closing_handles = handle;
    world_wake(&loop_of(handle->loop)->party);
}

void uv_run_closing(struct sim_loop *loop)
{
    uv_handle_t *handle = loop->uv->closing_handles;
    loop->uv->closing_handles = NULL;
    while (handle != NULL) {
        uv_handle_t *next = handle->next_closing;
        handle->flags |= CLOSED;
        loop->n_handles--;
        if (handle->type == UV_ASYNC)
            uv_forget_sent(loop, handle);
        if (handle->close_cb != NULL)
            handle->close_cb(handle);
        handle = next;
    }
}
