/*
 * libuv as far as weir uses it, on the world's time. Names and structures are <uv.h>'s; what order its calls have to keep
 * is that of libuv 1.44: timers, idle, prepare, poll, check, closing.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/list.h"
#include "base/mem.h"
#include "tests/sim/loops.h"
#include "tests/sim/sockets.h"
#include "tests/sim/uv_turn.h"

enum { ACTIVE = 1, REF = 2, CLOSING = 4, CLOSED = 8, READY = 16 };

/* ---- handles ---- */

static void init_handle(uv_loop_t *uv, uv_handle_t *handle, uv_handle_type type)
{
    handle->loop = uv;
    handle->type = type;
    handle->close_cb = NULL;
    handle->flags = REF;
    handle->next_closing = NULL;
    loop_of(uv)->n_handles++;
}

static void activate(uv_handle_t *handle)
{
    if ((handle->flags & ACTIVE) == 0 && (handle->flags & REF) != 0)
        handle->loop->active_handles++;
    handle->flags |= ACTIVE;
}

static void deactivate(uv_handle_t *handle)
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

_Static_assert(sizeof(struct due) <= sizeof((uv_timer_t *)NULL)->heap_node, "a timer has room for it");

void uv_update_time(uv_loop_t *uv)
{
    uv->time = world.now_ns / 1000000;
}

int uv_timer_init(uv_loop_t *uv, uv_timer_t *timer)
{
    init_handle(uv, (uv_handle_t *)timer, UV_TIMER);
    timer->timer_cb = NULL;
    timer->timeout = timer->repeat = 0;
    memset(timer->heap_node, 0, sizeof timer->heap_node);
    return 0;
}

