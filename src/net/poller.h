/*
 * Descriptors that a loop waits for: links and listeners.
 *
 * They are in an epoll instance of the loop's own, which costs a connection two system calls from accept to close, and
 * 24 bytes; libuv's handles (uv_poll_t) take nine, and 160 bytes. With these a connection with one GET takes 1.06 x
 * the processor time (docs/performance.md, "Connecting"), and requests on connections that stay as much as here.
 *
 * Belongs to the loop's thread. Events are told as long as they last.
 */
#ifndef WEIR_NET_POLLER_H
#define WEIR_NET_POLLER_H

#include <stdbool.h>
#include <stdint.h>

struct poller {
    int fd; /* the epoll instance */
};

enum {
    WATCH_READABLE = 1,
    WATCH_WRITABLE = 2,
    WATCH_ENDED = 4, /* the peer has ended its side, or is gone; it may stand behind bytes that have not been read */
};

struct watch {
    struct poller *poller;
    /* `events`: all, where the connection is broken; the next system call says how. */
    void (*on_events)(struct watch *watch, unsigned events);
    int fd;
    uint8_t events; /* that are waited for now, see watch_for */
};

/* The descriptor stays the caller's; nothing is waited for yet. */
void watch_init(struct watch *watch, struct poller *poller, int fd,
                void (*on_events)(struct watch *watch, unsigned events));

/* Wait for these events and no others; 0: for nothing. Returns 0, or a negative errno: then it waits as before. */
__attribute__((warn_unused_result)) int watch_for(struct watch *watch, unsigned events);

/*
 * Wait for nothing any more; to be called before the descriptor is closed. Events of this turn that have been seen
 * already may still be told, so the memory has to last until its end.
 */
void watch_end(struct watch *watch);

/* ---- for the loop ---- */

/* Beside the loop's watches, `other` is waited for: a descriptor. Returns 0 or a negative errno. */
__attribute__((warn_unused_result)) int poller_init(struct poller *poller, int other);
void poller_fini(struct poller *poller);

/*
 * Wait for events, for timeout_ms at most (-1: without end), and tell them. Returns how many there were; *other says
 * whether that descriptor is readable.
 */
int poller_wait(const struct poller *poller, int timeout_ms, bool *other);

#endif
