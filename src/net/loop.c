#include "net/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/process.h"
#include "net/link.h"
#include "net/tls.h"

/* freed bytes after which malloc_trim, which walks through the heap, is worth its cost (chosen) */
#define TRIM_BYTES 1048576
#define TRIM_MS 1000

/* ---- the pipe for splice(2) ---- */

#define SPLICE_HOW (SPLICE_F_MOVE | SPLICE_F_NONBLOCK)

void splice_pipe_init(struct splice_pipe *splice_pipe)
{
    if (pipe2(splice_pipe->ends, O_NONBLOCK | O_CLOEXEC) != 0) {
        splice_pipe->ends[0] = splice_pipe->ends[1] = -1;
        return;
    }
    /* if the system refuses the larger pipe, fewer bytes are spliced at a time */
    (void)fcntl(splice_pipe->ends[1], F_SETPIPE_SZ, SPLICE_PIPE_MOST);
}

void splice_pipe_fini(struct splice_pipe *splice_pipe)
{
    if (!splice_pipe_works(splice_pipe))
        return;
    close(splice_pipe->ends[0]);
    close(splice_pipe->ends[1]);
    splice_pipe->ends[0] = splice_pipe->ends[1] = -1;
}

struct spliced splice_pipe_pass(const struct splice_pipe *splice_pipe, int from, int to,
                                size_t most)
{
    struct spliced done = {.taken = splice(from, NULL, splice_pipe->ends[1], NULL,
                                           most < SPLICE_PIPE_MOST ? most : SPLICE_PIPE_MOST,
                                           SPLICE_HOW)};
    if (done.taken <= 0)
        return done;
    ssize_t sent = splice(splice_pipe->ends[0], NULL, to, NULL, (size_t)done.taken, SPLICE_HOW);
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
        done.error = errno;
    done.left = (size_t)(done.taken - (sent > 0 ? sent : 0));
    return done;
}

bool splice_pipe_fetch(struct splice_pipe *splice_pipe, char *at, size_t n)
{
    while (n > 0) {
        ssize_t got = read(splice_pipe->ends[0], at, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            splice_pipe_fini(splice_pipe);
            return false;
        }
        at += got;
        n -= (size_t)got;
    }
    return true;
}

/* ---- the loop ---- */

/*
 * Flushes dirty links. `is_all`: includes patient and woken links. A link that was woken may
 * half-close, and its FIN must go in the same packet as its last reply.
 */
static void flush_rank(struct list *dirty, bool is_all)
{
    struct list now;
    list_take_all(&now, dirty);
    while (!list_is_empty(&now)) {
        struct link *link = container_of(now.next, struct link, dirty);
        list_take(&link->dirty);
        if (is_all || (!link->is_patient && list_is_empty(&link->woken)))
            link_flush(link);
        else
            list_push(dirty, &link->dirty);
    }
}

static bool is_any_woken(const struct loop *loop)
{
    return !list_is_empty(&loop->woken) || !list_is_empty(&loop->again);
}

static void wake_first(struct list *woken)
{
    struct link *link = container_of(woken->next, struct link, woken);
    list_take(&link->woken);
    link->ops->on_wake(link);
}

static void wake_again(struct loop *loop)
{
    struct list end; /* links behind `end` were woken again in this call */
    if (list_is_empty(&loop->again))
        return;
    list_push(&loop->again, &end);
    uint64_t began_ns = clock_ns();
    loop->goes_on = true;
    while (loop->again.next != &end && clock_ns() - began_ns < LOOP_AGAIN_NS)
        wake_first(&loop->again);
    loop->goes_on = false;
    list_take(&end);
}

static void wake_all(struct loop *loop)
{
    struct list now;
    if (!is_any_woken(loop))
        return;
    loop_tick(loop);
    list_take_all(&now, &loop->woken);
    while (!list_is_empty(&now))
        wake_first(&now);
    wake_again(loop);
}

static void close_handles(struct loop *loop)
{
    uv_close((uv_handle_t *)&loop->before_poll, NULL);
    uv_close((uv_handle_t *)&loop->after_poll, NULL);
    uv_close((uv_handle_t *)&loop->not_idle, NULL);
    uv_close((uv_handle_t *)&loop->trim, NULL);
}

void loop_hold(struct loop *loop)
{
    if (loop->n_links++ == 0)
        uv_ref((uv_handle_t *)&loop->before_poll);
}

static void release(struct loop *loop)
{
    if (--loop->n_links > 0)
        return;
    uv_unref((uv_handle_t *)&loop->before_poll);
    if (loop->is_closing)
        close_handles(loop);
}

/*
 * Calls on_closed of closed links. Called when nothing in this iteration refers to closed links any
 * more.
 */
static void bury(struct loop *loop)
{
    while (!list_is_empty(&loop->closed)) {
        struct link *link = container_of(loop->closed.next, struct link, dirty);
        list_take(&link->dirty);
        link_bury(link);
        release(loop);
    }
}

static bool has_output(const struct loop *loop)
{
    return !list_is_empty(&loop->dirty[RANK_LANE]) || !list_is_empty(&loop->dirty[RANK_CLIENT]);
}

static bool has_work(const struct loop *loop)
{
    return is_any_woken(loop) || has_output(loop) || !list_is_empty(&loop->closed);
}

