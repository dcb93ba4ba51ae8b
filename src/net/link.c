#include "net/link.h"

#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

#define WRITE_PIECES 64      /* chunks in one write: half a megabyte */
#define KEEPALIVE_SECONDS 60 /* idle time before the first probe; Redis' is 300, middleboxes forget sooner */

enum link_state { LINK_CONNECTING, LINK_OPEN, LINK_ENDED, LINK_CLOSED };

struct pending_write {
    uv_write_t uv;
    size_t bytes;
};

static struct link *link_of(void *handle)
{
    return container_of(handle, struct link, uv);
}

static bool is_writing(const struct link *link)
{
    return link->request != NULL;
}

static void mark_dirty(struct link *link)
{
    if (list_is_empty(&link->dirty))
        list_push(&link_loop(link)->dirty[link->rank], &link->dirty);
}

/* Remembered, and told by on_end at the next flush: the caller is in the middle of something. */
static void fail_later(struct link *link, int error)
{
    link->error = (int16_t)error;
    mark_dirty(link);
}

/* ---- reading ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    struct link *link = link_of(handle);
    size_t room = 0;
    char *at = link->ops->on_room != NULL ? link->ops->on_room(link, &room) : NULL;
    if (at == NULL) {
        at = link_loop(link)->read_buffer;
        room = READ_BUFFER_BYTES;
    }
    buf->base = at;
    buf->len = room;
}

/* Bounded work: whoever keeps sending lets the others have their turn. */
static void count_share(struct link *link, size_t n)
{
    struct loop *loop = link_loop(link);
    if (link->turn != loop->turn) {
        link->turn = loop->turn;
        link->read_bytes = 0;
    }
    link->read_bytes += (uint32_t)n;
    if (link->read_bytes < LINK_READ_SHARE || link->is_paused || link->is_resting)
        return;
    uv_read_stop(&link->uv.stream);
    link->is_resting = true;
    list_push(&loop->resting, &link->resting);
}

static void end(struct link *link, int status)
{
    if (link->state == LINK_CLOSED || link->state == LINK_ENDED)
        return;
    link->state = LINK_ENDED;
    uv_read_stop(&link->uv.stream);
    link->ops->on_end(link, status);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct link *link = link_of(stream);
    if (n == 0)
        return;
    if (n < 0) {
        if (n == UV_EOF) {
            link_pause(link);
            link->is_eof = true;
            link->ops->on_end(link, UV_EOF); /* the other direction may still be open */
        } else {
            end(link, (int)n);
        }
        return;
    }
    link_loop(link)->now_ns = clock_ns();
    count_share(link, (size_t)n);
    link->ops->on_data(link, buf->base, (size_t)n);
}

static void start_reading(struct link *link)
{
    int status = uv_read_start(&link->uv.stream, on_alloc, on_read);
    if (status != 0)
        fail_later(link, status);
}

void link_rested(struct link *link)
{
    link->is_resting = false;
    if (link->state == LINK_OPEN && !link->is_paused)
        start_reading(link);
}

void link_pause(struct link *link)
{
    if (link->is_paused || link->state != LINK_OPEN)
        return;
    link->is_paused = true;
    uv_read_stop(&link->uv.stream);
}

void link_resume(struct link *link)
{
    if (!link->is_paused || link->is_eof || link->state != LINK_OPEN)
        return;
    link->is_paused = false;
    if (!link->is_resting)
        start_reading(link);
}

/* ---- writing ---- */

static void on_written(uv_write_t *request, int status)
{
    struct pending_write *write = (struct pending_write *)(void *)request;
    struct link *link = link_of(request->handle);
    size_t bytes = write->bytes;
    link->request = NULL;
    free(write);
    if (link->state == LINK_CLOSED)
        return;
    if (status != 0) {
        end(link, status);
        return;
    }
    chain_drop(&link->out, &link_loop(link)->pool, bytes);
    mark_dirty(link);
}

/* The socket is full: let libuv wait for it. */
static void write_later(struct link *link, const uv_buf_t *bufs, unsigned n)
{
    struct pending_write *write = malloc(sizeof *write);
    if (write == NULL) {
        end(link, UV_ENOMEM);
        return;
    }
    write->bytes = 0;
    for (unsigned i = 0; i < n; i++)
        write->bytes += bufs[i].len;
    int status = uv_write(&write->uv, &link->uv.stream, bufs, n, on_written);
    if (status != 0) {
        free(write);
        end(link, status);
        return;
    }
    link->request = write;
}

static unsigned pieces_of(const struct link *link, uv_buf_t *bufs)
{
    struct slice pieces[WRITE_PIECES];
    unsigned n = chain_peek(&link->out, pieces, WRITE_PIECES);
    for (unsigned i = 0; i < n; i++)
        bufs[i] = uv_buf_init((char *)(uintptr_t)pieces[i].at, (unsigned)pieces[i].len);
    return n;
}

static void check_drained(struct link *link)
{
    if (!link->is_congested || link->out.bytes > LINK_LOW)
        return;
    link->is_congested = false;
    if (link->ops->on_drained != NULL)
        link->ops->on_drained(link);
}

void link_flush(struct link *link)
{
    if (link->error != 0) {
        end(link, link->error);
        return;
    }
    if (link->state != LINK_OPEN || is_writing(link))
        return;
    if (link->out.bytes > 0) {
        uv_buf_t bufs[WRITE_PIECES];
        unsigned n = pieces_of(link, bufs);
        int sent = uv_try_write(&link->uv.stream, bufs, n);
        if (sent < 0 && sent != UV_EAGAIN) {
            end(link, sent);
            return;
        }
        if (sent > 0)
            chain_drop(&link->out, &link_loop(link)->pool, (size_t)sent);
        if (link->out.bytes > 0) {
            n = pieces_of(link, bufs);
            write_later(link, bufs, n);
        }
    }
    check_drained(link);
    if (link->out.bytes == 0 && link->is_finishing)
        end(link, 0);
}

