#include "run/topology/cost_poll.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "limit/command/command_costs.h"
#include "run/topology/controls_state.h"
#include "upstream/control_reply.h"
#include "upstream/lane/own_words.h"

#define EVERY_NS NS_PER_S
#define DENIED 10 /* polls between two retries: each refusal may be a line in Redis' ACL LOG */

/* The node in a row of the topology. */
struct costed {
    struct node *node; /* one reference; NULL: none */
    struct command_counts counts;
    uint64_t cpu_ns; /* CPU time by the node's last answer; 0: no answer */
};

struct cost_poll {
    uv_timer_t timer;
    const struct controls *controls;
    struct command_costs *costs; /* NULL: no questions are sent */
    struct costed *rows;         /* heap */
    size_t n_rows;
    size_t n_waiting; /* answers still missing, of this poll or of an earlier poll */
    unsigned n_polls;
};

/* ---- the rows of the topology ---- */

static void set_node(struct costed *row, struct node *node)
{
    if (row->node == node)
        return;
    command_counts_fini(&row->counts);
    node_put(row->node);
    *row = (struct costed){.node = node != NULL ? node_get(node) : NULL};
}

/* Returns the finder of this row, and puts the finder's node into the row. NULL: none. */
static struct finder *cost_poll_finder_at(struct cost_poll *poll, size_t i)
{
    const struct member *member = poll->controls->rows[i];
    struct finder *finder = member != NULL ? member->finder : NULL;
    for (; poll->n_rows <= i; poll->n_rows++) {
        poll->rows = mem_realloc(poll->rows, poll->n_rows + 1, sizeof *poll->rows);
        poll->rows[poll->n_rows] = (struct costed){0};
    }
    set_node(&poll->rows[i], finder != NULL ? finder_node(finder) : NULL);
    return finder;
}

/* Returns the row of the node, and its index. NULL: the node has no row any more. */
static struct costed *cost_poll_row_of(const struct cost_poll *poll, const struct node *node,
                                       size_t *i)
{
    for (*i = 0; *i < poll->n_rows; ++*i)
        if (poll->rows[*i].node == node)
            return &poll->rows[*i];
    return NULL;
}

/* ---- answers ---- */

/* Publishes the longest round trip of all rows: all nodes share one struct contention. */
static void tell_trips(const struct cost_poll *poll)
{
    uint64_t most_ns = 0;
    for (size_t i = 0; i < poll->n_rows; i++) {
        uint64_t own_ns = poll->rows[i].node != NULL ? poll->rows[i].node->trip_ns : 0;
        most_ns = own_ns > most_ns ? own_ns : most_ns;
    }
    for (size_t i = 0; i < poll->n_rows; i++)
        if (poll->rows[i].node != NULL)
            atomic_store_explicit(&poll->rows[i].node->contention->trip_ns, most_ns,
                                  memory_order_relaxed);
}

static void cost_poll_end(struct cost_poll *poll)
{
    poll->n_waiting = 0;
    tell_trips(poll);
    command_costs_end_poll(poll->costs);
}

static void end_if_all(struct cost_poll *poll)
{
    if (poll->n_waiting > 0 && --poll->n_waiting == 0)
        cost_poll_end(poll);
}

static void on_stats(void *arg, struct node *node, struct slice frame, uint64_t asked_ns)
{
    struct cost_poll *poll = arg;
    size_t i;
    struct slice text;
    struct costed *row = cost_poll_row_of(poll, node, &i);
    (void)asked_ns;
    if (poll->costs == NULL)
        return;
    if (row != NULL && control_judge_text(frame, &text) == CONTROL_GOOD)
        command_costs_take(poll->costs, &row->counts, text, row->cpu_ns);
    end_if_all(poll);
}

static bool cost_poll_ask(struct finder *finder, struct slice section,
                          const struct control_question *question)
{
    const struct slice words[] = {SLICE("INFO"), section};
    return finder_ask(finder, words, 2, question);
}

static void cost_poll_note_lack(struct node *node, enum control_verdict verdict)
{
    if (verdict == CONTROL_DENIED)
        node_lacks(node, LACK_INFO);
    else if (verdict == CONTROL_GOOD)
        node_lacks_no_more(node, LACK_INFO);
}

