/*
 * Drives a server: C connections, each of which sends P requests at once, waits for P replies, and
 * repeats.
 *
 * Unlike redis-benchmark the driver continues after errors, and counts them. The driver is cheap
 * enough not to be the bottleneck. A batch takes one system call to read and one to write. A
 * connection is registered with epoll once. The driver reads the processor time of other processes
 * (-p) at the two ends of the measured window, and prints one line of JSON.
 *
 * With -C every connection is closed after one reply of each kind. An operation is then the whole
 * life of a connection. With -R requests are sent when they are due (plan.h), answered or not.
 *
 * Invariant: a connection has `awaited` replies to come, and [sent, sent_end) of its batch still to
 * write. When no reply is awaited and nothing is left to write, the connection gets its next batch.
 * Once the run is over it gets no batch. With -R the `unsent` requests that are due follow as soon
 * as the batch before is written.
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "batches.h"
#include "cpu.h"
#include "histogram.h"
#include "options.h"
#include "plan.h"
#include "resp/scan.h"
#include "stream.h"

#define READ_BYTES ((size_t)256 << 10)
#define EVENTS 512
#define PATIENCE_NS (20 * NS_PER_S) /* after this time without any reply the server hangs */
#define TURN_NS (100 * NS_PER_MS)   /* longest wait for an event */
#define LOST_MAX 1000
#define CHURN_SOURCES 16 /* addresses on 127/8, so that ports are not used up */

struct conn {
    struct stream stream;
    bool wants_write;
    unsigned kind; /* with -C: the last request that was sent */
    unsigned awaited;
    unsigned unsent; /* with -R: requests that are due, and not begun to write */
    const char *sent, *sent_end;
    uint64_t sent_ns;
    struct dues dues; /* with -R: due times of all requests without a reply, unsent or not */
    struct reply_scan scan;
};

struct counts {
    uint64_t replies, errors, lives, lost, bytes;
};

static struct options options;
static struct batches batches;
static struct conn *conns;
static struct plan plan;                               /* with -R */
static struct counts now, before_window, after_window; /* since the start */
/* durations in the window; with -R: of requests due in the window */
static struct histogram took;
/* with -R: delay between due time and sending */
static struct histogram late;
static char first_error[128];
static char read_buffer[READ_BYTES];
static int poller;
static bool is_measuring, is_over;
static uint64_t window_from_ns = UINT64_MAX, window_to_ns = UINT64_MAX;
static uint64_t n_awaited; /* replies to come, of all connections */
static uint64_t last_reply_ns;

static void conn_start(struct conn *conn);

/* ---- connections ---- */

static void conn_watch(struct conn *conn, int how, bool wants_write)
{
    struct epoll_event event = {.events = EPOLLIN | (wants_write ? EPOLLOUT : 0u),
                                .data.ptr = conn};
    conn->wants_write = wants_write;
    if (epoll_ctl(poller, how, conn->stream.fd, &event) < 0)
        err(1, "epoll_ctl");
}

/* With -C: rotates the source address, so that a port is not reused soon. */
static struct in_addr next_source(void)
{
    static unsigned turn;
    return (struct in_addr){.s_addr = htonl(INADDR_LOOPBACK + turn++ % CHURN_SOURCES)};
}

static struct in_addr source_of(const struct conn *conn)
{
    unsigned turn = (unsigned)(conn - conns) % options.n_from;
    return (struct in_addr){.s_addr = htonl(ntohl(options.from.s_addr) + turn)};
}

static void bind_to(int fd, struct in_addr source)
{
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = source};
    int on = 1;
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&from, sizeof from) < 0)
        err(1, "bind");
}

/* Switches the connection to RESP3. */
static void say_hello(struct stream *stream)
{
    static const char hello[] = "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n";
    struct reply_scan scan = {0};
    enum scan_result result = SCAN_MORE;
    struct pollfd readable = {.fd = stream->fd, .events = POLLIN};
    if (stream_send(stream, hello, sizeof hello - 1) < 0)
        err(1, "HELLO");
    while (result == SCAN_MORE) {
        size_t used;
        poll(&readable, 1, -1);
        ssize_t n = stream_recv(stream, read_buffer, sizeof read_buffer);
        if (n < 0 && errno == EAGAIN)
            continue;
        if (n <= 0)
            err(1, "HELLO");
        result = reply_scan(&scan, read_buffer, (size_t)n, &used);
    }
    if (result == SCAN_BAD || scan.kind != '%')
        errx(1, "HELLO 3 was refused");
}

