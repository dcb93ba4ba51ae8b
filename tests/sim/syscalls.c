/*
 * The system calls of weir's side. The linker replaces the C library's functions by these functions
 * (see SIM_WRAPS in the Makefile).
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "tests/sim/heap.h"
#include "tests/sim/outside.h"
#include "tests/sim/sockets.h"
#include "tests/sim/trace.h"

#define PROCESS_ID 4242
#define USER_ID 1000

#define REAL(name) __real_##name /* for descriptors outside the simulation */

/* ---- time, random numbers, identity ---- */

int WRAP(clock_gettime)(clockid_t clock, struct timespec *at);
ssize_t WRAP(getrandom)(void *out, size_t n, unsigned flags);
pid_t WRAP(getpid)(void);
pid_t WRAP(getppid)(void);
uid_t WRAP(geteuid)(void);
int WRAP(getrlimit)(int which, struct rlimit *limit);
int WRAP(setrlimit)(int which, const struct rlimit *limit);
int WRAP(malloc_trim)(size_t pad);

int WRAP(clock_gettime)(clockid_t clock, struct timespec *at)
{
    uint64_t ns = world.now_ns += world.tick_ns;
    if (clock == CLOCK_REALTIME)
        ns += SIM_EPOCH_US * 1000 - SIM_START_NS + (uint64_t)kernel.wall_ns;
    *at = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    return 0;
}

ssize_t WRAP(getrandom)(void *out, size_t n, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)out)[i] = (unsigned char)(random_next(&kernel.chance) >> 56);
    return (ssize_t)n;
}

pid_t WRAP(getpid)(void)
{
    return PROCESS_ID;
}

pid_t WRAP(getppid)(void)
{
    return 1;
}

uid_t WRAP(geteuid)(void)
{
    return USER_ID;
}

int WRAP(getrlimit)(int which, struct rlimit *limit)
{
    (void)which;
    *limit = (struct rlimit){kernel.odds.fds, kernel.odds.fds};
    return 0;
}

int WRAP(setrlimit)(int which, const struct rlimit *limit)
{
    (void)which;
    (void)limit;
    errno = EPERM;
    return -1;
}

int WRAP(malloc_trim)(size_t pad)
{
    (void)pad;
    return 0;
}

/* ---- sockets ---- */

/* Fails because there is no room for another descriptor. */
static int fail_short(void)
{
    static const int errors[] = {EMFILE, ENFILE, ENOBUFS, ENOMEM};
    return sim_fail(errors[random_below(&kernel.chance, sizeof errors / sizeof errors[0])]);
}

int WRAP(socket)(int family, int type, int protocol);
int WRAP(bind)(int fd, const struct sockaddr *at, socklen_t len);
int WRAP(listen)(int fd, int backlog);
int WRAP(accept4)(int fd, struct sockaddr *peer, socklen_t *len, int flags);
int WRAP(connect)(int fd, const struct sockaddr *to, socklen_t len);
int WRAP(getsockopt)(int fd, int level, int name, void *value, socklen_t *len);
int WRAP(setsockopt)(int fd, int level, int name, const void *value, socklen_t len);
int WRAP(getsockname)(int fd, struct sockaddr *at, socklen_t *len);
int WRAP(fcntl)(int fd, int command, ...);
int WRAP(ioctl)(int fd, unsigned long request, ...);
int WRAP(shutdown)(int fd, int how);
int WRAP(close)(int fd);
int REAL(fcntl)(int fd, int command, ...);
int REAL(close)(int fd);

int WRAP(socket)(int family, int type, int protocol)
{
    OUTSIDE;
    (void)type;
    (void)protocol;
    if (random_hits(&kernel.chance, kernel.odds.socket_short))
        return fail_short();
    int fd = sock_open(SOCK_FRESH, family);
    return fd >= 0 ? fd : sim_fail(EMFILE);
}

int WRAP(bind)(int fd, const struct sockaddr *at, socklen_t len)
{
    struct sock *sock = sock_of(fd);
    memcpy(&sock->local, at, len);
    sock->local_len = len;
    return 0;
}

int WRAP(listen)(int fd, int backlog)
{
    OUTSIDE;
    (void)backlog;
    struct sock *sock = sock_of(fd);
    sock->kind = SOCK_LISTENS;
    sock->waiting = mem_zalloc(BACKLOG_MAX, sizeof(struct conn *));
    return 0;
}

static struct conn *take_waiting(struct sock *sock)
{
    sock->n_waiting--;
    return sock->waiting[sock->first_waiting++ % BACKLOG_MAX];
}

/*
 * Tells the peer as in Linux, even after a reset by the peer. A client of a Unix socket has only a
 * family.
 */
