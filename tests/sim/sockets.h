/* Descriptors, as the system calls see them. */
#ifndef WEIR_SIM_SOCKETS_H
#define WEIR_SIM_SOCKETS_H

#include <sys/epoll.h>

#include "tests/sim/kernel.h"
#include "tests/sim/loops.h"

enum sock_kind { SOCK_NONE, SOCK_FRESH, SOCK_LISTENS, SOCK_CONNECTED, SOCK_POLLS, SOCK_PIPE };

#define BACKLOG_MAX 1024
#define WATCHERS_MAX 8
#define PIPE_HELD_MAX 65536

/* A loop that waits for events of a descriptor. */
struct watcher {
    struct sim_loop *loop;
    struct epoll_event event;
    int fd;
    bool is_ready; /* in loop->ready: had events at the last check */
};

struct sock {
    enum sock_kind kind;
    int family;
    struct conn *conn;
    struct watcher *watchers[WATCHERS_MAX]; /* one for each loop */
    unsigned n_watchers;
    struct sockaddr_storage local;
    socklen_t local_len;
    struct conn **waiting; /* of a listening socket: a ring of BACKLOG_MAX */
    unsigned first_waiting, n_waiting;
    struct sim_loop *loop; /* of an epoll instance: its loop, ... */
    epoll_data_t others;   /* ... and its data for libuv's own descriptors */
    struct sock *reader;   /* of an end of a pipe: the end for reading, with ... */
    char *held;            /* ... a buffer of PIPE_HELD_MAX bytes ... */
    size_t n_held;         /* ... and this many bytes in it */
};

static inline bool is_simulated(int fd)
{
    return fd >= KERNEL_FIRST_FD && fd < KERNEL_FIRST_FD + KERNEL_FDS_MAX;
}

/* NULL: no such descriptor. */
struct sock *sock_of(int fd);

/* The lowest free number. -1: too many are open; descriptors of loops are not counted. */
int sock_open(enum sock_kind kind, int family);
void sock_close(int fd);

/* Like read, of a pipe. */
ssize_t sock_read_pipe(struct sock *sock, void *out, size_t room);

/* Wakes the watchers if the descriptor has events. */
void sock_changed(int fd);

/* weir starts to connect. */
void conn_begin(int fd, const struct sockaddr *to, socklen_t len);

/* weir closes its side. */
void conn_drop(struct conn *conn);

/* The delay of a piece. */
uint64_t kernel_delay(void);

/* epoll.c: tells the watcher's loop if the descriptor has events. */
void watcher_look(struct watcher *watcher);
void watcher_forget(struct watcher *watcher);

#endif
