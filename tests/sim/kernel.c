#include "tests/sim/kernel.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/mem.h"
#include "tests/sim/sockets.h"
#include "tests/sim/trace.h"

#define TIMED_OUT_NS UINT64_C(2000000000) /* longest */

enum { STREAM_KERNEL = 2 };

struct kernel kernel;

static struct sock *socks[KERNEL_FDS_MAX];
static int lowest; /* all descriptors below this number are in use */
static int end;    /* all descriptors from this number on have never been open */

void kernel_init(uint64_t seed)
{
    kernel = (struct kernel){0};
    random_init(&kernel.chance, seed, STREAM_KERNEL);
}

void kernel_fini(void)
{
    for (int i = 0; i < end; i++)
        if (socks[i] != NULL)
            sock_close(KERNEL_FIRST_FD + i);
    end = 0;
}

/* ---- descriptors ---- */

struct sock *sock_of(int fd)
{
    return is_simulated(fd) ? socks[fd - KERNEL_FIRST_FD] : NULL;
}

int sock_open(enum sock_kind kind, int family)
{
    bool is_counted = kind != SOCK_POLLS && kind != SOCK_PIPE;
    if (is_counted && kernel.n_open >= kernel.odds.fds)
        return -1;
    while (socks[lowest] != NULL)
        lowest++;
    end = end > lowest ? end : lowest + 1;
    struct sock *sock = socks[lowest] = mem_zalloc(1, sizeof *sock);
    sock->kind = kind;
    sock->family = family;
    kernel.n_open += is_counted;
    return KERNEL_FIRST_FD + lowest;
}

void sock_close(int fd)
{
    struct sock *sock = sock_of(fd);
    for (; sock->n_waiting > 0; sock->n_waiting--)
        conn_drop(sock->waiting[sock->first_waiting++ % BACKLOG_MAX]);
    while (sock->n_watchers > 0)
        watcher_forget(sock->watchers[--sock->n_watchers]);
    if (sock->conn != NULL)
        conn_drop(sock->conn);
    kernel.n_open -= sock->kind != SOCK_POLLS && sock->kind != SOCK_PIPE;
    free(sock->held);
    free(sock->waiting);
    free(sock);
    socks[fd - KERNEL_FIRST_FD] = NULL;
    lowest = fd - KERNEL_FIRST_FD < lowest ? fd - KERNEL_FIRST_FD : lowest;
}

static unsigned conn_events(const struct conn *conn)
{
    unsigned events = 0;
    if (conn->state == CONN_CONNECTING)
        return 0;
    if (conn->error != 0)
        return POLLERR | POLLHUP | POLLIN | POLLOUT;
    if (conn->to_weir.arrived > conn->to_weir.head || conn->to_weir.end != PIPE_OPEN)
        events |= POLLIN;
    if (conn->to_weir.end != PIPE_OPEN)
        events |= POLLRDHUP;
    bool has_room =
        pipe_room(&conn->to_host) >= conn->to_host.limit / 3 && pipe_space(&conn->to_host) > 0;
    if (has_room || conn->weir_has_shut)
        events |= POLLOUT;
    return events;
}

unsigned kernel_events(int fd)
{
    const struct sock *sock = sock_of(fd);
    if (sock == NULL)
        return 0;
    if (sock->kind == SOCK_LISTENS)
        return sock->n_waiting > 0 ? POLLIN : 0;
    return sock->kind == SOCK_CONNECTED ? conn_events(sock->conn) : POLLOUT | POLLHUP;
}

void sock_changed(int fd)
{
    const struct sock *sock = sock_of(fd);
    for (unsigned i = 0; sock != NULL && i < sock->n_watchers; i++)
        watcher_look(sock->watchers[i]);
}

uint64_t kernel_delay(void)
{
    return kernel.odds.delay_ns > 0 ? random_below(&kernel.chance, kernel.odds.delay_ns + 1) : 0;
}

/* ---- connections ---- */

static void on_weir_side(struct pipe *pipe)
{
    struct conn *conn = container_of(pipe, struct conn, to_weir);
    if (pipe->end == PIPE_RESET && conn->state == CONN_OPEN && conn->error == 0)
        conn->error = ECONNRESET;
    if (conn->fd >= 0)
        sock_changed(conn->fd);
}

static void on_host_side(struct pipe *pipe)
{
    struct conn *conn = container_of(pipe, struct conn, to_host);
    if (conn->host_has_closed) {
        pipe_take(pipe, pipe->arrived - pipe->head);
        pipe_finish(&conn->to_weir, PIPE_RESET, kernel_delay());
    } else if (conn->host != NULL) {
        world_wake(conn->host);
    }
}