static void conn_open(struct conn *conn)
{
    int on = 1;
    int flags = SOCK_STREAM | SOCK_CLOEXEC | (options.is_churn ? SOCK_NONBLOCK : 0);
    int fd = socket(AF_INET, flags, 0);
    if (fd < 0)
        err(1, "socket");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (options.is_churn || options.from.s_addr)
        bind_to(fd, options.is_churn ? next_source() : source_of(conn));
    if (connect(fd, (struct sockaddr *)&options.to, sizeof options.to) < 0 && errno != EINPROGRESS)
        err(1, "connect");
    *conn = (struct conn){0};
    stream_open(&conn->stream, fd);
    if (options.is_resp3)
        say_hello(&conn->stream);
    conn_watch(conn, EPOLL_CTL_ADD, options.is_churn);
}

static void conn_reopen(struct conn *conn)
{
    stream_close(&conn->stream);
    n_awaited -= conn->awaited;
    dues_fini(&conn->dues);
    conn_open(conn);
    conn_start(conn);
}

static void conn_lose(struct conn *conn)
{
    if (++now.lost > LOST_MAX)
        errx(1, "connections are being closed: %s", first_error[0] ? first_error : strerror(errno));
    conn_reopen(conn);
}

/* ---- requests ---- */

static void conn_write(struct conn *conn)
{
    while (conn->sent < conn->sent_end) {
        ssize_t n = stream_send(&conn->stream, conn->sent, (size_t)(conn->sent_end - conn->sent));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break; /* the socket is full, or broken; a broken socket has an event to read */
        conn->sent += n;
    }
    bool wants_write = conn->sent < conn->sent_end;
    if (wants_write != conn->wants_write)
        conn_watch(conn, EPOLL_CTL_MOD, wants_write);
}

/* Sends the next batch; with -C, the next request of the connection's life. */
static void conn_send(struct conn *conn, uint64_t now_ns)
{
    size_t len;
    conn->sent = batches_next(&batches, &len);
    conn->sent_end = conn->sent + len;
    conn->awaited += options.pipeline;
    n_awaited += options.pipeline;
    if (!options.is_churn || conn->kind == 0)
        conn->sent_ns = now_ns;
    conn_write(conn);
}

/* With -C each life of a connection sends one batch for each kind, from the first kind on. */
static void conn_send_kind(struct conn *conn, uint64_t now_ns)
{
    batches.next = conn->kind;
    conn_send(conn, now_ns);
}

static void conn_start(struct conn *conn)
{
    if (is_over || options.rate > 0)
        return;
    if (options.is_churn)
        conn_send_kind(conn, clock_ns());
    else
        conn_send(conn, clock_ns());
}

/* With -R: sends the due requests, as many as the socket takes. */
static void conn_send_due(struct conn *conn, uint64_t now_ns)
{
    for (; conn->unsent > 0 && conn->sent == conn->sent_end && !is_over; conn->unsent--)
        conn_send(conn, now_ns);
}

/* With -R: sends all requests that are due by now. */
static void send_due(uint64_t now_ns)
{
    for (uint64_t due_ns; (due_ns = plan_next_ns(&plan)) <= now_ns; plan_step(&plan)) {
        struct conn *conn = &conns[plan.conn];
        dues_push(&conn->dues, due_ns);
        conn->unsent++;
        if (is_measuring)
            histogram_add(&late, now_ns - due_ns, 1);
        conn_send_due(conn, now_ns);
    }
}

/* Goes on after all replies of the batch have arrived. */
static void conn_done(struct conn *conn, uint64_t now_ns)
{
    if (options.is_churn && ++conn->kind < recipe_kinds(&options.recipe)) {
        conn_send_kind(conn, now_ns);
        return;
    }
    if (options.is_churn) {
        now.lives++;
        if (is_measuring)
            histogram_add(&took, now_ns - conn->sent_ns, 1);
        conn_reopen(conn);
    } else if (!is_over) {
        conn_send(conn, now_ns);
    }
}

