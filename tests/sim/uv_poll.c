/*
 * Descriptors that a loop watches: those that are ready are told in any order.
 */
#include <poll.h>
#include <string.h>
#include <uv.h>

#include "base/mem.h"
#include "tests/sim/loops.h"
#include "tests/sim/sockets.h"
#include "tests/sim/uv_turn.h"

enum { READY = 16 }; /* of a handle's flags: it is among those that the loop will tell */

int uv_poll_init(uv_loop_t *uv, uv_poll_t *poll, int fd)
{
    if (sock_of(fd) == NULL)
        return UV_EBADF;
    memset(&poll->io_watcher, 0, sizeof poll->io_watcher);
    uv_begin_handle(uv, (uv_handle_t *)poll, UV_POLL);
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
    uv_rest_handle((uv_handle_t *)poll);
    poll->io_watcher.pevents = 0;
    kernel_watch(poll->io_watcher.fd, poll, false);
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
    uv_go_handle((uv_handle_t *)poll);
    kernel_watch(poll->io_watcher.fd, poll, true);
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

void uv_end_poll(uv_poll_t *poll)
{
    uv_poll_stop(poll);
    if ((poll->flags & READY) != 0)
        forget_ready(loop_of(poll->loop), poll);
}