static void on_weir_marked(struct pipe *pipe)
{
    kernel.striker->on_marked(container_of(pipe, struct conn, to_weir), true);
}

static void on_host_marked(struct pipe *pipe)
{
    kernel.striker->on_marked(container_of(pipe, struct conn, to_host), false);
}

static struct conn *conn_new(struct party *host, void *owner)
{
    struct conn *conn = mem_zalloc(1, sizeof *conn);
    conn->number = ++kernel.n_conns;
    conn->fd = -1;
    conn->host = host;
    conn->owner = owner;
    pipe_open(&conn->to_weir, kernel.odds.window, on_weir_side);
    pipe_open(&conn->to_host, kernel.odds.window, on_host_side);
    conn->to_weir.on_marked = on_weir_marked;
    conn->to_host.on_marked = on_host_marked;
    kernel.n_live++;
    return conn;
}

static void free_if_over(struct conn *conn)
{
    if (!conn->host_has_closed || !conn->weir_has_closed)
        return;
    if (kernel.striker != NULL)
        kernel.striker->on_gone(conn);
    pipe_fini(&conn->to_weir);
    pipe_fini(&conn->to_host);
    world_silence(&conn->bell);
    if (conn->left != NULL)
        conn->left->ring(conn->left);
    free(conn->moments);
    free(conn);
    kernel.n_live--;
}

void conn_call(struct conn *conn, enum conn_side side, unsigned index, unsigned life)
{
    conn->name = (struct conn_name){side, index, life};
    if (kernel.striker != NULL)
        kernel.striker->on_named(conn);
}

void meter_add(struct meter *meter, size_t n)
{
    *meter = (struct meter){meter->bytes + n, world.now_ns, world.steps};
}

static bool listens_at(const struct sock *sock, uint16_t port, const char *path)
{
    if (sock == NULL || sock->kind != SOCK_LISTENS)
        return false;
    if (sock->local.ss_family == AF_UNIX)
        return port == 0 &&
               strcmp(((const struct sockaddr_un *)(const void *)&sock->local)->sun_path, path) ==
                   0;
    return port != 0 &&
           ((const struct sockaddr_in *)(const void *)&sock->local)->sin_port == htons(port);
}

/* Of several listeners at one port any may get the connection. */
static int find_listener(uint16_t port, const char *path)
{
    int found = -1, n = 0;
    for (int i = 0; i < end; i++)
        if (listens_at(socks[i], port, path) && socks[i]->n_waiting < BACKLOG_MAX)
            if (random_below(&kernel.chance, (uint64_t)++n) == 0)
                found = KERNEL_FIRST_FD + i;
    return found;
}

struct conn *conn_dial(uint16_t port, const char *path, const struct sockaddr *peer,
                       socklen_t peer_len, struct party *host, void *owner)
{
    int fd = find_listener(port, path);
    if (fd < 0)
        return NULL;
    struct sock *sock = sock_of(fd);
    struct conn *conn = conn_new(host, owner);
    conn->state = CONN_OPEN;
    conn->is_unix = port == 0;
    if (peer_len > 0)
        memcpy(&conn->peer, peer, peer_len);
    conn->peer_len = peer_len;
    sock->waiting[(sock->first_waiting + sock->n_waiting++) % BACKLOG_MAX] = conn;
    trace_note(TRACE_DIAL, conn->number, NULL, 0);
    sock_changed(fd);
    return conn;
}

static void on_connected(struct bell *bell)
{
    struct conn *conn = container_of(bell, struct conn, bell);
    conn->state = conn->error != 0 ? CONN_FAILED : CONN_OPEN;
    if (conn->fd >= 0)
        sock_changed(conn->fd);
}

void conn_begin(int fd, const struct sockaddr *to, socklen_t len)
{
    struct sock *sock = sock_of(fd);
    struct conn *conn = conn_new(NULL, NULL);
    conn->fd = fd;
    sock->conn = conn;
    sock->kind = SOCK_CONNECTED;
    memcpy(&conn->peer, to, len);
    conn->peer_len = len;
    conn->bell.ring = on_connected;
    bool is_silent = kernel.is_silent != NULL && kernel.is_silent(conn);
    if (random_hits(&kernel.chance, kernel.odds.drop) || is_silent) {
        conn->host_has_closed = true;
        return;
    }
    uint64_t takes_ns = kernel_delay();
    if (random_hits(&kernel.chance, kernel.odds.timed_out)) {
        conn->host_has_closed = true;
        conn->error = ETIMEDOUT;
        takes_ns = random_below(&kernel.chance, TIMED_OUT_NS);
    } else if (random_hits(&kernel.chance, kernel.odds.refuse) || !kernel.on_dialled(conn)) {
        conn->host_has_closed = true;
        conn->error = ECONNREFUSED;
    }
    conn_call(conn, SIDE_LANE, ++kernel.n_lanes, 0);
    world_ring_at(&conn->bell, world.now_ns + takes_ns);
}

