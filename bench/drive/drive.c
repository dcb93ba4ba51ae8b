/*
 * Drives a server: C connections, each of which sends P requests at once, waits for P replies, and begins again.
 *
 * Unlike redis-benchmark it goes on after errors, counts them, is fast enough not to be what is measured (one system
 * call to read and one to write a batch, one epoll registration for a connection's life), and notes the processor time
 * of other processes (-p) at the two ends of the very stretch that it measures. One line of JSON says what came out.
 * With -C every connection is closed when it has had each kind of request answered once: an operation is such a life.
 *
 * Invariant: a connection has `awaited` replies to come, and [sent, sent_end) of its batch still to write; when both
 * are nothing it is given its next batch or, once the run is over, none.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "batches.h"
#include "cpu.h"
#include "histogram.h"
#include "resp/scan.h"
#include "stream.h"

#define READ_BYTES ((size_t)256 << 10)
#define EVENTS 512
#define PIDS_MAX 8
#define PATIENCE_NS (20 * NS_PER_S) /* without any reply: something hangs */
#define LOST_MAX 1000
#define CHURN_SOURCES 16 /* addresses on 127/8, so that ports are not used up */

struct conn {
    struct stream stream;
    bool wants_write;
    unsigned kind; /* with -C: which request it has sent last */
    unsigned awaited;
    const char *sent, *sent_end;
    uint64_t sent_ns;
    struct reply_scan scan;
};

struct counts {
    uint64_t replies, errors, lives, lost, bytes;
};

struct options {
    struct sockaddr_in to;
    unsigned conns, pipeline;
    double seconds, warm_up;
    uint64_t count; /* replies after which the run is over; 0: time decides */
    bool is_resp3, is_tls, is_churn;
    long pids[PIDS_MAX];
    unsigned n_pids;
    struct recipe recipe;
};

static struct options options = {
    .conns = 1, .pipeline = 1, .seconds = 1, .warm_up = 0.2, .recipe = {.keys = 1000, .value_bytes = 16, .seed = 1}};
static struct batches batches;
static struct conn *conns;
static struct counts now, before_window; /* since the start */
static struct histogram took;            /* in the window */
static char first_error[128];
static char read_buffer[READ_BYTES];
static int poller;
static bool is_measuring, is_over;
static unsigned n_busy; /* connections with replies to come */
static uint64_t last_reply_ns;

static void conn_start(struct conn *conn);

/* ---- connections ---- */

static void conn_watch(struct conn *conn, int how, bool wants_write)
{
    struct epoll_event event = {.events = EPOLLIN | (wants_write ? EPOLLOUT : 0u), .data.ptr = conn};
    conn->wants_write = wants_write;
    if (epoll_ctl(poller, how, conn->stream.fd, &event) < 0)
        err(1, "epoll_ctl");
}

/* So that a life's port is not one that has only just been used. */
static void bind_elsewhere(int fd)
{
    static unsigned turn;
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK + turn++ % CHURN_SOURCES)};
    int on = 1;
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&from, sizeof from) < 0)
        err(1, "bind");
}

/* Speak RESP3 from here on. */
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
    if (options.is_churn)
        bind_elsewhere(fd);
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
    conn_open(conn);
    conn_start(conn);
}

static void conn_lose(struct conn *conn)
{
    if (++now.lost > LOST_MAX)
        errx(1, "connections are being closed: %s", first_error[0] ? first_error : strerror(errno));
    if (conn->awaited > 0)
        n_busy--;
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
            break; /* full; or broken, and then there is an event to read */
        conn->sent += n;
    }
    bool wants_write = conn->sent < conn->sent_end;
    if (wants_write != conn->wants_write)
        conn_watch(conn, EPOLL_CTL_MOD, wants_write);
}