static void on_cpu(void *arg, struct node *node, struct slice frame, uint64_t asked_ns)
{
    struct cost_poll *poll = arg;
    const struct control_question question = {on_stats, poll, "INFO commandstats"};
    size_t i;
    struct slice text;
    struct costed *row = cost_poll_row_of(poll, node, &i);
    (void)asked_ns;
    if (poll->costs == NULL)
        return;
    enum control_verdict verdict = control_judge_text(frame, &text);
    if (row != NULL && verdict == CONTROL_GOOD)
        row->cpu_ns = command_costs_read_cpu(text);
    cost_poll_note_lack(node, verdict);
    bool is_row = i < poll->controls->topology->n_rows;
    struct finder *finder = verdict == CONTROL_GOOD && is_row ? cost_poll_finder_at(poll, i) : NULL;
    if (finder == NULL || finder_node(finder) != node ||
        !cost_poll_ask(finder, SLICE("commandstats"), &question))
        end_if_all(poll);
}

static void on_pong(void *arg, struct node *node, struct slice frame, uint64_t asked_ns)
{
    struct cost_poll *poll = arg;
    (void)node;
    (void)frame;
    (void)asked_ns;
    if (poll->costs != NULL)
        end_if_all(poll);
}

/* ---- polls ---- */

static bool lacks_info(const struct node *node)
{
    return (atomic_load_explicit(&node->lacks, memory_order_relaxed) >> LACK_INFO & 1) != 0;
}

static bool ask_row(struct cost_poll *poll, struct finder *finder)
{
    static const struct slice ping = SLICE(OWN_PING);
    const struct control_question cpu = {on_cpu, poll, "INFO cpu"};
    const struct control_question pong = {on_pong, poll, "PING"};
    if (lacks_info(finder_node(finder)) && poll->n_polls % DENIED != 0)
        return finder_ask(finder, &ping, 1, &pong);
    return cost_poll_ask(finder, SLICE("cpu"), &cpu);
}

static void cost_poll_on_timer(uv_timer_t *timer)
{
    struct cost_poll *poll = timer->data;
    size_t i = 0;
    if (poll->n_waiting > 0)
        cost_poll_end(poll);
    poll->n_polls++;
    for (; i < poll->controls->topology->n_rows; i++) {
        struct finder *finder = cost_poll_finder_at(poll, i);
        if (finder == NULL)
            continue;
        poll->n_waiting += ask_row(poll, finder);
    }
    for (; i < poll->n_rows; i++)
        set_node(&poll->rows[i], NULL);
}

/* ---- the life of the poll ---- */

struct cost_poll *cost_poll_open(const struct controls *controls)
{
    struct cost_poll *poll = mem_zalloc(1, sizeof *poll);
    poll->controls = controls;
    uv_timer_init(&controls->loop->uv, &poll->timer);
    poll->timer.data = poll;
    return poll;
}

static void cost_poll_forget(struct cost_poll *poll)
{
    uv_timer_stop(&poll->timer);
    for (size_t i = 0; i < poll->n_rows; i++)
        set_node(&poll->rows[i], NULL);
    if (poll->costs != NULL)
        command_costs_free(poll->costs);
    poll->costs = NULL;
    poll->n_waiting = 0;
}

void cost_poll_set_table(struct cost_poll *poll, struct command_table *table)
{
    uint64_t every_ms = upstream_time(poll->controls->upstream, EVERY_NS) / NS_PER_MS;
    if (table == NULL) {
        cost_poll_forget(poll);
    } else if (poll->costs != NULL) {
        command_costs_set_table(poll->costs, table);
    } else {
        poll->costs = command_costs_new(table);
        uv_timer_start(&poll->timer, cost_poll_on_timer, 0, every_ms > 0 ? every_ms : 1);
    }
}

static void cost_poll_on_closed(uv_handle_t *handle)
{
    struct cost_poll *poll = handle->data;
    cost_poll_forget(poll);
    free(poll->rows);
    free(poll);
}

void cost_poll_close(struct cost_poll *poll)
{
    uv_close((uv_handle_t *)&poll->timer, cost_poll_on_closed);
}