static void flush(struct loop *loop, bool is_all)
{
    if (!has_output(loop))
        return;
    loop->writing_ns = clock_ns();
    for (int rank = 0; rank < RANK_COUNT; rank++)
        flush_rank(&loop->dirty[rank], is_all);
    loop->written_ns = clock_ns();
}

static void loop_settle(struct loop *loop)
{
    bool is_urgent = loop->on_iteration != NULL && loop->on_iteration(loop);
    if (is_urgent && is_any_woken(loop))
        flush(loop, false);
    wake_all(loop);
    flush(loop, true);
    if (loop->on_written != NULL)
        loop->on_written(loop);
    bury(loop);
}

static void end_iteration(struct loop *loop)
{
    if (loop->iteration_ns != 0 && loop->written_ns > loop->iteration_ns)
        histo_add(&loop->iterations, loop->written_ns - loop->iteration_ns, 1);
    loop->iteration_ns = 0;
}

/* Writes output caused by timers and by messages from other threads. */
static void on_after_poll(uv_check_t *check)
{
    struct loop *loop = check->loop->data;
    loop_settle(loop);
}

static void on_not_idle(uv_idle_t *idle)
{
    (void)idle;
}

static void on_trim(uv_timer_t *timer)
{
    struct loop *loop = timer->loop->data;
    loop->pool.given_back = 0;
    malloc_trim(0);
}

/* Runs one iteration. False if libuv has an event. */
static bool iterate(struct loop *loop)
{
    if (has_work(loop))
        loop_settle(loop);
    end_iteration(loop);
    if (loop->pool.given_back > TRIM_BYTES && !loop->is_closing &&
        !uv_is_active((uv_handle_t *)&loop->trim))
        uv_timer_start(&loop->trim, on_trim, TRIM_MS, 0);
    uv_update_time(&loop->uv);
    int due_ms = uv_backend_timeout(&loop->uv);
    /* is_unsettled must be called in every iteration */
    bool is_libuvs, is_unsettled = loop->is_unsettled != NULL && loop->is_unsettled(loop);
    bool is_busy = is_unsettled || has_work(loop);
    int n = poller_wait(&loop->poller, is_busy ? 0 : due_ms, &is_libuvs);
    if (n > 0 || is_busy)
        loop_settle(loop);
    return !is_libuvs && due_ms != 0 && (n > 0 || is_busy);
}

static void on_before_poll(uv_prepare_t *prepare)
{
    struct loop *loop = prepare->loop->data;
    uv_idle_stop(&loop->not_idle);
    while (iterate(loop))
        ;
    if (!uv_is_closing((uv_handle_t *)&loop->not_idle))
        uv_idle_start(&loop->not_idle, on_not_idle);
}

void loop_init(struct loop *loop)
{
    if (uv_loop_init(&loop->uv) != 0 || poller_init(&loop->poller, uv_backend_fd(&loop->uv)) != 0) {
        log_error("cannot create an event loop: out of file descriptors or memory");
        exit(EXIT_SYSTEM);
    }
    loop->uv.data = loop;
    uv_prepare_init(&loop->uv, &loop->before_poll);
    uv_check_init(&loop->uv, &loop->after_poll);
    uv_idle_init(&loop->uv, &loop->not_idle);
    uv_timer_init(&loop->uv, &loop->trim);
    uv_prepare_start(&loop->before_poll, on_before_poll);
    uv_check_start(&loop->after_poll, on_after_poll);
    /* The handles of the loop itself must not keep libuv's loop running. */
    uv_unref((uv_handle_t *)&loop->before_poll);
    uv_unref((uv_handle_t *)&loop->after_poll);
    uv_unref((uv_handle_t *)&loop->not_idle);
    uv_unref((uv_handle_t *)&loop->trim);
    for (int rank = 0; rank < RANK_COUNT; rank++)
        list_init(&loop->dirty[rank]);
    list_init(&loop->woken);
    list_init(&loop->again);
    list_init(&loop->closed);
    splice_pipe_init(&loop->splice_pipe);
    loop->n_links = 0;
    loop->is_closing = loop->goes_on = false;
    pool_init(&loop->pool);
    loop->tls_scratch = NULL;
    loop->now_ns = clock_ns();
    loop->read_buffer = malloc(READ_BUFFER_BYTES);
    if (loop->read_buffer == NULL) {
        log_error("cannot create an event loop: out of memory");
        exit(EXIT_SYSTEM);
    }
}

struct tls_scratch *loop_tls_scratch(struct loop *loop)
{
    if (loop->tls_scratch == NULL)
        loop->tls_scratch = malloc(sizeof *loop->tls_scratch);
    return loop->tls_scratch;
}

void loop_run(struct loop *loop)
{
    uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void loop_close(struct loop *loop)
{
    loop->is_closing = true;
    if (loop->n_links == 0)
        close_handles(loop);
}

void loop_fini(struct loop *loop)
{
    int left = uv_loop_close(&loop->uv);
    if (left != 0)
        log_error("an event loop was closed with handles open: this is a bug");
    splice_pipe_fini(&loop->splice_pipe);
    poller_fini(&loop->poller);
    pool_fini(&loop->pool);
    free(loop->read_buffer);
    free(loop->tls_scratch);
}
