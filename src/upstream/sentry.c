#include "upstream/sentry.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "upstream/greeting.h"
#include "upstream/sentry_answer.h"

#define EVERY_MS 1000
#define PATIENCE 10 /* rounds without an answer; CLIENT PAUSE may hold it back */

struct sentry {
    struct link link;
    uv_timer_t timer;
    struct loop *loop;
    struct upstream *upstream;
    struct sentry_answer answer;
    unsigned waited;
    bool is_open; /* the link is in use */
    bool is_closing;
};

/* Harmless and cheap, refused with NOAUTH like anything else; and MONITOR does not show it, as it would PING. */
static const char question[] = "*2\r\n$7\r\nSLOWLOG\r\n$3\r\nLEN\r\n";

static struct sentry *sentry_of(struct link *link)
{
    return container_of(link, struct sentry, link);
}

static void give_up(struct sentry *sentry)
{
    atomic_store_explicit(&sentry->upstream->is_doubted, true, memory_order_relaxed);
    link_close(&sentry->link);
}

static void on_connected(struct link *link, int status)
{
    if (status != 0)
        give_up(sentry_of(link));
    else
        link_write(link, question, sizeof question - 1);
}

static void on_data(struct link *link, const char *data, size_t n)
{
    struct sentry *sentry = sentry_of(link);
    enum sentry_verdict verdict = sentry_answer_take(&sentry->answer, data, n);
    if (verdict == SENTRY_MORE)
        return;
    if (verdict == SENTRY_UNKNOWN || greeting_turns_away(&sentry->answer.glimpse)) {
        give_up(sentry);
        return;
    }
    upstream_note_auth(sentry->upstream, verdict == SENTRY_NEEDS_AUTH);
    link_close(link);
}

static void on_end(struct link *link, int status)
{
    (void)status;
    give_up(sentry_of(link));
}

static void on_timer_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_closed(struct link *link)
{
    struct sentry *sentry = sentry_of(link);
    sentry->is_open = false;
    if (sentry->is_closing)
        uv_close((uv_handle_t *)&sentry->timer, on_timer_closed);
}

static const struct link_ops link_ops = {
    .on_connected = on_connected,
    .on_data = on_data,
    .on_end = on_end,
    .on_closed = on_closed,
};

static bool must_ask(struct upstream *upstream)
{
    if (atomic_load_explicit(&upstream->is_barred, memory_order_relaxed))
        return false;
    bool is_doubted = atomic_exchange_explicit(&upstream->is_doubted, false, memory_order_relaxed);
    return is_doubted || (upstream_epoch(upstream) & EPOCH_NEEDS_AUTH) == 0;
}

static void on_timer(uv_timer_t *timer)
{
    struct sentry *sentry = timer->data;
    if (sentry->is_open) {
        if (++sentry->waited > PATIENCE)
            give_up(sentry);
        return;
    }
    if (!must_ask(sentry->upstream))
        return;
    sentry->waited = 0;
    memset(&sentry->answer, 0, sizeof sentry->answer);
    sentry->is_open = upstream_connect(sentry->upstream, &sentry->link, sentry->loop, &link_ops) == 0;
}

struct sentry *sentry_open(struct loop *loop, struct upstream *upstream)
{
    struct sentry *sentry = mem_zalloc(1, sizeof *sentry);
    sentry->loop = loop;
    sentry->upstream = upstream;
    uv_timer_init(&loop->uv, &sentry->timer);
    sentry->timer.data = sentry;
    uv_timer_start(&sentry->timer, on_timer, EVERY_MS, EVERY_MS);
    return sentry;
}

void sentry_close(struct sentry *sentry)
{
    if (sentry == NULL)
        return;
    sentry->is_closing = true;
    uv_timer_stop(&sentry->timer);
    if (sentry->is_open)
        link_close(&sentry->link);
    else
        uv_close((uv_handle_t *)&sentry->timer, on_timer_closed);
}
