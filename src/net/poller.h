/*
 * Descriptors that a loop waits for: links and listeners.
 *
 * The loop has an epoll instance of its own. From accept to close a watch costs two system calls
 * and 24 bytes, libuv's uv_poll_t nine system calls and 160 bytes. With uv_poll_t a connection with
 * one GET takes 1.06 x the processor time (docs/performance.md, "Connecting"). Requests on open
 * connections take the same time with both.
 *
 * A poller belongs to the loop's thread. Events are level-triggered.
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
    WATCH_ENDED = 4, /* the peer has half-closed or is gone; unread bytes may precede the end */
};

struct watch {
    struct poller *poller;
    /* `events` has all bits if the connection is broken; the next system call returns the error. */
    void (*on_events)(struct watch *watch, unsigned events);
    int fd;
    uint8_t events; /* watched events, see watch_for */
};

/* Initialises a watch without events. The caller keeps the descriptor. */
void watch_init(struct watch *watch, struct poller *poller, int fd,
                void (*on_events)(struct watch *watch, unsigned events));

/*
 * Watches exactly `events`; 0: none. Returns 0 or a negative errno. An error leaves the watched
 * events unchanged.
 */
__attribute__((warn_unused_result)) int watch_for(struct watch *watch, unsigned events);

/*
 * Stops watching. Called before the descriptor is closed. Events of this iteration may still be
 * reported, so the watch's memory must last until the iteration ends.
 */
void watch_end(struct watch *watch);

/* ---- for the loop ---- */

/*
 * Opens the epoll instance. `other`: a descriptor that poller_wait reports apart from the watches.
 * Returns 0 or a negative errno.
 */
__attribute__((warn_unused_result)) int poller_init(struct poller *poller, int other);
void poller_fini(struct poller *poller);

/*
 * Waits at most timeout_ms for events (-1: no limit), and reports the events. Returns the number of
 * events. *other is true if the descriptor `other` of poller_init is readable.
 */
int poller_wait(const struct poller *poller, int timeout_ms, bool *other);

#endif
