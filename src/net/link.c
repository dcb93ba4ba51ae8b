#include "net/link.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "net/tcp_peer.h"
#include "net/tls.h"

#define WRITE_PIECES 64 /* chunks in one write: half a megabyte */

static void on_events(struct watch *watch, unsigned events);

/* Sets an option that the connection does not require, so a failure is ignored. */
static void set_option(int fd, int level, int name, int value)
{
    (void)setsockopt(fd, level, name, &value, sizeof value);
}

static void mark_dirty(struct link *link)
{
    if (list_is_empty(&link->dirty))
        list_push(&link_loop(link)->dirty[link->rank], &link->dirty);
}

/* Records an error for on_end at the next flush: on_end must not run during the owner's call. */
static void fail_later(struct link *link, int error)
{
    link->error = (int16_t)error;
    mark_dirty(link);
}

static unsigned wanted_events(const struct link *link)
{
    if (link->state == LINK_CONNECTING)
        return WATCH_WRITABLE;
    if (link->state == LINK_SHAKING)
        return WATCH_READABLE | (tls_is_full(link_tls(link)) ? WATCH_WRITABLE : 0U);
    unsigned input = !link->is_paused ? WATCH_READABLE : link->wants_end ? WATCH_ENDED : 0U;
    return input | (link->is_full ? WATCH_WRITABLE : 0U);
}

/* Watches exactly the wanted events. */
static void link_wait_anew(struct link *link)
{
    int error = watch_for(&link->watch, wanted_events(link));
    if (error != 0)
        fail_later(link, error);
}

static void link_end(struct link *link, int status)
{
    if (link->state == LINK_CLOSED || link->state == LINK_ENDED)
        return;
    link->state = LINK_ENDED;
    watch_end(&link->watch);
    chain_clear(&link->out, &link_loop(link)->pool);
    link->is_congested = link->is_full = false;
    link->ops->on_end(link, status);
}

/* ---- reading ---- */

static char *room_for(struct link *link, size_t *room)
{
    *room = READ_BUFFER_BYTES;
    char *at = link->ops->on_room != NULL ? link->ops->on_room(link, room) : NULL;
    return at != NULL ? at : link_loop(link)->read_buffer;
}

static ssize_t receive(const struct link *link, char *at, size_t room)
{
    if (link_tls(link) != NULL)
        return tls_read(link_tls(link), link->watch.fd, at, room);
    return read(link->watch.fd, at, room);
}

/* True if there is input that no event of the socket announces. The next flush reads this input. */
static bool has_unread(const struct link *link)
{
    return link_tls(link) != NULL && link->state == LINK_OPEN && !link->is_paused &&
           tls_has_news(link_tls(link));
}

/* True if TLS holds output that the socket has not taken. */
static bool holds_output(const struct link *link)
{
    return link_tls(link) != NULL && tls_is_full(link_tls(link));
}

static void read_failed(struct link *link, int error)
{
    if (error == EAGAIN || error == EINTR)
        return;
    link_end(link, uv_translate_sys_error(error));
}

static void read_end(struct link *link)
{
    link->is_eof = true;
    link_pause(link);
    link->ops->on_end(link, UV_EOF); /* output may still be written */
}

static bool link_append(struct link *link, const char *data, size_t n);

/*
 * Returns the link that the next bytes may be spliced to, NULL if none. Splicing requires plain
 * sockets and no output waiting at the target.
 */
static struct link *passing_to(struct link *link, size_t *most)
{
    if (link->ops->on_passing == NULL || link_tls(link) != NULL ||
        !splice_pipe_works(&link_loop(link)->splice_pipe))
        return NULL;
    struct link *to = link->ops->on_passing(link, most);
    bool can_take = to != NULL && to->state == LINK_OPEN && to->error == 0 && !to->is_full &&
                    !to->is_finishing && to->out.bytes == 0 && link_tls(to) == NULL;
    return can_take && *most >= LINK_PASSING ? to : NULL;
}

