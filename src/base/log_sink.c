/*
 * The ring holds `used` bytes from `head` on: whole lines. While is_overflowing is set nothing is
 * added. The report of lost lines therefore belongs behind all lines of the ring, and before all
 * lines added later.
 */
#include "base/log_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/process.h"

#define BATCH_BYTES 4096 /* the largest atomic write to a pipe */
#define FILE_MODE 0640

_Static_assert(BATCH_BYTES >= LOG_LINE_MAX, "a batch holds a line at least");

struct log_sink {
    char *path; /* NULL: `fd` came from the caller of log_sink_new */
    int fd;
    /* the file ends in the middle of a line; only the writing thread uses this field and fd */
    bool is_mid_line;
    bool has_complained; /* stderr has the reason why writes fail; cleared by a successful write */
    pthread_t thread;

    pthread_mutex_t lock; /* protects the fields below */
    pthread_cond_t filled;
    pthread_cond_t settled; /* signalled when everything is written, or the thread has ended */
    size_t head, used;
    uint64_t untold; /* lost lines that no line of the log has reported yet */
    uint64_t lost;   /* lines lost since the start */
    bool is_overflowing;
    bool is_writing;
    bool must_reopen, must_end, has_ended;
    char ring[LOG_SINK_BYTES];
};

/* ---- the ring ---- */

static void ring_put(struct log_sink *sink, const char *bytes, size_t len)
{
    size_t at = (sink->head + sink->used) % LOG_SINK_BYTES;
    size_t first = len < LOG_SINK_BYTES - at ? len : LOG_SINK_BYTES - at;
    memcpy(sink->ring + at, bytes, first);
    memcpy(sink->ring, bytes + first, len - first);
    sink->used += len;
}

/* Takes as many whole lines as a batch holds. Returns the number of bytes. */
static size_t ring_take(struct log_sink *sink, char batch[BATCH_BYTES])
{
    size_t len = sink->used < BATCH_BYTES ? sink->used : BATCH_BYTES;
    size_t first = len < LOG_SINK_BYTES - sink->head ? len : LOG_SINK_BYTES - sink->head;
    memcpy(batch, sink->ring + sink->head, first);
    memcpy(batch + first, sink->ring, len - first);
    while (len > 0 && batch[len - 1] != '\n')
        len--;
    sink->head = (sink->head + len) % LOG_SINK_BYTES;
    sink->used -= len;
    return len;
}

/* ---- writing ---- */

/* Returns how many bytes were written before an error. */
static size_t write_all(int fd, const char *bytes, size_t len)
{
    size_t done = 0;
    while (done < len) {
        ssize_t n = write(fd, bytes + done, len - done);
        if (n >= 0) {
            done += (size_t)n;
        } else if (errno == EAGAIN) {
            struct pollfd room = {.fd = fd, .events = POLLOUT};
            (void)poll(&room, 1, -1);
        } else if (errno != EINTR) {
            break;
        }
    }
    return done;
}

/*
 * Reports a failed write on stderr, once until a write succeeds again. If stderr is a full pipe,
 * the report waits for the next failure. Lines for the file therefore never wait for the pipe's
 * reader. The report uses no stdio, because exit() waits for a stdio stream that is stuck.
 */
static void log_sink_complain(struct log_sink *sink, int error)
{
    char text[PATH_MAX + 128], line[LOG_LINE_MAX];
    struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (sink->path == NULL || sink->has_complained || poll(&room, 1, 0) != 1)
        return;
    int len =
        snprintf(text, sizeof text, "cannot write the log to %s: %s", sink->path, strerror(error));
    struct log_entry entry = {.level = LOG_ERROR, .text = slice_of(text, (size_t)len)};
    clock_gettime(CLOCK_REALTIME, &entry.at);
    (void)write_all(STDERR_FILENO, line, log_form(line, log_current_format(), &entry));
    sink->has_complained = true;
}

/* Writes the lines. Returns how many of the lines are lost. */
static uint64_t log_sink_write_lines(struct log_sink *sink, const char *lines, size_t len)
{
    uint64_t lost = 0;
    if (sink->is_mid_line && write_all(sink->fd, "\n", 1) == 1)
        sink->is_mid_line = false;
    size_t done = sink->is_mid_line ? 0 : write_all(sink->fd, lines, len);
    for (size_t i = done; i < len; i++)
        lost += lines[i] == '\n';
    if (done > 0)
        sink->is_mid_line = lines[done - 1] != '\n';
    if (done < len)
        log_sink_complain(sink, errno);
    else
        sink->has_complained = false;
    return lost;
}

/* Writes the number of lost lines. False if the report cannot be written either. */
static bool log_sink_tell(struct log_sink *sink, uint64_t lost)
{
    char text[96];
    char line[LOG_LINE_MAX];
    struct log_entry entry = {.level = LOG_WARN, .site = LOG_SITE_NONE};
    clock_gettime(CLOCK_REALTIME, &entry.at);
    int len = snprintf(text, sizeof text, "%" PRIu64 " log line%s %s lost here", lost,
                       lost == 1 ? "" : "s", lost == 1 ? "is" : "are");
    entry.text = slice_of(text, (size_t)len);
    return log_sink_write_lines(sink, line, log_form(line, log_current_format(), &entry)) == 0;
}

/* Writes the report of lost lines. Called under the lock, which is released while writing. */
static void tell_untold(struct log_sink *sink)
{
    uint64_t lost = sink->untold;
    if (lost == 0)
        return;
    pthread_mutex_unlock(&sink->lock);
    bool is_told = log_sink_tell(sink, lost);
    pthread_mutex_lock(&sink->lock);
    sink->untold -= is_told ? lost : 0;
}

