#include "net/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

#define BACKLOG 1024
#define ALL_RIGHTS 0777
#define OWNERS_RIGHTS 0600
/*
 * pause after a failed accept (chosen): long enough to save processor time, too short for clients
 * to time out
 */
#define PAUSE_MS 100

static bool is_live(const struct endpoint *at)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return true;
    bool answered = connect(fd, (const struct sockaddr *)&at->address, at->length) == 0;
    close(fd);
    return answered;
}

/*
 * True if the path is a socket file without a listening process. If false, errno says why, for
 * example EADDRINUSE or ENOTSOCK.
 */
static bool is_left_over(const struct endpoint *at)
{
    const struct sockaddr_un *un = (const void *)&at->address;
    struct stat status;
    bool is_socket =
        lstat(un->sun_path, &status) == 0 && (S_ISSOCK(status.st_mode) || S_ISLNK(status.st_mode));
    errno = is_socket ? EADDRINUSE : ENOTSOCK;
    return is_socket && !is_live(at);
}

static int bind_unix(int fd, const struct endpoint *at)
{
    const struct sockaddr_un *un = (const void *)&at->address;
    if (bind(fd, (const struct sockaddr *)un, at->length) == 0)
        return 0;
    if (errno != EADDRINUSE)
        return -1;
    if (!is_left_over(at))
        return -1;
    unlink(un->sun_path);
    return bind(fd, (const struct sockaddr *)un, at->length);
}

static int bind_tcp(int fd, const struct endpoint *at)
{
    int yes = 1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes) != 0)
        return -1;
    if (at->address.ss_family == AF_INET6 &&
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes) != 0)
        return -1;
    return bind(fd, (const struct sockaddr *)&at->address, at->length);
}

/* `file` refers to the file itself, even if its path is replaced meanwhile. */
static int change_rights(int file, const struct listen_rights *rights)
{
    char path[sizeof "/proc/self/fd/" + 3 * sizeof file];
    struct stat is;
    if (fstat(file, &is) != 0)
        return -errno;
    if (!S_ISSOCK(is.st_mode))
        return -ENOTSOCK;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (rights->has_group && is.st_gid != rights->group &&
        fchownat(file, "", (uid_t)-1, rights->group, AT_EMPTY_PATH) != 0)
        return -errno;
    if (rights->has_mode && (is.st_mode & ALL_RIGHTS) != rights->mode &&
        chmod(path, rights->mode) != 0)
        return -errno;
    return 0;
}

int listen_set_rights(const char *path, const struct listen_rights *rights)
{
    int file = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return -errno;
    int result = change_rights(file, rights);
    close(file);
    return result;
}

/*
 * Only the owner may use the file until the rights of the file are set. No client can connect
 * before listen().
 */
static int bind_with_rights(int fd, const struct endpoint *at, const struct listen_rights *rights)
{
    const struct sockaddr_un *un = (const void *)&at->address;
    if (!rights->has_mode && !rights->has_group)
        return bind_unix(fd, at);
    mode_t before = umask(ALL_RIGHTS & ~OWNERS_RIGHTS);
    int bound = bind_unix(fd, at);
    umask(before);
    if (bound != 0 || (!rights->has_group && rights->mode == OWNERS_RIGHTS))
        return bound;
    struct listen_rights all = *rights;
    if (!all.has_mode) {
        all.has_mode = true;
        all.mode = ALL_RIGHTS & ~before;
    }
    int error = -listen_set_rights(un->sun_path, &all);
    if (error == 0)
        return 0;
    unlink(un->sun_path);
    errno = error;
    return -1;
}

int listen_open(struct endpoint *at, const struct listen_rights *rights)
{
    int family = at->address.ss_family;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int bound = family == AF_UNIX ? bind_with_rights(fd, at, rights) : bind_tcp(fd, at);
    if (bound != 0 || listen(fd, BACKLOG) != 0) {
        int error = errno;
        close(fd);
        return -error;
    }
    if (family != AF_UNIX)
        getsockname(fd, (struct sockaddr *)&at->address, &at->length);
    return fd;
}