/*
 * Splices input to the link `to`, and returns as `receive` does. Bytes that the socket of `to` does
 * not take become ordinary output of `to`.
 */
static ssize_t link_pass(struct link *link, struct link *to, size_t most)
{
    struct loop *loop = link_loop(link);
    struct spliced done = splice_pipe_pass(&loop->splice_pipe, link->watch.fd, to->watch.fd, most);
    if (done.taken <= 0)
        return done.taken;
    bool is_whole = splice_pipe_fetch(&loop->splice_pipe, loop->read_buffer, done.left);
    count_add(&loop->traffic[to->rank].written, (uint64_t)done.taken - done.left);
    to->n_written += (uint64_t)done.taken - done.left;
    if (done.error != 0 || !is_whole)
        fail_later(to, done.error != 0 ? uv_translate_sys_error(done.error) : UV_EIO);
    else if (done.left > 0 && link_append(to, loop->read_buffer, done.left))
        to->is_full = true;
    link_wait_anew(to);
    return done.taken;
}

/*
 * Reads at most LINK_READ_SHARE bytes. If more input is left, the next poll reports the link again,
 * after the other links.
 */
static void read_share(struct link *link)
{
    size_t share = LINK_READ_SHARE;
    while (share > 0 && link->state == LINK_OPEN && !link->is_paused) {
        size_t room;
        struct link *to = passing_to(link, &room);
        char *at = to == NULL ? room_for(link, &room) : NULL;
        if (link->state != LINK_OPEN)
            return; /* no memory to read to */
        ssize_t n = to != NULL ? link_pass(link, to, room) : receive(link, at, room);
        if (n < 0 && to != NULL && errno == EINVAL) {
            splice_pipe_fini(&link_loop(link)->splice_pipe);
            continue;
        }
        if (n < 0) {
            read_failed(link, errno);
            return;
        }
        if (n == 0) {
            read_end(link);
            return;
        }
        loop_tick(link_loop(link));
        count_add(&link_loop(link)->traffic[link->rank].read, (uint64_t)n);
        link->n_read += (uint64_t)n;
        if (to != NULL)
            link->ops->on_passed(link, (size_t)n);
        else
            link->ops->on_data(link, at, (size_t)n);
        if (to != NULL || (size_t)n < room)
            break;
        share -= (size_t)n < share ? (size_t)n : share;
    }
    if (link_tls(link) != NULL && (has_unread(link) || holds_output(link)))
        mark_dirty(link);
}

/*
 * Pausing changes the watched events only when the next readable event comes. Most links are
 * resumed before that event, which saves system calls.
 */
void link_pause(struct link *link)
{
    if (link->state != LINK_OPEN || link->is_paused)
        return;
    link->is_paused = true;
    if (!link->is_eof && !link->is_finishing)
        count_add(&link_loop(link)->traffic[link->rank].pauses, 1);
}

void link_watch_end(struct link *link)
{
    link->wants_end = true;
    if (link->is_paused && link->state == LINK_OPEN && (link->watch.events & WATCH_READABLE) == 0)
        link_wait_anew(link); /* otherwise the next readable event calls link_wait_anew */
}

void link_resume(struct link *link)
{
    if (!link->is_paused || link->is_eof || link->state != LINK_OPEN)
        return;
    link->is_paused = link->wants_end = false;
    link_wait_anew(link);
    if (has_unread(link))
        mark_dirty(link);
}

/* ---- writing ---- */

static ssize_t write_pieces(const struct link *link, const struct slice *pieces, unsigned n)
{
    struct iovec iov[WRITE_PIECES];
    if (link_tls(link) != NULL)
        return tls_write(link_tls(link), link->watch.fd, pieces, n);
    for (unsigned i = 0; i < n; i++)
        iov[i] = (struct iovec){(char *)(uintptr_t)pieces[i].at, pieces[i].len};
    return n == 1 ? write(link->watch.fd, iov->iov_base, iov->iov_len)
                  : writev(link->watch.fd, iov, (int)n);
}