static void write_batch(struct log_sink *sink)
{
    char batch[BATCH_BYTES];
    size_t len = ring_take(sink, batch);
    if (!sink->is_overflowing)
        tell_untold(sink);
    pthread_mutex_unlock(&sink->lock);
    uint64_t lost = log_sink_write_lines(sink, batch, len);
    pthread_mutex_lock(&sink->lock);
    sink->lost += lost;
    sink->untold += lost;
    if (sink->is_overflowing && sink->used == 0) {
        /* the report precedes later lines, because this thread writes the report and the lines */
        sink->is_overflowing = false;
        tell_untold(sink);
    }
}

static int log_sink_open_file(const char *path)
{
    return open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, FILE_MODE);
}

static void reopen(struct log_sink *sink)
{
    int fd = log_sink_open_file(sink->path);
    if (fd < 0) {
        log_error("cannot reopen the log file %s: %s: weir keeps writing to the old one",
                  sink->path, strerror(errno));
        return;
    }
    close(sink->fd);
    sink->fd = fd;
    sink->is_mid_line = sink->has_complained = false;
    log_info("log file reopened");
}

/* ---- the thread ---- */

static void work(struct log_sink *sink)
{
    if (sink->must_reopen) {
        sink->must_reopen = false;
        pthread_mutex_unlock(&sink->lock);
        reopen(sink);
        pthread_mutex_lock(&sink->lock);
    } else {
        write_batch(sink);
    }
}

static void *log_sink_run(void *arg)
{
    struct log_sink *sink = arg;
    pthread_mutex_lock(&sink->lock);
    for (;;) {
        while (sink->used == 0 && !sink->must_reopen && !sink->must_end)
            pthread_cond_wait(&sink->filled, &sink->lock);
        if (sink->used == 0 && !sink->must_reopen)
            break;
        sink->is_writing = true;
        work(sink);
        sink->is_writing = false;
        if (sink->used == 0)
            pthread_cond_broadcast(&sink->settled);
    }
    sink->has_ended = true;
    pthread_cond_broadcast(&sink->settled);
    pthread_mutex_unlock(&sink->lock);
    return NULL;
}

static int log_sink_start(struct log_sink *sink)
{
    sigset_t before;
    signals_block(&before);
    int error = pthread_create(&sink->thread, NULL, log_sink_run, sink);
    signals_restore(&before);
    return error;
}

static void log_sink_let_go(struct log_sink *sink)
{
    if (sink->path != NULL)
        close(sink->fd);
    pthread_cond_destroy(&sink->filled);
    pthread_cond_destroy(&sink->settled);
    pthread_mutex_destroy(&sink->lock);
    free(sink->path);
    free(sink);
}

struct log_sink *log_sink_new(const char *path, int fd)
{
    int own = path != NULL ? log_sink_open_file(path) : fd;
    if (own < 0)
        return NULL;
    struct log_sink *sink = mem_zalloc(1, sizeof *sink);
    sink->path = path != NULL ? mem_strndup(path, strlen(path)) : NULL;
    sink->fd = own;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&sink->lock, NULL);
    pthread_cond_init(&sink->filled, NULL);
    pthread_cond_init(&sink->settled, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int error = log_sink_start(sink);
    if (error == 0)
        return sink;
    log_sink_let_go(sink);
    errno = error;
    return NULL;
}

/* ---- for other threads ---- */

void log_sink_add(struct log_sink *sink, const char *line, size_t len)
{
    pthread_mutex_lock(&sink->lock);
    sink->is_overflowing |= len > LOG_SINK_BYTES - sink->used;
    if (sink->is_overflowing) {
        sink->untold++;
        sink->lost++;
    } else {
        ring_put(sink, line, len);
        pthread_cond_signal(&sink->filled);
    }
    pthread_mutex_unlock(&sink->lock);
}

void log_sink_reopen(struct log_sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    sink->must_reopen = sink->path != NULL;
    pthread_cond_signal(&sink->filled);
    pthread_mutex_unlock(&sink->lock);
}

static bool log_sink_is_settled(const struct log_sink *sink)
{
    return sink->used == 0 && !sink->is_writing && !sink->must_reopen &&
           (!sink->must_end || sink->has_ended);
}

/*
 * Called under the lock. True if everything is written and, after log_sink_end, the thread has
 * ended.
 */
static bool wait_until_settled(struct log_sink *sink, uint64_t most_ns)
{
    uint64_t end_ns = clock_ns() + most_ns;
    const struct timespec end = {(time_t)(end_ns / NS_PER_S), (long)(end_ns % NS_PER_S)};
    int error = 0;
    while (!log_sink_is_settled(sink) && error == 0)
        error = pthread_cond_timedwait(&sink->settled, &sink->lock, &end);
    return log_sink_is_settled(sink);
}

bool log_sink_flush(struct log_sink *sink, uint64_t most_ns)
{
    pthread_mutex_lock(&sink->lock);
    bool done = wait_until_settled(sink, most_ns);
    pthread_mutex_unlock(&sink->lock);
    return done;
}

void log_sink_end(struct log_sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    sink->must_end = true;
    pthread_cond_signal(&sink->filled);
    pthread_mutex_unlock(&sink->lock);
}

void log_sink_free(struct log_sink *sink, uint64_t most_ns)
{
    log_sink_end(sink);
    pthread_mutex_lock(&sink->lock);
    bool done = wait_until_settled(sink, most_ns);
    pthread_mutex_unlock(&sink->lock);
    if (!done)
        return;
    pthread_join(sink->thread, NULL);
    log_sink_let_go(sink);
}

uint64_t log_sink_lost(struct log_sink *sink)
{
    pthread_mutex_lock(&sink->lock);
    uint64_t lost = sink->lost;
    pthread_mutex_unlock(&sink->lock);
    return lost;
}
