/*
 * Descriptors that a loop waits for. Ready descriptors are reported in any order. The epoll
 * instance includes the loop's own descriptor, which gives libuv its iterations. That descriptor is
 * ready as soon as nothing else is.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <uv.h>

#include "base/mem.h"
#include "tests/sim/heap.h"
#include "tests/sim/loops.h"
#include "tests/sim/outside.h"
#include "tests/sim/sockets.h"
#include "tests/sim/uv_turn.h"

_Static_assert(EPOLLIN == POLLIN && EPOLLOUT == POLLOUT && EPOLLERR == POLLERR &&
                   EPOLLHUP == POLLHUP,
               "what poll(2) says, epoll says in the same bits");

int WRAP(epoll_create1)(int flags);
int WRAP(epoll_ctl)(int epoll, int what, int fd, struct epoll_event *event);
int WRAP(epoll_wait)(int epoll, struct epoll_event *events, int most, int timeout_ms);

int uv_backend_fd(const uv_loop_t *uv)
{
    return LOOP_FIRST_FD + (int)loop_of(uv)->party.index;
}

static struct sim_loop *loop_with_fd(int fd)
{
    return fd >= LOOP_FIRST_FD ? loop_number((unsigned)(fd - LOOP_FIRST_FD)) : NULL;
}

int WRAP(epoll_create1)(int flags)
{
    OUTSIDE;
    (void)flags;
    int fd = sock_open(SOCK_POLLS, 0);
    return fd >= 0 ? fd : sim_fail(EMFILE);
}

static unsigned found(const struct watcher *watcher)
{
    return kernel_events(watcher->fd) & (watcher->event.events | POLLERR | POLLHUP);
}

void watcher_look(struct watcher *watcher)
{
    struct sim_loop *loop = watcher->loop;
    if (watcher->is_ready || found(watcher) == 0)
        return;
    watcher->is_ready = true;
    if (loop->n_ready == loop->ready_room) {
        loop->ready_room = loop->ready_room > 0 ? 2 * loop->ready_room : 64;
        loop->ready = mem_realloc(loop->ready, loop->ready_room, sizeof(struct watcher *));
    }
    loop->ready[loop->n_ready++] = watcher;
    if (loop->is_running)
        world_wake(&loop->party);
}

void watcher_forget(struct watcher *watcher)
{
    struct sim_loop *loop = watcher->loop;
    for (size_t i = 0; watcher->is_ready && i < loop->n_ready; i++)
        if (loop->ready[i] == watcher)
            loop->ready[i--] = loop->ready[--loop->n_ready];
    free(watcher);
}

int WRAP(epoll_ctl)(int epoll, int what, int fd, struct epoll_event *event)
{
    OUTSIDE;
    struct sock *polls = sock_of(epoll), *sock = sock_of(fd);
    if (loop_with_fd(fd) != NULL) {
        polls->loop = loop_with_fd(fd);
        polls->others = event->data;
        return 0;
    }
    if (polls == NULL || sock == NULL)
        return sim_fail(EBADF);
    unsigned i = 0;
    while (i < sock->n_watchers && sock->watchers[i]->loop != polls->loop)
        i++;
    bool is_in = i < sock->n_watchers;
    if (is_in == (what == EPOLL_CTL_ADD))
        return sim_fail(is_in ? EEXIST : ENOENT);
    if (what == EPOLL_CTL_DEL) {
        watcher_forget(sock->watchers[i]);
        sock->watchers[i] = sock->watchers[--sock->n_watchers];
        return 0;
    }
    if (what == EPOLL_CTL_ADD) {
        /* a listening socket is watched at start, which may fail */
        bool is_needed = sock->kind == SOCK_LISTENS;
        if (random_hits(&kernel.chance, kernel.odds.watch_short) && !is_needed)
            return sim_fail(random_hits(&kernel.chance, 500000) ? ENOMEM : ENOSPC);
        if (i == WATCHERS_MAX)
            abort();
        sock->watchers[i] = mem_zalloc(1, sizeof(struct watcher));
        *sock->watchers[i] = (struct watcher){.loop = polls->loop, .fd = fd};
        sock->n_watchers++;
    }
    sock->watchers[i]->event = *event;
    watcher_look(sock->watchers[i]);
    return 0;
}

bool loop_has_events(struct sim_loop *loop)
{
    for (size_t i = 0; i < loop->n_ready; i++) {
        if (found(loop->ready[i]) != 0)
            continue;
        loop->ready[i]->is_ready = false;
        loop->ready[i--] = loop->ready[--loop->n_ready];
    }
    return loop->n_ready > 0;
}

/*
 * Reports all ready descriptors in any order, once in each iteration. The other parties take their
 * steps before the loop gets more. Then libuv's descriptor is ready.
 */
int WRAP(epoll_wait)(int epoll, struct epoll_event *events, int most, int timeout_ms)
{
    OUTSIDE;
    const struct sock *polls = sock_of(epoll);
    struct sim_loop *loop = polls->loop;
    loop->is_busy = timeout_ms == 0;
    if (loop->has_told || !loop_has_events(loop)) {
        *events = (struct epoll_event){EPOLLIN, polls->others};
        return 1;
    }
    loop->has_told = true;
    int n = 0;
    for (size_t i = 0; i < loop->n_ready && n < most; i++) {
        size_t j = i + (size_t)random_below(&loop->order, loop->n_ready - i);
        struct watcher *watcher = loop->ready[j];
        loop->ready[j] = loop->ready[i];
        loop->ready[i] = watcher;
        events[n++] = (struct epoll_event){found(watcher), watcher->event.data};
    }
    return n;
}