/* Returns the number of bytes the socket has taken, or a negative libuv error. */
static ssize_t send_pieces(struct link *link, const struct slice *pieces, unsigned n)
{
    ssize_t sent = write_pieces(link, pieces, n);
    if (sent >= 0) {
        count_add(&link_loop(link)->traffic[link->rank].written, (uint64_t)sent);
        link->n_written += (uint64_t)sent;
        return sent;
    }
    return errno == EAGAIN || errno == EINTR ? 0 : uv_translate_sys_error(errno);
}

static void check_drained(struct link *link)
{
    if (!link->is_congested || link->out.bytes > LINK_LOW)
        return;
    link->is_congested = false;
    if (link->ops->on_drained != NULL)
        link->ops->on_drained(link);
}

static void shake(struct link *link);

/*
 * True if the peer of a unix socket sent bytes before weir's half-close could reach the peer. A
 * unix socket cannot send bytes and the half-close in one step. weir therefore shuts the read side
 * first. From then on the peer's send() fails, and weir still answers bytes that the peer sent
 * earlier.
 */
static bool link_is_late(const struct link *link)
{
    return link->is_unix && link->ops->on_late != NULL && shutdown(link->watch.fd, SHUT_RD) == 0 &&
           link_has_unread(link);
}

static void link_shut(struct link *link)
{
    link->is_parting = false;
    if (link_is_late(link)) {
        link->ops->on_late(link);
        return;
    }
    if (link_tls(link) != NULL)
        tls_end(link_tls(link), link->watch.fd);
    shutdown(link->watch.fd, SHUT_WR);
}

/* Reads input that TLS still holds, because no event announces this input. */
static void link_catch_up(struct link *link)
{
    if (link->state == LINK_SHAKING)
        shake(link);
    else if (has_unread(link))
        read_share(link);
}

void link_flush(struct link *link)
{
    if (link->error != 0) {
        link_end(link, link->error);
        return;
    }
    if (link_tls(link) != NULL)
        link_catch_up(link);
    if (link->state != LINK_OPEN || link->is_full)
        return;
    if (link->out.bytes > 0 || holds_output(link)) {
        if (link->ops->on_flush != NULL)
            link->ops->on_flush(link);
        struct slice pieces[WRITE_PIECES];
        ssize_t sent = send_pieces(link, pieces, chain_peek(&link->out, pieces, WRITE_PIECES));
        if (sent < 0) {
            link_end(link, (int)sent);
            return;
        }
        chain_drop(&link->out, &link_loop(link)->pool, (size_t)sent);
        link->is_full = link->out.bytes > 0 || holds_output(link);
        link_wait_anew(link);
    }
    check_drained(link);
    bool is_all_sent = link->out.bytes == 0 && !link->is_full;
    if (is_all_sent && link->is_finishing)
        link_end(link, 0);
    else if (is_all_sent && link->is_parting)
        link_shut(link);
}

/*
 * Writes large output at once, without a copy. No output may be waiting. Returns the number of
 * bytes left.
 */
static size_t write_direct(struct link *link, const char *data, size_t n)
{
    struct slice piece = slice_of(data, n);
    ssize_t sent = send_pieces(link, &piece, 1);
    if (sent < 0)
        fail_later(link, (int)sent);
    return sent > 0 ? n - (size_t)sent : n;
}

static bool link_append(struct link *link, const char *data, size_t n)
{
    if (!chain_append(&link->out, &link_loop(link)->pool, data, n)) {
        fail_later(link, UV_ENOMEM);
        return false;
    }
    if (link->out.bytes > LINK_HIGH)
        link->is_congested = true;
    return true;
}

void link_write(struct link *link, const char *data, size_t n)
{
    if (n == 0 || link->state == LINK_CLOSED || link->state == LINK_ENDED || link->error != 0)
        return;
    if (n >= LINK_DIRECT && link->out.bytes == 0 && link->state == LINK_OPEN) {
        size_t left = write_direct(link, data, n);
        data += n - left;
        n = left;
        if (holds_output(link))
            mark_dirty(link);
        if (n == 0)
            return;
    }
    if (link_append(link, data, n))
        mark_dirty(link);
}