/* Large output goes out at once when nothing is ahead of it: no copy. Returns what is left. */
static size_t write_direct(struct link *link, const char *data, size_t n)
{
    uv_buf_t buf = uv_buf_init((char *)(uintptr_t)data, (unsigned)n);
    int sent = uv_try_write(&link->uv.stream, &buf, 1);
    if (sent < 0 && sent != UV_EAGAIN)
        fail_later(link, sent);
    return sent > 0 ? n - (size_t)sent : n;
}

void link_write(struct link *link, const char *data, size_t n)
{
    if (n == 0 || link->state == LINK_CLOSED || link->state == LINK_ENDED || link->error != 0)
        return;
    if (n >= LINK_DIRECT && link->out.bytes == 0 && !is_writing(link) && link->state == LINK_OPEN) {
        size_t left = write_direct(link, data, n);
        data += n - left;
        n = left;
        if (n == 0)
            return;
    }
    if (!chain_append(&link->out, &link_loop(link)->pool, data, n)) {
        fail_later(link, UV_ENOMEM);
        return;
    }
    if (link->out.bytes > LINK_HIGH)
        link->is_congested = true;
    mark_dirty(link);
}

void link_finish(struct link *link)
{
    link_pause(link);
    link->is_finishing = true;
    mark_dirty(link);
}

void link_wake(struct link *link)
{
    if (link->state != LINK_CLOSED && list_is_empty(&link->woken))
        list_push(&link_loop(link)->woken, &link->woken);
}

/* ---- opening and closing ---- */

static int link_init(struct link *link, struct loop *loop, enum rank rank, bool is_unix, const struct link_ops *ops)
{
    memset(link, 0, sizeof *link);
    list_init(&link->dirty);
    list_init(&link->woken);
    list_init(&link->resting);
    link->ops = ops;
    link->rank = (uint8_t)rank;
    return is_unix ? uv_pipe_init(&loop->uv, &link->uv.pipe, 0) : uv_tcp_init(&loop->uv, &link->uv.tcp);
}

static void set_tcp_options(struct link *link)
{
    uv_tcp_nodelay(&link->uv.tcp, 1);
    uv_tcp_keepalive(&link->uv.tcp, 1, KEEPALIVE_SECONDS);
}

int link_adopt(struct link *link, struct loop *loop, enum rank rank, int fd, bool is_unix, const struct link_ops *ops)
{
    int status = link_init(link, loop, rank, is_unix, ops);
    if (status != 0) {
        close(fd);
        return status;
    }
    status = is_unix ? uv_pipe_open(&link->uv.pipe, fd) : uv_tcp_open(&link->uv.tcp, fd);
    if (status != 0) {
        close(fd);
        link->state = LINK_OPEN;
        link_close(link);
        return 0; /* on_closed follows: the handle is libuv's until then */
    }
    if (!is_unix)
        set_tcp_options(link);
    link->state = LINK_OPEN;
    start_reading(link);
    return 0;
}

static void on_connect(uv_connect_t *request, int status)
{
    struct link *link = link_of(request->handle);
    link->request = NULL;
    free(request);
    if (link->state == LINK_CLOSED)
        return;
    if (status == 0) {
        link->state = LINK_OPEN;
        if (link->uv.handle.type == UV_TCP)
            set_tcp_options(link);
        start_reading(link);
        if (link->out.bytes > 0)
            mark_dirty(link);
    }
    link->ops->on_connected(link, status);
}

int link_connect(struct link *link, struct loop *loop, enum rank rank, const struct endpoint *to,
                 const struct link_ops *ops)
{
    uv_connect_t *request = malloc(sizeof *request);
    if (request == NULL)
        return UV_ENOMEM;
    bool is_unix = to->address.ss_family == AF_UNIX;
    int status = link_init(link, loop, rank, is_unix, ops);
    if (status != 0) {
        free(request);
        return status;
    }
    link->request = request;
    if (is_unix) {
        const struct sockaddr_un *un = (const void *)&to->address;
        uv_pipe_connect(request, &link->uv.pipe, un->sun_path, on_connect);
        return 0;
    }
    status = uv_tcp_connect(request, &link->uv.tcp, (const struct sockaddr *)&to->address, on_connect);
    if (status != 0) {
        link->request = NULL;
        free(request);
        fail_later(link, status);
    }
    return 0;
}

static void on_close(uv_handle_t *handle)
{
    struct link *link = link_of(handle);
    chain_clear(&link->out, &link_loop(link)->pool);
    link->ops->on_closed(link);
}

void link_close(struct link *link)
{
    if (link->state == LINK_CLOSED)
        return;
    link->state = LINK_CLOSED;
    list_take(&link->dirty);
    list_take(&link->woken);
    list_take(&link->resting);
    uv_close(&link->uv.handle, on_close);
}

bool link_is_closed(const struct link *link)
{
    return link->state == LINK_CLOSED;
}

void link_peer(const struct link *link, struct sockaddr_storage *out)
{
    int length = sizeof *out;
    memset(out, 0, sizeof *out);
    if (link->uv.handle.type == UV_TCP)
        if (uv_tcp_getpeername(&link->uv.tcp, (struct sockaddr *)out, &length) != 0)
            out->ss_family = AF_UNSPEC;
}