/* ---- replies ---- */

static void note_error(const char *frame, const char *end)
{
    now.errors++;
    if (first_error[0] || frame >= end || *frame != '-')
        return;
    for (size_t i = 0; i < sizeof first_error - 1 && frame < end && *frame != '\r'; i++, frame++)
        first_error[i] = *frame == '"' || *frame == '\\' || *frame < ' ' ? '?' : *frame;
}

/* Number of replies that end in these bytes. */
static unsigned count_replies(struct conn *conn, const char *at, size_t n)
{
    const char *end = at + n;
    unsigned replies = 0;
    while (at < end) {
        size_t used;
        enum scan_result result = reply_scan(&conn->scan, at, (size_t)(end - at), &used);
        if (result == SCAN_BAD)
            errx(1, "this is not RESP: %.*s", (int)(end - at < 80 ? end - at : 80), at);
        if (result == SCAN_FRAME && conn->scan.kind == '-')
            note_error(at, end);
        if (result == SCAN_FRAME && conn->scan.kind != '>')
            replies++;
        at += used;
    }
    return replies;
}

static void note_times(struct conn *conn, unsigned replies, uint64_t now_ns)
{
    if (options.rate == 0) {
        if (is_measuring && !options.is_churn)
            histogram_add(&took, now_ns - conn->sent_ns, replies);
        return;
    }
    for (unsigned i = 0; i < replies; i++) {
        uint64_t due_ns = dues_pop(&conn->dues);
        if (due_ns >= window_from_ns && due_ns < window_to_ns)
            histogram_add(&took, now_ns - due_ns, 1);
    }
}

static void conn_read(struct conn *conn)
{
    ssize_t n = stream_recv(&conn->stream, read_buffer, sizeof read_buffer);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    uint64_t now_ns = clock_ns();
    if (n <= 0) {
        /* The server may answer QUIT by closing. */
        if (options.is_churn && n == 0 && conn->kind + 1 == recipe_kinds(&options.recipe))
            conn_done(conn, now_ns);
        else
            conn_lose(conn);
        return;
    }
    unsigned replies = count_replies(conn, read_buffer, (size_t)n);
    if (replies > conn->awaited)
        errx(1, "more replies than requests");
    now.bytes += (uint64_t)n;
    now.replies += replies;
    conn->awaited -= replies;
    n_awaited -= replies;
    if (replies == 0)
        return;
    last_reply_ns = now_ns;
    note_times(conn, replies, now_ns);
    if (conn->awaited == 0 && options.rate == 0)
        conn_done(conn, now_ns);
}

static void turn(uint64_t timeout_ns)
{
    struct epoll_event events[EVENTS];
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / NS_PER_S),
                               .tv_nsec = (long)(timeout_ns % NS_PER_S)};
    int n = epoll_pwait2(poller, events, EVENTS, &timeout, NULL);
    for (int i = 0; i < n; i++) {
        struct conn *conn = events[i].data.ptr;
        if (events[i].events & EPOLLOUT) {
            conn_write(conn);
            conn_send_due(conn, clock_ns());
        }
        if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
            conn_read(conn);
    }
}

/* ---- the run ---- */

struct moment {
    uint64_t ns;
    struct cpu cpu[PIDS_MAX];
    struct cpu own;
};

static struct moment moment_now(void)
{
    struct moment moment = {.own = cpu_of(getpid())};
    for (unsigned i = 0; i < options.n_pids; i++)
        moment.cpu[i] = cpu_of(options.pids[i]);
    moment.ns = clock_ns();
    return moment;
}

/* Time until the next request is due. The time spent on sending due requests is subtracted. */
static uint64_t until_next_ns(uint64_t from_ns)
{
    uint64_t next_ns = plan_next_ns(&plan), now_ns = next_ns > from_ns ? clock_ns() : from_ns;
    if (next_ns <= now_ns)
        return 0;
    return next_ns - now_ns < TURN_NS ? next_ns - now_ns : TURN_NS;
}