void link_finish(struct link *link)
{
    link->is_finishing = true;
    link_pause(link);
    mark_dirty(link);
}

void link_wake(struct link *link)
{
    if (link->state == LINK_CLOSED || !list_is_empty(&link->woken))
        return;
    link->is_again = false;
    list_push(&link_loop(link)->woken, &link->woken);
}

void link_wake_again(struct link *link)
{
    if (link->state == LINK_CLOSED || !list_is_empty(&link->woken))
        return;
    link->is_again = true;
    list_push(&link_loop(link)->again, &link->woken);
}

void link_wake_now(struct link *link)
{
    if (link->is_again)
        list_take(&link->woken);
    link_wake(link);
}

/* ---- opening and closing ---- */

static void open_on(struct link *link, struct loop *loop, enum rank rank, int fd, bool is_unix,
                    const struct link_ops *ops)
{
    memset(link, 0, sizeof *link);
    list_init(&link->dirty);
    list_init(&link->woken);
    link->ops = ops;
    link->rank = rank & 1;
    link->is_unix = is_unix;
    watch_init(&link->watch, &loop->poller, fd, on_events);
    loop_hold(loop);
}

static bool take_tls(struct link *link, struct tls_context *tls, const char *server_name)
{
    struct loop *loop = link_loop(link);
    link->tls = tls_new(tls, server_name, &loop->pool, loop_tls_scratch(loop));
    return link_tls(link) != NULL;
}

static void opened(struct link *link)
{
    link->state = link_tls(link) != NULL ? LINK_SHAKING : LINK_OPEN;
    link_wait_anew(link);
    if (link->out.bytes > 0)
        mark_dirty(link);
}

void link_init_hollow(struct link *link, struct loop *loop, const struct link_ops *ops)
{
    memset(link, 0, sizeof *link);
    list_init(&link->dirty);
    list_init(&link->woken);
    link->ops = ops;
    link->state = LINK_OPEN;
    link->watch.poller = &loop->poller;
}

/* Continues the TLS handshake. Input that follows the handshake is read at once. */
static void shake(struct link *link)
{
    int done = tls_shake(link_tls(link), link->watch.fd);
    if (done == 0) {
        link_wait_anew(link);
        return;
    }
    if (done < 0) {
        int error = uv_translate_sys_error(errno);
        link->state = LINK_ENDED;
        watch_end(&link->watch);
        link->ops->on_connected(link, error);
        return;
    }
    link->state = LINK_OPEN;
    link->is_full = tls_is_full(link_tls(link));
    link_wait_anew(link);
    link->ops->on_connected(link, 0);
    if (has_unread(link) || (link->state == LINK_OPEN && link->out.bytes > 0))
        mark_dirty(link);
}

bool link_secure(struct link *link, struct tls_context *tls, const char *data, size_t n)
{
    if (!take_tls(link, tls, NULL) || !tls_feed(link_tls(link), data, n))
        return false;
    link->state = LINK_SHAKING;
    mark_dirty(link);
    return true;
}

void link_adopt(struct link *link, struct loop *loop, enum rank rank, int fd,
                const struct link_peer *peer, const struct link_ops *ops)
{
    open_on(link, loop, rank, fd, peer->ip.family == 0, ops);
    link->peer = *peer;
    opened(link);
}

int link_connect(struct link *link, struct loop *loop, enum rank rank,
                 const struct link_target *target, const struct link_ops *ops)
{
    const struct endpoint *to = target->endpoint;
    int family = to->address.ss_family;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return uv_translate_sys_error(errno);
    open_on(link, loop, rank, fd, family == AF_UNIX, ops);
    if (target->tls != NULL && !take_tls(link, target->tls, target->server_name)) {
        fail_later(link, UV_ENOMEM);
        return 0;
    }
    if (connect(fd, (const struct sockaddr *)&to->address, to->length) != 0 && errno != EINPROGRESS)
        fail_later(link, uv_translate_sys_error(errno));
    else
        link_wait_anew(link);
    return 0;
}