static void tell_peer(const struct conn *conn, struct sockaddr *peer, socklen_t *len)
{
    const struct sockaddr nameless = {.sa_family = AF_UNIX};
    const void *from = conn->peer_len > 0 ? (const void *)&conn->peer : &nameless;
    *len = conn->peer_len > 0 ? conn->peer_len : sizeof nameless.sa_family;
    memcpy(peer, from, *len);
}

int WRAP(accept4)(int fd, struct sockaddr *peer, socklen_t *len, int flags)
{
    OUTSIDE;
    (void)flags;
    struct sock *sock = sock_of(fd);
    if (sock->n_waiting == 0)
        return sim_fail(EAGAIN);
    if (random_hits(&kernel.chance, kernel.odds.accept_aborted)) {
        conn_drop(take_waiting(sock));
        return sim_fail(ECONNABORTED);
    }
    if (random_hits(&kernel.chance, kernel.odds.accept_short))
        return fail_short();
    int client = sock_open(SOCK_CONNECTED, sock->family);
    if (client < 0)
        return sim_fail(EMFILE);
    struct conn *conn = take_waiting(sock);
    sock_of(client)->conn = conn;
    conn->fd = client;
    tell_peer(conn, peer, len);
    trace_note(TRACE_ACCEPT, conn->number, NULL, 0);
    return client;
}

int WRAP(connect)(int fd, const struct sockaddr *to, socklen_t len)
{
    OUTSIDE;
    if (random_hits(&kernel.chance, kernel.odds.unreachable)) {
        static const int errors[] = {ECONNREFUSED, ENETUNREACH, EADDRNOTAVAIL, EAGAIN};
        return sim_fail(errors[random_below(&kernel.chance, sizeof errors / sizeof errors[0])]);
    }
    conn_begin(fd, to, len);
    trace_note(TRACE_CONNECT, sock_of(fd)->conn->number, NULL, 0);
    return sim_fail(EINPROGRESS);
}

static int take_error(struct sock *sock)
{
    int error = sock->conn != NULL ? sock->conn->error : 0;
    if (sock->conn != NULL)
        sock->conn->error = 0;
    return error;
}

int WRAP(getsockopt)(int fd, int level, int name, void *value, socklen_t *len)
{
    (void)level;
    struct sock *sock = sock_of(fd);
    if (name == SO_PEERCRED) {
        struct ucred peer = {.pid = 1, .uid = sock->conn->uid, .gid = sock->conn->uid};
        memcpy(value, &peer, sizeof peer);
        return 0;
    }
    int answer = name == SO_ERROR       ? take_error(sock)
                 : name == SO_REUSEPORT ? sock->family != AF_UNIX
                                        : 0;
    memcpy(value, &answer, sizeof answer);
    *len = sizeof answer;
    return 0;
}

int WRAP(setsockopt)(int fd, int level, int name, const void *value, socklen_t len)
{
    (void)level;
    (void)name;
    (void)value;
    (void)len;
    return sock_of(fd) != NULL ? 0 : sim_fail(EBADF);
}

int WRAP(getsockname)(int fd, struct sockaddr *at, socklen_t *len)
{
    struct sock *sock = sock_of(fd);
    *len = sock->local_len;
    memcpy(at, &sock->local, sock->local_len);
    return 0;
}

int WRAP(fcntl)(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *argument = va_arg(args, void *);
    va_end(args);
    if (!is_simulated(fd))
        return REAL(fcntl)(fd, command, argument);
    return sock_of(fd) != NULL ? 0 : sim_fail(EBADF);
}

int WRAP(ioctl)(int fd, unsigned long request, ...)
{
    va_list args;
    va_start(args, request);
    int *n = va_arg(args, int *);
    va_end(args);
    if (request != FIONREAD)
        return sim_fail(EINVAL);
    const struct conn *conn = sock_of(fd)->conn;
    *n = (int)(conn->to_weir.arrived - conn->to_weir.head);
    return 0;
}

int WRAP(shutdown)(int fd, int how)
{
    OUTSIDE;
    struct conn *conn = sock_of(fd)->conn;
    if (how == SHUT_RD)
        return 0; /* weir cannot end what the host sends */
    conn->weir_has_shut = true;
    trace_note(TRACE_WEIR_SHUT, conn->number, NULL, 0);
    if (!conn->host_has_closed)
        pipe_finish(&conn->to_host, PIPE_FIN, kernel_delay());
    return 0;
}

int WRAP(close)(int fd)
{
    OUTSIDE;
    struct sock *sock = sock_of(fd);
    if (sock == NULL)
        return is_simulated(fd) ? sim_fail(EBADF) : REAL(close)(fd);
    if (sock->conn != NULL)
        trace_note(TRACE_WEIR_CLOSE, sock->conn->number, NULL, 0);
    sock_close(fd);
    return 0;
}

/* ---- bytes ---- */