static void go_until(uint64_t until_ns)
{
    /* One clock reading for each iteration is enough: the window is measured, not assumed. */
    while (last_reply_ns < until_ns && (options.count == 0 || now.replies < options.count)) {
        uint64_t now_ns = clock_ns();
        if (now_ns >= until_ns)
            return;
        if (now_ns > last_reply_ns + PATIENCE_NS)
            errx(1, "no reply for %" PRIu64 " s", (uint64_t)(PATIENCE_NS / NS_PER_S));
        uint64_t wait_ns = TURN_NS;
        if (options.rate > 0) {
            send_due(now_ns);
            wait_ns = until_next_ns(now_ns);
        }
        turn(wait_ns);
    }
}

/* Waits for all replies, so that the next run finds the servers idle. */
static void finish(void)
{
    is_over = true;
    uint64_t give_up_ns = clock_ns() + PATIENCE_NS;
    while (n_awaited > 0 && clock_ns() < give_up_ns)
        turn(TURN_NS);
}

static void print_list(const char *name, const struct moment *from, const struct moment *to,
                       size_t field)
{
    printf("\"%s\": [", name);
    for (unsigned i = 0; i < options.n_pids; i++) {
        uint64_t before, after;
        memcpy(&before, (const char *)&from->cpu[i] + field, sizeof before);
        memcpy(&after, (const char *)&to->cpu[i] + field, sizeof after);
        printf("%s%" PRIu64, i ? ", " : "", after - before);
    }
    printf("], ");
}

static double quantile_us(const struct histogram *histogram, double q)
{
    return (double)histogram_quantile(histogram, q) / (double)NS_PER_US;
}

static void report(const struct moment *from, const struct moment *to)
{
    const struct counts *after = &after_window, *before = &before_window;
    double seconds = (double)(to->ns - from->ns) / (double)NS_PER_S;
    uint64_t ops =
        options.is_churn ? after->lives - before->lives : after->replies - before->replies;
    printf("{\"seconds\": %.6f, \"ops\": %" PRIu64 ", \"errors\": %" PRIu64 ", \"lost\": %" PRIu64
           ", \"bytes\": %" PRIu64 ", ",
           seconds, ops, after->errors - before->errors, after->lost - before->lost,
           after->bytes - before->bytes);
    printf("\"p50_us\": %.2f, \"p99_us\": %.2f, \"late_p99_us\": %.2f, ", quantile_us(&took, 0.5),
           quantile_us(&took, 0.99), quantile_us(&late, 0.99));
    printf("\"own_cpu_ns\": %" PRIu64 ", ", to->own.ran_ns - from->own.ran_ns);
    print_list("cpu_ns", from, to, offsetof(struct cpu, ran_ns));
    print_list("waited_ns", from, to, offsetof(struct cpu, waited_ns));
    printf("\"replies_in_all\": %" PRIu64 ", \"bytes_in_all\": %" PRIu64
           ", \"first_error\": \"%s\"}\n",
           now.replies, now.bytes, first_error);
}

static void run(void)
{
    poller = epoll_create1(EPOLL_CLOEXEC);
    conns = calloc(options.conns, sizeof *conns);
    if (poller < 0 || !conns)
        err(1, "no memory");
    for (unsigned i = 0; i < options.conns; i++)
        conn_open(&conns[i]);
    uint64_t start_ns = last_reply_ns = clock_ns();
    if (options.rate > 0)
        plan_init(&plan, options.rate, options.conns, options.recipe.seed, start_ns);
    for (unsigned i = 0; i < options.conns; i++)
        conn_start(&conns[i]);
    uint64_t from_ns = start_ns + (uint64_t)(options.warm_up * (double)NS_PER_S);
    go_until(options.begin_ns > from_ns ? options.begin_ns : from_ns);
    before_window = now;
    is_measuring = true;
    struct moment from = moment_now();
    window_from_ns = from.ns;
    go_until(options.count ? UINT64_MAX : from.ns + (uint64_t)(options.seconds * (double)NS_PER_S));
    struct moment to = moment_now();
    window_to_ns = to.ns;
    after_window = now;
    is_measuring = false;
    finish();
    report(&from, &to);
}

int main(int argc, char **argv)
{
    options = options_read(argc, argv);
    prctl(PR_SET_TIMERSLACK, 1); /* ns: due requests are sent on time */
    if (options.is_tls)
        streams_use_tls();
    batches_init(&batches, &options.recipe);
    run();
    return 0;
}