void link_part(struct link *link)
{
    /* the last bytes and the FIN travel in one packet */
    if (!link->is_unix)
        set_option(link->watch.fd, IPPROTO_TCP, TCP_CORK, 1);
    link->is_parting = true;
    mark_dirty(link);
}

static void connected(struct link *link)
{
    int error = 0;
    socklen_t length = sizeof error;
    if (!link->is_unix)
        link_set_options(link->watch.fd);
    getsockopt(link->watch.fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error == 0)
        opened(link);
    if (link->state == LINK_SHAKING)
        shake(link);
    else
        link->ops->on_connected(link, uv_translate_sys_error(error));
}

static void on_events(struct watch *watch, unsigned events)
{
    struct link *link = container_of(watch, struct link, watch);
    if (link->state == LINK_CONNECTING || link->state == LINK_SHAKING) {
        link->state == LINK_CONNECTING ? connected(link) : shake(link);
        return;
    }
    bool was_full = link->is_full;
    if ((events & WATCH_WRITABLE) != 0 && was_full) {
        link->is_full = false;
        mark_dirty(link);
    }
    if ((events & WATCH_ENDED) != 0 && link->is_paused && link->wants_end) {
        link->wants_end = false;
        link_wait_anew(link);
        link->ops->on_end_ahead(link);
        return;
    }
    bool is_unwanted = (events & WATCH_READABLE) != 0 ? link->is_paused : !was_full;
    if ((events & WATCH_READABLE) != 0)
        read_share(link);
    if (is_unwanted && link->state == LINK_OPEN)
        link_wait_anew(link);
}

void link_close(struct link *link)
{
    if (link->state == LINK_CLOSED)
        return;
    link->state = LINK_CLOSED;
    list_take(&link->dirty);
    list_take(&link->woken);
    if (link_tls(link) != NULL)
        tls_end(link_tls(link), link->watch.fd);
    watch_end(&link->watch);
    close(link->watch.fd);
    list_push(&link_loop(link)->closed, &link->dirty);
}

void link_bury(struct link *link)
{
    chain_clear(&link->out, &link_loop(link)->pool);
    tls_free(link_tls(link));
    link->ops->on_closed(link);
}

struct link_peer link_local(const struct link *link)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t length = sizeof address;
    if (link->state == LINK_CLOSED ||
        getsockname(link->watch.fd, (struct sockaddr *)&address, &length) != 0)
        return (struct link_peer){.port = 0};
    const struct sockaddr *given = (const struct sockaddr *)&address;
    return (struct link_peer){ip_of(given), ip_port_of(given)};
}

/* ---- the socket ---- */

void link_set_options(int fd)
{
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    tcp_peer_keepalive(fd);
}

bool link_has_unread(const struct link *link)
{
    int n = 0;
    return (link_tls(link) != NULL && tls_has_news(link_tls(link))) ||
           (ioctl(link->watch.fd, FIONREAD, &n) == 0 && n > 0);
}

const char *link_why(const struct link *link, int status)
{
    return status == UV_EPROTO && link_tls(link) != NULL && link_tls(link)->why != NULL
               ? link_tls(link)->why
               : uv_strerror(status);
}

struct slice link_tls_name(const struct link *link)
{
    return link_tls(link) != NULL && link_tls(link)->name != NULL ? slice_str(link_tls(link)->name)
                                                                  : slice_of("", 0);
}

bool link_has_vanished(const struct link *link)
{
    return !link->is_unix && !link_is_closed(link) && tcp_peer_has_vanished(link->watch.fd);
}

bool link_is_closed(const struct link *link)
{
    return link->state == LINK_CLOSED;
}
