#include "upstream/login/auth_probe.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "upstream/control_reply.h"
#include "upstream/lane/greeting.h"

#define EVERY_MS 1000
#define PATIENCE 10 /* chosen: seconds without an answer; CLIENT PAUSE may delay the answer */

struct auth_probe {
    struct link link;
    uv_timer_t timer;
    struct loop *loop;
    struct node *node;
    struct auth_probe_answer answer;
    unsigned waited;
    bool is_open; /* the link is in use */
    bool is_closing;
};

/*
 * Harmless and cheap, refused with NOAUTH like any command, and unlike PING not shown by MONITOR.
 */
static const char question[] = "*2\r\n$7\r\nSLOWLOG\r\n$3\r\nLEN\r\n";

static struct auth_probe *auth_probe_of(struct link *link)
{
    return container_of(link, struct auth_probe, link);
}

static void auth_probe_give_up(struct auth_probe *probe)
{
    node_doubt(probe->node);
    link_close(&probe->link);
}

static void auth_probe_on_connected(struct link *link, int status)
{
    if (status != 0)
        auth_probe_give_up(auth_probe_of(link));
    else
        link_write(link, question, sizeof question - 1);
}

static void auth_probe_on_data(struct link *link, const char *data, size_t n)
{
    struct auth_probe *probe = auth_probe_of(link);
    enum auth_probe_verdict verdict = auth_probe_answer_take(&probe->answer, data, n);
    if (verdict == AUTH_PROBE_MORE)
        return;
    if (verdict == AUTH_PROBE_UNKNOWN || greeting_turns_away(&probe->answer.glimpse)) {
        auth_probe_give_up(probe);
        return;
    }
    node_note_auth(probe->node, verdict == AUTH_PROBE_NEEDS_AUTH);
    link_close(link);
}

static void auth_probe_on_end(struct link *link, int status)
{
    (void)status;
    auth_probe_give_up(auth_probe_of(link));
}

static void auth_probe_on_timer_closed(uv_handle_t *handle)
{
    struct auth_probe *probe = handle->data;
    node_put(probe->node);
    free(probe);
}

static void auth_probe_on_closed(struct link *link)
{
    struct auth_probe *probe = auth_probe_of(link);
    probe->is_open = false;
    if (probe->is_closing)
        uv_close((uv_handle_t *)&probe->timer, auth_probe_on_timer_closed);
}

static const struct link_ops link_ops = {
    .on_connected = auth_probe_on_connected,
    .on_data = auth_probe_on_data,
    .on_end = auth_probe_on_end,
    .on_closed = auth_probe_on_closed,
};

static bool must_ask(struct node *node)
{
    if (node_is_barred(node))
        return false;
    bool is_doubted = atomic_exchange_explicit(&node->is_doubted, false, memory_order_relaxed);
    return is_doubted || (node_auth_generation(node) & AUTH_GENERATION_NEEDS_AUTH) == 0;
}

static void auth_probe_on_timer(uv_timer_t *timer)
{
    struct auth_probe *probe = timer->data;
    if (probe->is_open) {
        if (++probe->waited > PATIENCE)
            auth_probe_give_up(probe);
        return;
    }
    if (!must_ask(probe->node))
        return;
    probe->waited = 0;
    memset(&probe->answer, 0, sizeof probe->answer);
    probe->is_open = node_connect(probe->node, &probe->link, probe->loop, &link_ops) == 0;
}

struct auth_probe *auth_probe_open(struct loop *loop, struct node *node)
{
    struct auth_probe *probe = mem_zalloc(1, sizeof *probe);
    probe->loop = loop;
    probe->node = node_get(node);
    uv_timer_init(&loop->uv, &probe->timer);
    probe->timer.data = probe;
    uv_timer_start(&probe->timer, auth_probe_on_timer, EVERY_MS, EVERY_MS);
    return probe;
}

void auth_probe_close(struct auth_probe *probe)
{
    if (probe == NULL)
        return;
    probe->is_closing = true;
    uv_timer_stop(&probe->timer);
    if (probe->is_open)
        link_close(&probe->link);
    else
        uv_close((uv_handle_t *)&probe->timer, auth_probe_on_timer_closed);
}