/*
 * The filter drops SYN packets, and passes the last packet of a handshake already begun. No new
 * connection therefore enters the queue. A connection in the queue would be reset when the socket
 * is closed. A client sends a dropped SYN again, and after the close the system refuses the
 * connection. Accepted connections inherit the filter, but receive no SYN packets. The filter of a
 * TCP socket sees segments from the TCP header on.
 */
void listen_refuse(int fd)
{
    enum { AT_FLAGS = 13, SYN = 0x02, ACK = 0x10, ALL = 0x7fffffff };
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, AT_FLAGS),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SYN | ACK),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYN, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, ALL),
    };
    const struct sock_fprog program = {sizeof steps / sizeof steps[0], steps};
    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0)
        log_info(
            "the system takes no socket filter: connections that arrive during the stop may be reset");
}

static void on_pause_over(uv_timer_t *timer)
{
    struct listener *listener = timer->data;
    if (watch_for(&listener->watch, WATCH_READABLE) != 0)
        uv_timer_start(timer, on_pause_over, PAUSE_MS, 0);
}

static void accept_failed(struct listener *listener, int error)
{
    log_at(LOG_SITE_ACCEPT, LOG_WARN, "cannot accept a connection: %s", uv_strerror(-error));
    (void)!watch_for(&listener->watch, 0);
    uv_timer_start(&listener->pause, on_pause_over, PAUSE_MS, 0);
    listener->on_accept(listener, -error, NULL);
}

/*
 * Accepts at most `most` connections. *n receives the number of accepted connections. Returns 0 if
 * more connections may wait, EAGAIN if no connection waits, or another errno if descriptors or
 * memory are out.
 */
static int accept_some(struct listener *listener, unsigned most, unsigned *n)
{
    for (*n = 0; *n < most; ++*n) {
        struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
        socklen_t length = sizeof from;
        int fd = accept4(listener->watch.fd, (struct sockaddr *)&from, &length,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            const struct link_peer peer = {ip_of((const struct sockaddr *)&from),
                                           ip_port_of((const struct sockaddr *)&from)};
            listener->on_accept(listener, fd, &peer);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM ||
                   errno == EAGAIN) {
            return errno;
        } /* otherwise only this connection is broken (ECONNABORTED ...), and the loop goes on */
    }
    return 0;
}

static void on_readable(struct watch *watch, unsigned events)
{
    (void)events;
    struct listener *listener = container_of(watch, struct listener, watch);
    unsigned n;
    int error = accept_some(listener, listener->share, &n);
    if (error == 0)
        listener->share = listener->share < ACCEPT_SHARE / 2 ? listener->share * 2 : ACCEPT_SHARE;
    else if (error == EAGAIN)
        listener->share = n > 0 ? n : 1;
    else
        accept_failed(listener, error);
}

void listener_accept_rest(struct listener *listener)
{
    unsigned n;
    /*
     * the queue holds at most BACKLOG + 1 connections; connections that arrive meanwhile do not
     * matter
     */
    (void)accept_some(listener, BACKLOG + 1, &n);
}

int listener_start(struct listener *listener, struct loop *loop, int fd, accept_fn *on_accept,
                   void *arg)
{
    listener->on_accept = on_accept;
    listener->arg = arg;
    listener->share = 1;
    link_set_options(fd);
    watch_init(&listener->watch, &loop->poller, fd, on_readable);
    uv_timer_init(&loop->uv, &listener->pause);
    listener->pause.data = listener;
    return watch_for(&listener->watch, WATCH_READABLE);
}

void listener_close(struct listener *listener)
{
    watch_end(&listener->watch);
    uv_close((uv_handle_t *)&listener->pause, NULL);
}
