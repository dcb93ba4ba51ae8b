/*
 * Descriptors as the system calls see them.
 */
#ifndef WEIR_SIM_SOCKETS_H
#define WEIR_SIM_SOCKETS_H

#include "tests/sim/kernel.h"

enum sock_kind { SOCK_NONE, SOCK_FRESH, SOCK_LISTENS, SOCK_CONNECTED };

#define BACKLOG_MAX 1024
#define WATCHERS_MAX 8

struct sock {
    enum sock_kind kind;
    int family;
    struct conn *conn;
    uv_poll_t *polls[WATCHERS_MAX]; /* each its loop's */
    unsigned n_polls;
    struct sockaddr_storage local;
    socklen_t local_len;
    struct conn **waiting; /* of a listening one: a ring of BACKLOG_MAX */
    unsigned first_waiting, n_waiting;
};

static inline bool is_simulated(int fd)
{
    return fd >= KERNEL_FIRST_FD && fd < KERNEL_FIRST_FD + KERNEL_FDS_MAX;
}

/* NULL: no such descriptor. */
struct sock *sock_of(int fd);

/* The lowest number that is free; -1: too many are open. */
int sock_open(enum sock_kind kind, int family);
void sock_close(int fd);

/* Whoever watches it is told if there is something to tell. */
void sock_changed(int fd);

/* Weir begins to connect. */
void conn_begin(int fd, const struct sockaddr *to, socklen_t len);

/* Weir has closed its side. */
void conn_drop(struct conn *conn);

/* Its delay of a piece. */
uint64_t kernel_delay(void);

/* uv.c: a watched descriptor has events. */
void uv_is_ready(uv_poll_t *poll);

#endif