/* Its next batch; in a life, its next request. */
static void conn_send(struct conn *conn, uint64_t now_ns)
{
    size_t len;
    conn->sent = batches_next(&batches, &len);
    conn->sent_end = conn->sent + len;
    conn->awaited = options.pipeline;
    if (!options.is_churn || conn->kind == 0)
        conn->sent_ns = now_ns;
    n_busy++;
    conn_write(conn);
}

/* With -C lives begin in turn, so each goes through the batches, one for each kind, from the first. */
static void conn_send_kind(struct conn *conn, uint64_t now_ns)
{
    batches.next = conn->kind;
    conn_send(conn, now_ns);
}

static void conn_start(struct conn *conn)
{
    if (is_over)
        return;
    if (options.is_churn)
        conn_send_kind(conn, clock_ns());
    else
        conn_send(conn, clock_ns());
}

/* All replies of the batch are there. */
static void conn_done(struct conn *conn, uint64_t now_ns)
{
    n_busy--;
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

/* How many replies end in these bytes. */
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

static void conn_read(struct conn *conn)
{
    ssize_t n = stream_recv(&conn->stream, read_buffer, sizeof read_buffer);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    uint64_t now_ns = clock_ns();
    if (n <= 0) {
        /* QUIT may be answered by closing. */
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
    if (replies == 0)
        return;
    last_reply_ns = now_ns;
    if (is_measuring && !options.is_churn)
        histogram_add(&took, now_ns - conn->sent_ns, replies);
    if (conn->awaited == 0)
        conn_done(conn, now_ns);
}

static void turn(int timeout_ms)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(poller, events, EVENTS, timeout_ms);
    for (int i = 0; i < n; i++) {
        struct conn *conn = events[i].data.ptr;
        if (events[i].events & EPOLLOUT)
            conn_write(conn);
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

static void go_until(uint64_t until_ns)
{
    /* A turn's clock is enough: the window is measured, not assumed. */
    while (last_reply_ns < until_ns && (options.count == 0 || now.replies < options.count)) {
        uint64_t now_ns = clock_ns();
        if (now_ns >= until_ns)
            return;
        if (now_ns > last_reply_ns + PATIENCE_NS)
            errx(1, "no reply for %" PRIu64 " s", (uint64_t)(PATIENCE_NS / NS_PER_S));
        turn(100);
    }
}

/* Nobody is left with half a batch: what comes next finds the servers at rest. */
static void finish(void)
{
    is_over = true;
    uint64_t give_up_ns = clock_ns() + PATIENCE_NS;
    while (n_busy > 0 && clock_ns() < give_up_ns)
        turn(100);
}

static void report(const struct moment *from, const struct moment *to)
{
    double seconds = (double)(to->ns - from->ns) / (double)NS_PER_S;
    uint64_t ops = options.is_churn ? now.lives - before_window.lives : now.replies - before_window.replies;
    printf("{\"seconds\": %.6f, \"ops\": %" PRIu64 ", \"errors\": %" PRIu64 ", \"lost\": %" PRIu64
           ", \"bytes\": %" PRIu64 ", ",
           seconds, ops, now.errors - before_window.errors, now.lost - before_window.lost,
           now.bytes - before_window.bytes);
    printf("\"p50_us\": %.2f, \"p99_us\": %.2f, \"own_cpu_ns\": %" PRIu64 ", ",
           (double)histogram_quantile(&took, 0.5) / 1e3, (double)histogram_quantile(&took, 0.99) / 1e3,
           to->own.ran_ns - from->own.ran_ns);
    printf("\"cpu_ns\": [");
    for (unsigned i = 0; i < options.n_pids; i++)
        printf("%s%" PRIu64, i ? ", " : "", to->cpu[i].ran_ns - from->cpu[i].ran_ns);
    printf("], \"waited_ns\": [");
    for (unsigned i = 0; i < options.n_pids; i++)
        printf("%s%" PRIu64, i ? ", " : "", to->cpu[i].waited_ns - from->cpu[i].waited_ns);
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
    for (unsigned i = 0; i < options.conns; i++)
        conn_start(&conns[i]);
    go_until(start_ns + (uint64_t)(options.warm_up * (double)NS_PER_S));
    before_window = now;
    is_measuring = true;
    struct moment from = moment_now();
    go_until(options.count ? UINT64_MAX : from.ns + (uint64_t)(options.seconds * (double)NS_PER_S));
    struct moment to = moment_now();
    is_measuring = false;
    report(&from, &to);
    finish();
    printf("], \"replies_in_all\": %" PRIu64 ", \"bytes_in_all\": %" PRIu64 ", \"first_error\": \"%s\"}\n", now.replies,
           now.bytes, first_error);
}

/* ---- options ---- */

static void usage(void)
{
    fprintf(
        stderr,
        "usage: drive [-c CONNECTIONS] [-P PIPELINE] [-s SECONDS] [-w WARM_UP_SECONDS] [-n REPLIES] [-k KEYS]\n"
        "             [-v VALUE_BYTES] [-S SEED] [-3] [-T] [-C] [-p PID]... IP:PORT WORD... [+ WORD...]\n"
        "  \"{k}\" in a word is a random key's number, a word \"{v}\" the value; -3 speaks RESP3, -T TLS; -C: connect, ask\n"
        "  each request once, close, and again; -p: also measure that process\n");
    exit(2);
}

static struct sockaddr_in address_of(const char *text)
{
    char host[64];
    unsigned port;
    struct sockaddr_in address = {.sin_family = AF_INET};
    if (sscanf(text, "%63[^:]:%u", host, &port) != 2 || inet_pton(AF_INET, host, &address.sin_addr) != 1)
        errx(2, "%s is not IP:PORT", text);
    address.sin_port = htons((uint16_t)port);
    return address;
}

static void read_option(int letter)
{
    struct recipe *recipe = &options.recipe;
    switch (letter) {
    case 'c':
        options.conns = (unsigned)strtoul(optarg, NULL, 10);
        break;
    case 'P':
        options.pipeline = (unsigned)strtoul(optarg, NULL, 10);
        break;
    case 's':
        options.seconds = strtod(optarg, NULL);
        break;
    case 'w':
        options.warm_up = strtod(optarg, NULL);
        break;
    case 'n':
        options.count = strtoull(optarg, NULL, 10);
        break;
    case 'k':
        recipe->keys = (uint32_t)strtoul(optarg, NULL, 10);
        break;
    case 'v':
        recipe->value_bytes = strtoul(optarg, NULL, 10);
        break;
    case 'S':
        recipe->seed = strtoull(optarg, NULL, 10);
        break;
    case '3':
        options.is_resp3 = true;
        break;
    case 'T':
        streams_use_tls();
        options.is_tls = true;
        break;
    case 'C':
        options.is_churn = true;
        break;
    case 'p':
        if (options.n_pids == PIDS_MAX)
            errx(2, "at most %d processes", PIDS_MAX);
        options.pids[options.n_pids++] = strtol(optarg, NULL, 10);
        break;
    default:
        usage();
    }
}

int main(int argc, char **argv)
{
    int letter;
    while ((letter = getopt(argc, argv, "+c:P:s:w:n:k:v:S:3TCp:")) != -1)
        read_option(letter);
    if (argc - optind < 2 || options.conns == 0 || options.pipeline == 0)
        usage();
    options.to = address_of(argv[optind]);
    options.recipe.words = argv + optind + 1;
    options.recipe.n_words = argc - optind - 1;
    if (options.is_churn && options.is_tls)
        errx(2, "-C and -T cannot be combined");
    if (options.is_churn)
        options.pipeline = 1;
    if (options.count > 0)
        options.warm_up = 0;
    options.recipe.per_batch = options.pipeline;
    batches_init(&batches, &options.recipe);
    run();
    return 0;
}