void conn_drop(struct conn *conn)
{
    bool is_rude = conn->to_weir.arrived > conn->to_weir.head || conn->to_weir.end == PIPE_RESET ||
                   conn->state == CONN_CONNECTING;
    conn->fd = -1;
    conn->weir_has_closed = true;
    world_silence(&conn->bell);
    if (!conn->host_has_closed)
        pipe_finish(&conn->to_host, is_rude ? PIPE_RESET : PIPE_FIN, kernel_delay());
    free_if_over(conn);
}

/* ---- the host's side ---- */

size_t conn_send(struct conn *conn, const char *data, size_t n)
{
    if (conn->to_weir.sent_end != PIPE_OPEN || conn->to_host.sent_end == PIPE_RESET)
        return n;
    if (conn->weir_has_closed) {
        pipe_finish(&conn->to_host, PIPE_RESET, kernel_delay());
        return n;
    }
    size_t space = pipe_space(&conn->to_weir);
    conn->host_wants_space = space < n;
    n = n < space ? n : space;
    if (n > 0)
        pipe_put(&conn->to_weir, data, n, kernel_delay());
    return n;
}

struct slice conn_here(const struct conn *conn)
{
    return pipe_here(&conn->to_host);
}

void conn_take(struct conn *conn, size_t n)
{
    bool was_full = pipe_room(&conn->to_host) < conn->to_host.limit / 3;
    pipe_take(&conn->to_host, n);
    if (was_full && conn->fd >= 0)
        sock_changed(conn->fd);
}

void conn_shut(struct conn *conn)
{
    pipe_finish(&conn->to_weir, PIPE_FIN, kernel_delay());
}

void conn_close(struct conn *conn, bool with_reset)
{
    bool is_rude = with_reset || conn->to_host.arrived > conn->to_host.head;
    conn->host = NULL;
    conn->host_has_closed = true;
    if (!conn->weir_has_closed)
        pipe_finish(&conn->to_weir, is_rude ? PIPE_RESET : PIPE_FIN, kernel_delay());
    free_if_over(conn);
}

bool conn_has_ended(const struct conn *conn)
{
    return conn->to_host.end != PIPE_OPEN;
}

bool conn_is_over(const struct conn *conn)
{
    return conn_has_ended(conn) && conn->to_host.arrived == conn->to_host.head;
}

void conn_note_read(struct conn *conn, size_t n)
{
    conn->read_by_weir += n;
    if (!conn->counts_reads)
        return;
    if (conn->last_moment == conn->moment_room) {
        size_t left = conn->last_moment - conn->first_moment;
        if (conn->first_moment <= conn->moment_room / 2) {
            conn->moment_room = conn->moment_room > 0 ? 2 * conn->moment_room : 16;
            conn->moments = mem_realloc(conn->moments, conn->moment_room, sizeof *conn->moments);
        }
        memmove(conn->moments, conn->moments + conn->first_moment, left * sizeof *conn->moments);
        conn->first_moment = 0;
        conn->last_moment = left;
    }
    conn->moments[conn->last_moment++] = (struct moment){conn->read_by_weir, world.now_ns};
}

uint64_t conn_read_at(struct conn *conn, uint64_t upto)
{
    uint64_t begun_ns =
        conn->first_moment < conn->last_moment ? conn->moments[conn->first_moment].at_ns : 0;
    while (conn->first_moment < conn->last_moment && conn->moments[conn->first_moment].upto < upto)
        conn->first_moment++;
    return conn->first_moment < conn->last_moment ? conn->moments[conn->first_moment].at_ns
                                                  : begun_ns;
}

void conn_break(struct conn *conn, int error)
{
    if (conn->weir_has_closed || conn->state != CONN_OPEN)
        return;
    conn->error = error;
    pipe_finish(&conn->to_weir, PIPE_RESET, 0);
    if (!conn->host_has_closed)
        pipe_finish(&conn->to_host, PIPE_RESET, kernel_delay());
}

void conn_stir(struct conn *conn)
{
    if (conn->host != NULL)
        world_wake(conn->host);
    if (conn->fd >= 0)
        sock_changed(conn->fd);
}

unsigned loop_conn_number(int fd)
{
    const struct sock *sock = sock_of(fd);
    return sock != NULL && sock->conn != NULL ? sock->conn->number : 0;
}
