/*
 * Descriptors as the system calls see them.
 */
#ifndef WEIR_SIM_SOCKETS_H
#define WEIR_SIM_SOCKETS_H

#include <sys/epoll.h>

#include "tests/sim/kernel.h"
#include "tests/sim/loops.h"

enum sock_kind { SOCK_NONE, SOCK_FRESH, SOCK_LISTENS, SOCK_CONNECTED, SOCK_POLLS, SOCK_PIPE };

#define BACKLOG_MAX 1024
#define WATCHERS_MAX 8
#define PIPE_HELD_MAX 65536

/* A loop waits for events of a descriptor. */
struct watcher {
    struct sim_loop *loop;
    struct epoll_event event;
    int fd;
    bool is_ready; /* in loop->ready: it had events when it was looked at */
};

struct sock {
    enum sock_kind kind;
    int family;
    struct conn *conn;
    struct watcher *watchers[WATCHERS_MAX]; /* each its loop's */
    unsigned n_watchers;
    struct sockaddr_storage local;
    socklen_t local_len;
    struct conn **waiting; /* of a listening one: a ring of BACKLOG_MAX */
    unsigned first_waiting, n_waiting;
    struct sim_loop *loop; /* of an epoll instance: whose it is, ... */
    epoll_data_t others;   /* ... and what it says of libuv's own descriptors */
    struct sock *reader;   /* of a pipe's end: the one that is read from, which has ... */
    char *held;            /* ... room for PIPE_HELD_MAX bytes, ... */
    size_t n_held;         /* ... and so many that were written and not read yet */
};

static inline bool is_simulated(int fd)
{
    return fd >= KERNEL_FIRST_FD && fd < KERNEL_FIRST_FD + KERNEL_FDS_MAX;
}

/* NULL: no such descriptor. */
struct sock *sock_of(int fd);

/* The lowest number that is free; -1: too many are open, not counting what loops themselves need. */
int sock_open(enum sock_kind kind, int family);
void sock_close(int fd);

/* Like read, of a pipe. */
ssize_t sock_read_pipe(struct sock *sock, void *out, size_t room);

/* Whoever watches it is told if there is something to tell. */
void sock_changed(int fd);

/* Weir begins to connect. */
void conn_begin(int fd, const struct sockaddr *to, socklen_t len);

/* Weir has closed its side. */
void conn_drop(struct conn *conn);

/* Its delay of a piece. */
uint64_t kernel_delay(void);

/* epoll.c: has the descriptor events? Then its loop is told. */
void watcher_look(struct watcher *watcher);
void watcher_forget(struct watcher *watcher);

#endif