int uv_timer_stop(uv_timer_t *timer)
{
    due_drop(&loop_of(timer->loop)->timers, due_of(timer));
    deactivate((uv_handle_t *)timer);
    return 0;
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb on_due, uint64_t timeout, uint64_t repeat)
{
    struct sim_loop *loop = loop_of(timer->loop);
    if (uv_is_closing((uv_handle_t *)timer) || on_due == NULL)
        return UV_EINVAL;
    timer->timer_cb = on_due;
    timer->repeat = repeat;
    timer->timeout = timeout > UINT64_MAX - timer->loop->time ? UINT64_MAX : timer->loop->time + timeout;
    due_set(&loop->timers, due_of(timer), timer->timeout);
    activate((uv_handle_t *)timer);
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

/* ---- what runs in every turn ---- */

static void start_every(int kind, uv_handle_t *handle)
{
    struct sim_loop *loop = loop_of(handle->loop);
    if (uv_is_active(handle))
        return;
    loop->every[kind][loop->n_every[kind]++] = handle;
    activate(handle);
}

static void stop_every(int kind, uv_handle_t *handle)
{
    struct sim_loop *loop = loop_of(handle->loop);
    for (unsigned i = 0; i < loop->n_every[kind]; i++)
        if (loop->every[kind][i] == handle)
            loop->every[kind][i] = loop->every[kind][--loop->n_every[kind]];
    deactivate(handle);
}

int uv_prepare_init(uv_loop_t *uv, uv_prepare_t *prepare)
{
    init_handle(uv, (uv_handle_t *)prepare, UV_PREPARE);
    return 0;
}

int uv_prepare_start(uv_prepare_t *prepare, uv_prepare_cb on_prepare)
{
    prepare->prepare_cb = on_prepare;
    start_every(PREPARE, (uv_handle_t *)prepare);
    return 0;
}

int uv_check_init(uv_loop_t *uv, uv_check_t *check)
{
    init_handle(uv, (uv_handle_t *)check, UV_CHECK);
    return 0;
}

int uv_check_start(uv_check_t *check, uv_check_cb on_check)
{
    check->check_cb = on_check;
    start_every(CHECK, (uv_handle_t *)check);
    return 0;
}

int uv_idle_init(uv_loop_t *uv, uv_idle_t *idle)
{
    init_handle(uv, (uv_handle_t *)idle, UV_IDLE);
    return 0;
}

int uv_idle_start(uv_idle_t *idle, uv_idle_cb on_idle)
{
    idle->idle_cb = on_idle;
    start_every(IDLE, (uv_handle_t *)idle);
    return 0;
}

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

/* ---- asyncs, and signals ---- */

int uv_async_init(uv_loop_t *uv, uv_async_t *async, uv_async_cb on_sent)
{
    init_handle(uv, (uv_handle_t *)async, UV_ASYNC);
    async->async_cb = on_sent;
    async->pending = 0;
    activate((uv_handle_t *)async);
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

static uv_signal_t *signals[64];

int uv_signal_init(uv_loop_t *uv, uv_signal_t *handle)
{
    init_handle(uv, (uv_handle_t *)handle, UV_SIGNAL);
    handle->caught_signals = handle->dispatched_signals = 0;
    return 0;
}

int uv_signal_start(uv_signal_t *handle, uv_signal_cb on_signal, int number)
{
    handle->signal_cb = on_signal;
    handle->signum = number;
    signals[number] = handle;
    activate((uv_handle_t *)handle);
    return 0;
}

void loop_signal(int number)
{
    uv_signal_t *handle = signals[number];
    if (handle == NULL)
        return;
    handle->caught_signals++;
    world_wake(&loop_of(handle->loop)->party);
}

void uv_run_signals(struct sim_loop *loop)
{
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        uv_signal_t *handle = signals[i];
        if (handle == NULL || loop_of(handle->loop) != loop)
            continue;
        unsigned n = handle->caught_signals;
        handle->caught_signals = 0;
        for (; n > 0 && !uv_is_closing((uv_handle_t *)handle); n--)
            handle->signal_cb(handle, handle->signum);
    }
}

/* ---- polling ---- */

int uv_poll_init(uv_loop_t *uv, uv_poll_t *poll, int fd)
{
    if (sock_of(fd) == NULL)
        return UV_EBADF;
    memset(&poll->io_watcher, 0, sizeof poll->io_watcher);
    init_handle(uv, (uv_handle_t *)poll, UV_POLL);
    poll->io_watcher.fd = fd;
    return 0;
}

static unsigned found(const uv_poll_t *poll)
{
    return kernel_events(poll->io_watcher.fd) & (poll->io_watcher.pevents | POLLERR | POLLHUP);
}

void uv_is_ready(uv_poll_t *poll)
{
    struct sim_loop *loop = loop_of(poll->loop);
    if (!uv_is_active((uv_handle_t *)poll) || found(poll) == 0 || (poll->flags & READY) != 0)
        return;
    poll->flags |= READY;
    if (loop->n_ready == loop->ready_room) {
        loop->ready_room = loop->ready_room > 0 ? 2 * loop->ready_room : 64;
        loop->ready = mem_realloc(loop->ready, loop->ready_room, sizeof(uv_poll_t *));
    }
    loop->ready[loop->n_ready++] = poll;
    if (loop->is_running)
        world_wake(&loop->party);
}

int uv_poll_stop(uv_poll_t *poll)
{
    deactivate((uv_handle_t *)poll);
    poll->io_watcher.pevents = 0;
    kernel_watch(poll->io_watcher.fd, NULL);
    return 0;
}

int uv_poll_start(uv_poll_t *poll, int events, uv_poll_cb on_events)
{
    poll->poll_cb = on_events;
    poll->io_watcher.pevents = ((events & UV_READABLE) != 0 ? POLLIN : 0) |
                               ((events & UV_WRITABLE) != 0 ? POLLOUT : 0) |
                               ((events & UV_DISCONNECT) != 0 ? POLLRDHUP : 0);
    if (events == 0)
        return uv_poll_stop(poll);
    activate((uv_handle_t *)poll);
    kernel_watch(poll->io_watcher.fd, poll);
    return 0;
}

static void tell_events(uv_poll_t *poll, unsigned events)
{
    if (events == POLLERR || events == POLLHUP)
        events |= poll->io_watcher.pevents;
    if ((events & POLLERR) != 0) {
        uv_poll_stop(poll);
        poll->poll_cb(poll, UV_EBADF, 0);
        return;
    }
    int told = ((events & POLLIN) != 0 ? UV_READABLE : 0) | ((events & POLLOUT) != 0 ? UV_WRITABLE : 0) |
               ((events & POLLRDHUP) != 0 ? UV_DISCONNECT : 0);
    poll->poll_cb(poll, 0, told);
}

static void forget_ready(struct sim_loop *loop, const uv_poll_t *poll)
{
    for (size_t i = 0; i < loop->n_ready; i++)
        if (loop->ready[i] == poll)
            loop->ready[i] = NULL;
}

/* All that are ready now, in any order; who still is afterwards is so again in the next turn. */
void uv_run_polls(struct sim_loop *loop)
{
    size_t n = loop->n_ready;
    for (size_t i = 0; i < n; i++) {
        size_t j = i + (size_t)random_below(&loop->order, n - i);
        uv_poll_t *poll = loop->ready[j];
        loop->ready[j] = loop->ready[i];
        loop->ready[i] = NULL;
        if (poll == NULL)
            continue;
        poll->flags &= ~(unsigned)READY;
        unsigned events = uv_is_active((uv_handle_t *)poll) ? found(poll) : 0;
        if (events == 0)
            continue;
        tell_events(poll, events);
        uv_is_ready(poll);
    }
    if (n > 0)
        memmove(loop->ready, loop->ready + n, (loop->n_ready - n) * sizeof(uv_poll_t *));
    loop->n_ready -= n;
}

/* ---- closing ---- */

void uv_close(uv_handle_t *handle, uv_close_cb on_closed)
{
    if (handle->type == UV_TIMER) {
        uv_timer_stop((uv_timer_t *)handle);
    } else if (handle->type == UV_POLL) {
        uv_poll_stop((uv_poll_t *)handle);
        if ((handle->flags & READY) != 0)
            forget_ready(loop_of(handle->loop), (uv_poll_t *)handle);
    } else if (handle->type == UV_PREPARE || handle->type == UV_CHECK || handle->type == UV_IDLE) {
        stop_every(handle->type == UV_PREPARE ? PREPARE : handle->type == UV_CHECK ? CHECK : IDLE, handle);
    } else if (handle->type == UV_SIGNAL && ((uv_signal_t *)handle)->signum != 0) {
        signals[((uv_signal_t *)handle)->signum] = NULL;
    }
    deactivate(handle);
    handle->flags |= CLOSING;
    handle->close_cb = on_closed;
    handle->next_closing = handle->loop->closing_handles;
    handle->loop->closing_handles = handle;
    world_wake(&loop_of(handle->loop)->party);
}

static void forget_pending(struct sim_loop *loop, const uv_handle_t *async)
{
    for (uv_async_t **at = &loop->pending; *at != NULL; at = (uv_async_t **)&(*at)->queue[0])
        if ((uv_handle_t *)*at == async) {
            *at = (*at)->queue[0];
            return;
        }
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
            forget_pending(loop, handle);
        if (handle->close_cb != NULL)
            handle->close_cb(handle);
        handle = next;
    }
}