ssize_t WRAP(read)(int fd, void *out, size_t room);
ssize_t WRAP(write)(int fd, const void *data, size_t n);
ssize_t WRAP(writev)(int fd, const struct iovec *pieces, int n);
ssize_t WRAP(send)(int fd, const void *data, size_t n, int flags);
ssize_t REAL(read)(int fd, void *out, size_t room);
ssize_t REAL(write)(int fd, const void *data, size_t n);

static size_t some(size_t n, uint32_t odds)
{
    return n > 1 && random_hits(&kernel.chance, odds)
               ? 1 + (size_t)random_below(&kernel.chance, n - 1)
               : n;
}

ssize_t WRAP(read)(int fd, void *out, size_t room)
{
    OUTSIDE;
    struct sock *sock = sock_of(fd);
    struct conn *conn = sock != NULL ? sock->conn : NULL;
    if (!is_simulated(fd))
        return REAL(read)(fd, out, room);
    if (sock != NULL && sock->kind == SOCK_PIPE)
        return sock_read_pipe(sock, out, room);
    if (conn == NULL)
        return sim_fail(EBADF);
    struct slice here = pipe_here(&conn->to_weir);
    if (random_hits(&kernel.chance, kernel.odds.broken))
        conn_break(conn, random_hits(&kernel.chance, 500000) ? ECONNRESET : ETIMEDOUT);
    if (here.len == 0 && conn->error != 0)
        return sim_fail(take_error(sock));
    if (random_hits(&kernel.chance, kernel.odds.interrupted))
        return sim_fail(EINTR);
    if (here.len == 0 && conn->to_weir.end != PIPE_OPEN)
        return 0;
    if (here.len == 0 || random_hits(&kernel.chance, kernel.odds.again))
        return sim_fail(EAGAIN);
    size_t n = some(here.len < room ? here.len : room, kernel.odds.cut_read);
    memcpy(out, here.at, n);
    trace_note(TRACE_WEIR_READ, conn->number, out, n);
    pipe_take(&conn->to_weir, n);
    if (conn->name.side == SIDE_CLIENT)
        meter_add(&kernel.heard, n);
    conn_note_read(conn, n);
    if (conn->host_wants_space && conn->host != NULL)
        world_wake(conn->host);
    return (ssize_t)n;
}

/* 0: bytes are accepted; else the errno. */
static int refusal(struct sock *sock)
{
    struct conn *conn = sock->conn;
    if (conn == NULL || conn->state != CONN_OPEN)
        return ENOTCONN;
    if (conn->error != 0)
        return take_error(sock);
    if (conn->weir_has_shut || conn->to_weir.end == PIPE_RESET)
        return EPIPE;
    if (random_hits(&kernel.chance, kernel.odds.broken)) {
        static const int errors[] = {ENOBUFS, EPIPE, ECONNRESET, ETIMEDOUT, ENOMEM};
        conn_break(conn, errors[random_below(&kernel.chance, sizeof errors / sizeof errors[0])]);
        return take_error(sock);
    }
    if (random_hits(&kernel.chance, kernel.odds.interrupted))
        return EINTR;
    return pipe_space(&conn->to_host) == 0 || random_hits(&kernel.chance, kernel.odds.again)
               ? EAGAIN
               : 0;
}

ssize_t WRAP(writev)(int fd, const struct iovec *pieces, int n)
{
    OUTSIDE;
    struct sock *sock = sock_of(fd);
    int error = sock != NULL ? refusal(sock) : EBADF;
    if (error != 0)
        return sim_fail(error);
    struct conn *conn = sock->conn;
    size_t whole = 0, done = 0;
    for (int i = 0; i < n; i++)
        whole += pieces[i].iov_len;
    size_t space = pipe_space(&conn->to_host);
    size_t most = some(whole < space ? whole : space, kernel.odds.cut_write);
    for (int i = 0; i < n && done < most; i++) {
        size_t part = pieces[i].iov_len < most - done ? pieces[i].iov_len : most - done;
        trace_note(TRACE_WEIR_WRITE, conn->number, pieces[i].iov_base, part);
        pipe_put(&conn->to_host, pieces[i].iov_base, part, kernel_delay());
        done += part;
    }
    if (conn->name.side == SIDE_LANE)
        meter_add(&kernel.asked, done);
    return (ssize_t)done;
}

ssize_t WRAP(write)(int fd, const void *data, size_t n)
{
    const struct iovec piece = {(void *)(uintptr_t)data, n};
    if (is_simulated(fd))
        return WRAP(writev)(fd, &piece, 1);
    if (fd != STDERR_FILENO)
        return REAL(write)(fd, data, n);
    trace_note(TRACE_LOG, 0, data, n);
    if (kernel.on_logged != NULL)
        kernel.on_logged(slice_of(data, n));
    return (ssize_t)n;
}

ssize_t WRAP(send)(int fd, const void *data, size_t n, int flags)
{
    (void)flags;
    const struct iovec piece = {(void *)(uintptr_t)data, n};
    return WRAP(writev)(fd, &piece, 1);
}
