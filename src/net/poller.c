#include "net/poller.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS_MAX 1024 /* told in one turn: who comes later is in the next */
#define URGENT_MAX 64   /* the same of one look */

void watch_init(struct watch *watch, struct poller *poller, int fd,
                void (*on_events)(struct watch *watch, unsigned events))
{
    *watch = (struct watch){.poller = poller, .on_events = on_events, .fd = fd};
}

/* Where nothing is waited for the kernel must not know it: it would tell of broken connections all the same. */
static int change(struct watch *watch, int instance, unsigned before, unsigned events)
{
    struct epoll_event event = {
        .events = ((events & WATCH_READABLE) != 0 ? EPOLLIN : 0U) | ((events & WATCH_WRITABLE) != 0 ? EPOLLOUT : 0U),
        .data.ptr = watch,
    };
    int what = events == 0 ? EPOLL_CTL_DEL : before == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    return events == before || epoll_ctl(instance, what, watch->fd, &event) == 0 ? 0 : -errno;
}

int watch_for(struct watch *watch, unsigned events)
{
    int error = change(watch, watch->poller->fd, watch->events, events);
    if (error != 0)
        return error;
    /* Where that fails it is heard of later, but it is heard of. */
    if (watch->is_urgent)
        (void)change(watch, watch->poller->urgent, watch->events & WATCH_READABLE, events & WATCH_READABLE);
    watch->events = events & (WATCH_READABLE | WATCH_WRITABLE);
    return 0;
}

/* The kernel would forget a closed descriptor by itself, but not while a child that is being started has it too. */
void watch_end(struct watch *watch)
{
    (void)!watch_for(watch, 0);
    watch->events = 0;
}

int poller_init(struct poller *poller, int other, void (*on_told)(struct poller *poller))
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    *poller =
        (struct poller){.fd = epoll_create1(EPOLL_CLOEXEC), .urgent = epoll_create1(EPOLL_CLOEXEC), .on_told = on_told};
    if (poller->fd >= 0 && poller->urgent >= 0 && epoll_ctl(poller->fd, EPOLL_CTL_ADD, other, &event) == 0)
        return 0;
    int error = errno;
    poller_fini(poller);
    return -error;
}

void poller_fini(struct poller *poller)
{
    if (poller->fd >= 0)
        close(poller->fd);
    if (poller->urgent >= 0)
        close(poller->urgent);
}

static unsigned told_of(const struct epoll_event *event)
{
    if ((event->events & (EPOLLERR | EPOLLHUP)) != 0)
        return WATCH_READABLE | WATCH_WRITABLE;
    return ((event->events & EPOLLIN) != 0 ? WATCH_READABLE : 0U) |
           ((event->events & EPOLLOUT) != 0 ? WATCH_WRITABLE : 0U);
}

/* Unless it has ended since it was seen. */
static void tell(const struct epoll_event *event)
{
    struct watch *watch = event->data.ptr;
    if (watch->events != 0)
        watch->on_events(watch, told_of(event));
}

int poller_wait(struct poller *poller, int timeout_ms, bool *other)
{
    struct epoll_event events[EVENTS_MAX];
    int n = epoll_wait(poller->fd, events, EVENTS_MAX, timeout_ms);
    *other = false;
    for (int i = 0; i < n; i++) {
        if (events[i].data.ptr == NULL) {
            *other = true;
            continue;
        }
        tell(&events[i]);
        poller->on_told(poller);
    }
    return n;
}

void poller_look(const struct poller *poller)
{
    struct epoll_event events[URGENT_MAX];
    int n = epoll_wait(poller->urgent, events, URGENT_MAX, 0);
    for (int i = 0; i < n; i++)
        tell(&events[i]);
}
