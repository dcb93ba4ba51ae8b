#include "net/poller.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <unistd.h>

/* most events reported in one iteration; further events follow in the next iteration (chosen) */
#define EVENTS_MAX 1024

void watch_init(struct watch *watch, struct poller *poller, int fd,
                void (*on_events)(struct watch *watch, unsigned events))
{
    *watch = (struct watch){.poller = poller, .on_events = on_events, .fd = fd};
}

int watch_for(struct watch *watch, unsigned events)
{
    if (events == watch->events)
        return 0;
    struct epoll_event event = {
        .events = ((events & WATCH_READABLE) != 0 ? EPOLLIN : 0U) |
                  ((events & WATCH_WRITABLE) != 0 ? EPOLLOUT : 0U) |
                  ((events & WATCH_ENDED) != 0 ? EPOLLRDHUP : 0U),
        .data.ptr = watch,
    };
    /*
     * A watch without events is removed from epoll, because epoll reports a broken connection even
     * if no events are wanted.
     */
    int what = events == 0 ? EPOLL_CTL_DEL : watch->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (epoll_ctl(watch->poller->fd, what, watch->fd, &event) != 0)
        return -errno;
    watch->events = events & (WATCH_READABLE | WATCH_WRITABLE | WATCH_ENDED);
    return 0;
}

/*
 * The kernel removes a closed descriptor from epoll by itself, but not while a starting child
 * process shares the descriptor.
 */
void watch_end(struct watch *watch)
{
    (void)!watch_for(watch, 0);
    watch->events = 0;
}

int poller_init(struct poller *poller, int other)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    poller->fd = epoll_create1(EPOLL_CLOEXEC);
    if (poller->fd < 0)
        return -errno;
    if (epoll_ctl(poller->fd, EPOLL_CTL_ADD, other, &event) == 0)
        return 0;
    int error = errno;
    close(poller->fd);
    return -error;
}

void poller_fini(struct poller *poller)
{
    close(poller->fd);
}

static unsigned told_of(const struct epoll_event *event)
{
    if ((event->events & (EPOLLERR | EPOLLHUP)) != 0)
        return WATCH_READABLE | WATCH_WRITABLE | WATCH_ENDED;
    return ((event->events & EPOLLIN) != 0 ? WATCH_READABLE : 0U) |
           ((event->events & EPOLLOUT) != 0 ? WATCH_WRITABLE : 0U) |
           ((event->events & EPOLLRDHUP) != 0 ? WATCH_ENDED : 0U);
}

int poller_wait(const struct poller *poller, int timeout_ms, bool *other)
{
    struct epoll_event events[EVENTS_MAX];
    int n = epoll_wait(poller->fd, events, EVENTS_MAX, timeout_ms);
    *other = false;
    for (int i = 0; i < n; i++) {
        struct watch *watch = events[i].data.ptr;
        if (watch == NULL)
            *other = true;
        else if (watch->events != 0) /* 0: the watch was ended in this iteration */
            watch->on_events(watch, told_of(&events[i]));
    }
    return n;
}
