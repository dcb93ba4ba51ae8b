#include "quota/script_node.h"

#include <stdlib.h>

#include "base/clock.h"
#include "quota/batch_reply.h"

static struct script_node *node_of(struct script_conn *conn)
{
    return container_of(conn, struct script_node, conn);
}

static struct batch *first_of(const struct list *batches)
{
    return container_of(batches->next, struct batch, in_exchange);
}

/* ---- sending ---- */

/* The alarm is for the oldest question of the time when it was set: later ones are due later. */
void script_node_note_asked(struct script_node *node, struct batch *batch, uint64_t asked_ns)
{
    uint64_t due_ns = script_conn_due_ns(&node->conn, asked_ns);
    if (asked_ns < batch->asked_ns)
        batch->asked_ns = asked_ns;
    if (due_ns != UINT64_MAX && !alarm_is_set(&node->patience))
        alarm_set(node->alarms, &node->patience, due_ns);
}

void script_node_add(struct script_node *node, struct batch *batch)
{
    batch_put_in_order(&node->open, batch);
    script_node_note_asked(node, batch, batch->asked_ns);
    script_node_wake(node);
}

bool script_node_send(struct script_node *node, struct batch *batch)
{
    batch->sent_ns = script_node_now_ns(node);
    batch->is_whole |= script_conn_is_whole(&node->conn);
    if (!batch_send(batch, &node->conn))
        return false;
    list_push(&node->sent, &batch->in_exchange);
    node->sent_us += batch_work_us(batch);
    return true;
}

static struct batch *take_sent(struct script_node *node)
{
    struct batch *batch = first_of(&node->sent);
    list_take(&batch->in_exchange);
    node->sent_us -= batch_work_us(batch);
    return batch;
}

static void on_reply(struct script_conn *conn, struct slice reply)
{
    struct script_node *node = node_of(conn);
    if (list_is_empty(&node->sent))
        return; /* a lane gives no answer that nobody waits for */
    node->ops->on_reply(node, take_sent(node), reply);
    if (!list_is_empty(&node->open) || node->is_leaving)
        script_node_wake(node); /* batches held back may go now */
}

/* ---- patience ---- */

/* When the oldest question of these was asked; UINT64_MAX: there is none. */
static uint64_t oldest_of(const struct list *batches)
{
    uint64_t oldest_ns = UINT64_MAX;
    for (const struct list *at = batches->next; at != batches; at = at->next) {
        uint64_t asked_ns = container_of(at, struct batch, in_exchange)->asked_ns;
        oldest_ns = asked_ns < oldest_ns ? asked_ns : oldest_ns;
    }
    return oldest_ns;
}

/* When the oldest question has waited too long; UINT64_MAX: there is none. */
static uint64_t patience_ns(const struct script_node *node)
{
    uint64_t sent_ns = oldest_of(&node->sent), open_ns = oldest_of(&node->open);
    uint64_t asked_ns = sent_ns < open_ns ? sent_ns : open_ns;
    return asked_ns != UINT64_MAX ? script_conn_due_ns(&node->conn, asked_ns) : UINT64_MAX;
}

static void on_probe(struct alarm *alarm)
{
    struct script_node *node = container_of(alarm, struct script_node, probe);
    uint64_t next_ns = script_conn_probe(&node->conn);
    if (next_ns != UINT64_MAX)
        alarm_set(node->alarms, &node->probe, next_ns);
}

/* A question has waited too long. */
static void open_circuit(struct script_node *node, bool is_owing)
{
    if (!alarm_is_set(&node->probe) && !node->is_leaving)
        alarm_set(node->alarms, &node->probe, script_node_now_ns(node));
    script_conn_give_up(&node->conn, is_owing);
}

static void on_patience(struct alarm *alarm)
{
    struct script_node *node = container_of(alarm, struct script_node, patience);
    uint64_t due_ns = patience_ns(node);
    if (due_ns == UINT64_MAX)
        return;
    if (script_node_now_ns(node) < due_ns) {
        alarm_set(node->alarms, &node->patience, due_ns);
        return;
    }
    open_circuit(node, !list_is_empty(&node->sent));
    node->ops->on_none(node);
}

/* ---- the connection ---- */

static void on_lost(struct script_conn *conn)
{
    struct script_node *node = node_of(conn);
    struct list now;
    if (clock_ns() >= patience_ns(node)) /* the lanes' timer may close a silent connection before the alarm */
        open_circuit(node, false);
    node->sent_us = 0;
    struct slice error = err_text(conn->circuit.is_open ? ERR_UPSTREAM_TIMEOUT : ERR_UPSTREAM_UNAVAILABLE);
    list_take_all(&now, &node->sent);
    while (!list_is_empty(&now)) {
        struct batch *batch = first_of(&now);
        list_take(&batch->in_exchange);
        node->ops->on_lost(node, batch, error);
    }
    if (!list_is_empty(&node->open) || node->is_leaving)
        script_node_wake(node);
}

static void on_change(struct script_conn *conn)
{
    struct script_node *node = node_of(conn);
    node->ops->on_look(node);
}

static void on_unloaded(struct script_conn *conn)
{
    struct script_node *node = node_of(conn);
    node->ops->on_none(node);
}

static const struct script_conn_ops conn_ops = {
    .on_change = on_change,
    .on_reply = on_reply,
    .on_unloaded = on_unloaded,
    .on_lost = on_lost,
};

/* ---- the exchange's ---- */

struct script_node *script_node_new(struct lanes *lanes, struct alarms *alarms, struct login *login,
                                    const struct script_node *like, const struct script_node_ops *ops, void *arg)
{
    struct script_node *node = calloc(1, sizeof *node);
    if (node == NULL || !alarms_reserve(alarms, SCRIPT_NODE_ALARMS)) {
        free(node);
        login_put(login);
        return NULL;
    }
    node->ops = ops;
    node->arg = arg;
    node->alarms = alarms;
    node->patience = (struct alarm){.on_due = on_patience};
    node->probe = (struct alarm){.on_due = on_probe};
    list_init(&node->in_exchange);
    list_init(&node->open);
    list_init(&node->sent);
    script_conn_init(&node->conn, lanes, login, like != NULL ? &like->conn : NULL, &conn_ops);
    return node;
}

static void drop_all(struct list *batches)
{
    while (!list_is_empty(batches)) {
        struct batch *batch = first_of(batches);
        list_take(&batch->in_exchange);
        batch_drop(batch);
    }
}

static void stop_alarms(struct script_node *node)
{
    alarm_stop(node->alarms, &node->patience);
    alarm_stop(node->alarms, &node->probe);
}

void script_node_free(struct script_node *node)
{
    stop_alarms(node);
    alarms_release(node->alarms, SCRIPT_NODE_ALARMS);
    list_take(&node->in_exchange);
    script_conn_fini(&node->conn);
    drop_all(&node->open);
    drop_all(&node->sent);
    free(node);
}

void script_node_leave(struct script_node *node)
{
    node->is_leaving = true;
    alarm_stop(node->alarms, &node->probe);
    if (list_is_empty(&node->sent)) {
        stop_alarms(node);
        script_conn_close(&node->conn);
    }
    script_node_wake(node);
}
