#include "quota/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "quota/answer.h"
#include "quota/outcome.h"
#include "quota/numbers.h"
#include "quota/unable.h"
#include "upstream/lack.h"

#define SENT_WORK_US (2 * BATCH_WORK_US) /* two: one that Redis works on, and one that waits in its socket meanwhile */
#define AGAIN_NS (50 * NS_PER_MS)        /* what Redis has not run is asked again so often: a promotion takes longer */
#define LOOK_BACK_MAX 16 /* batches that a call is compared with: applications have few kinds of calls */

/* ---- asking ---- */

uint64_t exchange_hash(const struct exchange *exchange, struct slice key)
{
    return hash_bytes(exchange->settings->key, key);
}

/* Does it ask anything about one of the call's keys? */
static bool concerns(const struct exchange *exchange, const struct batch *batch, const struct decision *decision,
                     uint64_t hash)
{
    struct slice key;
    struct argv_walk keys = {decision->key.at, decision->key.at + decision->key.len, decision->n_keys};
    while (argv_next(&keys, &key))
        if (batch_concerns(batch, key, exchange_hash(exchange, key)))
            return true;
    return decision->n_keys == 0 && batch_concerns(batch, decision->key, hash);
}

/*
 * One that it fits in, unless another one behind that has something about the same key, which it must not overtake.
 * Equal calls that give back do not travel together: each is told how windows stand behind it, not behind the last.
 */
static struct batch *find_batch(struct exchange *exchange, const struct exchange_question *question,
                                const struct decision *decision, uint64_t hash)
{
    unsigned left = question->algorithm->joining == QUOTA_ALONE ? 0 : LOOK_BACK_MAX;
    for (struct list *at = exchange->open.prev; at != &exchange->open && left > 0; at = at->prev, left--) {
        struct batch *batch = container_of(at, struct batch, in_exchange);
        bool is_alike = batch->until_ns == 0 && batch_fits(batch, question->algorithm, question->words);
        if (is_alike && decision->ask.mode != QUOTA_CREDIT)
            return batch;
        if (concerns(exchange, batch, decision, hash))
            break;
        if (is_alike)
            return batch;
    }
    struct batch *batch = batch_new(question->algorithm, question->words, question->n_words, question->work_us);
    if (batch == NULL)
        return NULL;
    batch->asked_ns = decision->asked_ns;
    batch->order = exchange->n_batches++;
    list_push(&exchange->open, &batch->in_exchange);
    return batch;
}

/* The alarm is for the oldest question of the time when it was set: later ones are due later. */
static void note_asked(struct exchange *exchange, struct batch *batch, uint64_t asked_ns)
{
    uint64_t due_ns = script_conn_due_ns(&exchange->conn, asked_ns);
    if (asked_ns < batch->asked_ns)
        batch->asked_ns = asked_ns;
    if (due_ns != UINT64_MAX && !alarm_is_set(&exchange->patience))
        alarm_set(exchange->alarms, &exchange->patience, due_ns);
}

bool exchange_ask(struct exchange *exchange, struct decision *decision, const struct exchange_question *question,
                  uint64_t hash)
{
    struct batch *batch = find_batch(exchange, question, decision, hash);
    if (batch == NULL)
        return false;
    uint64_t bits = 0;
    struct slice key;
    struct argv_walk keys = {decision->key.at, decision->key.at + decision->key.len, decision->n_keys};
    while (argv_next(&keys, &key))
        bits |= batch_note_key(batch, exchange_hash(exchange, key));
    if (!batch_add(batch, decision, hash, bits)) {
        if (batch->n == 0) { /* it was made for this one */
            list_take(&batch->in_exchange);
            batch_free(batch);
        }
        return false;
    }
    decision->is_asking = true;
    note_asked(exchange, batch, decision->asked_ns);
    script_conn_wake(&exchange->conn);
    return true;
}

static bool any_concerns(const struct list *batches, struct slice key, uint64_t hash)
{
    for (const struct list *at = batches->next; at != batches; at = at->next)
        if (batch_concerns(container_of(at, struct batch, in_exchange), key, hash))
            return true;
    return false;
}

bool exchange_concerns(const struct exchange *exchange, struct slice key, uint64_t hash)
{
    return any_concerns(&exchange->sent, key, hash) || any_concerns(&exchange->open, key, hash) ||
           any_concerns(&exchange->refused, key, hash);
}

/* ---- answers ---- */

static const struct slice amiss = {"-ERR the upstream has answered amiss",
                                   sizeof "-ERR the upstream has answered amiss" - 1};

struct decision *exchange_take(struct batch_entry *entry)
{
    struct decision *decision = container_of(entry->calls.next, struct decision, in_entry);
    list_take(&decision->in_entry);
    decision->is_asking = false;
    return decision;
}

static void fail_entry(const struct exchange *exchange, struct batch_entry *entry, struct slice error, bool is_down)
{
    while (!list_is_empty(&entry->calls))
        exchange->ops->on_failed(exchange_take(entry), error, is_down);
}

static void fail_batch(const struct exchange *exchange, struct batch *batch, struct slice error, bool is_down)
{
    for (uint32_t i = 0; i < batch->n; i++)
        fail_entry(exchange, &batch->entries[i], error, is_down);
    batch_free(batch);
}

/* Fail an entry with Redis' error text, at most one line of it. */
static void fail_with(const struct exchange *exchange, struct batch_entry *entry, struct slice error)
{
    char line[256] = "-", named[LACK_ERROR_ROOM];
    size_t len = error.len < sizeof line - 1 ? error.len : sizeof line - 1;
    memcpy(line + 1, error.at, len);
    bool is_named = lack_is_in_script(error);
    fail_entry(exchange, entry, is_named ? script_conn_explain(&exchange->conn, error, named) : slice_of(line, 1 + len),
               false);
}

static void answer_entry(struct exchange *exchange, const struct batch *batch, struct batch_entry *entry,
                         struct answer *answer)
{
    const struct decision *first = container_of(entry->calls.next, struct decision, in_entry);
    int64_t numbers[QUOTA_NUMBERS_MAX];
    struct quota_hold holds[QUOTA_PARTS_MAX] = {0};
    struct slice error = slice_of(NULL, 0);
    bool is_read = quota_numbers_read(answer, &first->ask, numbers, holds, &error);
    if (is_read && error.at != NULL)
        fail_with(exchange, entry, error);
    else if (is_read && quota_numbers_are_sane(&first->ask, numbers, entry->n) &&
             quota_holds_are_sane(&first->ask, numbers, holds, entry->n))
        exchange->ops->on_numbers(exchange, batch, entry, numbers, holds);
    else
        fail_entry(exchange, entry, amiss, false);
}

/* How many entries the script must answer. */
static size_t numbers_of(const struct batch *batch)
{
    size_t n = 0;
    for (uint32_t i = 0; i < batch->n; i++) {
        const struct decision *first = container_of(batch->entries[i].calls.next, struct decision, in_entry);
        n += quota_numbers(&first->ask);
    }
    return n;
}

/* The whole answer is checked before any of it is used. */
static void answer_batch(struct exchange *exchange, struct batch *batch, struct slice text)
{
    struct answer answer;
    script_conn_note_decided(&exchange->conn);
    if (!answer_begin(text, numbers_of(batch), &answer)) {
        fail_batch(exchange, batch, amiss, false);
        return;
    }
    for (uint32_t i = 0; i < batch->n; i++)
        answer_entry(exchange, batch, &batch->entries[i], &answer);
    batch_free(batch);
}

static void answer_delete(struct exchange *exchange, struct batch *batch, struct slice text)
{
    struct answer answer = answer_of(text);
    int64_t deleted = 0;
    struct slice error = slice_of(NULL, 0);
    bool is_number = answer_number(&answer, &deleted, &error) && error.at == NULL && answer_is_over(&answer);
    node_lacks_no_more(lanes_node(exchange->conn.base.lanes), LACK_UNLINK);
    while (!list_is_empty(&batch->entries[0].calls)) {
        struct decision *decision = exchange_take(&batch->entries[0]);
        if (is_number && deleted >= 0 && deleted <= (int64_t)decision->n_keys)
            exchange->ops->on_deleted(decision, deleted);
        else
            exchange->ops->on_failed(decision, amiss, false);
    }
    batch_free(batch);
}

static void note_sent(struct exchange *exchange, struct batch *batch)
{
    list_push(&exchange->sent, &batch->in_exchange);
    exchange->sent_us += batch_work_us(batch);
}

static struct batch *take_sent(struct exchange *exchange)
{
    struct batch *batch = container_of(exchange->sent.next, struct batch, in_exchange);
    list_take(&batch->in_exchange);
    exchange->sent_us -= batch_work_us(batch);
    return batch;
}

/* Send a batch, taking ownership. If it cannot be sent all its calls fail. */
static void send_batch(struct exchange *exchange, struct batch *batch)
{
    batch->sent_ns = script_conn_now_ns(&exchange->conn);
    batch->is_whole |= script_conn_is_whole(&exchange->conn);
    if (batch_send(batch, &exchange->conn))
        note_sent(exchange, batch);
    else
        fail_batch(exchange, batch, err_text(ERR_OUT_OF_MEMORY), false);
}

/* As they were begun: questions about one key stay in order. */
static void put_in_order(struct list *batches, struct batch *batch)
{
    struct list *at = batches->prev;
    while (at != batches && container_of(at, struct batch, in_exchange)->order > batch->order)
        at = at->prev;
    list_push(at->next, &batch->in_exchange);
}

/* Nothing has been decided: it is asked again, with the script, and no third time. At another node, if that is its place. */
static void repair(struct exchange *exchange, struct batch *batch)
{
    batch->is_whole = true;
    if (script_conn_is_leaving(&exchange->conn))
        put_in_order(&exchange->open, batch);
    else
        send_batch(exchange, batch);
}

/* ---- what Redis has not run ---- */

static uint64_t failover_wait_ns(const struct batch *batch)
{
    return container_of(batch->entries[0].calls.next, struct decision, in_entry)->failover_wait_ns;
}

/* It waits for failover-wait from the first time on. Without memory for the error, or without a wait, it fails. */
static void hold(struct exchange *exchange, struct batch *batch, struct slice error, bool is_away)
{
    uint64_t now_ns = script_conn_now_ns(&exchange->conn);
    char *refusal = strndup(error.at, error.len);
    if (batch->until_ns == 0)
        batch->until_ns = now_ns + failover_wait_ns(batch);
    if (refusal == NULL || now_ns >= batch->until_ns) {
        free(refusal);
        fail_batch(exchange, batch, error, is_away);
        return;
    }
    free(batch->refusal);
    batch->refusal = refusal;
    batch->is_away = is_away;
    exchange->refuser = exchange->conn.base.lanes;
    put_in_order(&exchange->refused, batch);
    if (!alarm_is_set(&exchange->again))
        alarm_set(exchange->alarms, &exchange->again, now_ns + AGAIN_NS);
}

/* Those that have waited long enough fail; the others are asked again. */
static void ask_refused_again(struct exchange *exchange)
{
    uint64_t now_ns = script_conn_now_ns(&exchange->conn);
    struct list now;
    list_take_all(&now, &exchange->refused);
    while (!list_is_empty(&now)) {
        struct batch *batch = container_of(now.next, struct batch, in_exchange);
        list_take(&batch->in_exchange);
        if (now_ns >= batch->until_ns) {
            fail_batch(exchange, batch, slice_str(batch->refusal), batch->is_away);
            continue;
        }
        put_in_order(&exchange->open, batch);
        batch->asked_ns = now_ns;
        note_asked(exchange, batch, now_ns);
    }
    script_conn_wake(&exchange->conn);
}

static void on_again(struct alarm *alarm)
{
    ask_refused_again(container_of(alarm, struct exchange, again));
}

/* Redis has answered that it is no master. Until failover-wait is over, another may be, though none can be reached. */
static void be_refused(struct exchange *exchange, struct batch *batch, struct slice error)
{
    exchange->moves_until_ns = script_conn_now_ns(&exchange->conn) + failover_wait_ns(batch);
    hold(exchange, batch, error, false);
}

/* Its caller waits in any case, for a window or a permit: so it may wait for a master, too. */
static bool has_waited(const struct batch *batch)
{
    return container_of(batch->entries[0].calls.next, struct decision, in_entry)->has_waited;
}

/* There is no connection for what has not been sent. What waits for a master waits on. */
static void fail_open(struct exchange *exchange)
{
    struct slice error = script_conn_why_none(&exchange->conn);
    bool is_away = script_conn_is_away(&exchange->conn);
    bool is_not_run = !is_away && unable_of(error) == UNABLE_NOT_RUN;
    bool moves = script_conn_now_ns(&exchange->conn) < exchange->moves_until_ns;
    struct list now;
    list_take_all(&now, &exchange->open);
    while (!list_is_empty(&now)) {
        struct batch *batch = container_of(now.next, struct batch, in_exchange);
        list_take(&batch->in_exchange);
        if (moves && batch->until_ns == 0)
            batch->until_ns = exchange->moves_until_ns;
        if (is_not_run)
            be_refused(exchange, batch, error);
        else if (batch->until_ns != 0 || has_waited(batch))
            hold(exchange, batch, error, is_away);
        else
            fail_batch(exchange, batch, error, is_away);
    }
}

static void on_reply(struct script_conn *conn, struct slice reply)
{
    struct exchange *exchange = container_of(conn, struct exchange, conn);
    char named[LACK_ERROR_ROOM];
    if (list_is_empty(&exchange->sent))
        return; /* a lane gives no answer that nobody waits for */
    struct batch *batch = take_sent(exchange);
    bool is_error = reply.len > 1 && reply.at[0] == '-';
    bool may_repair = !batch->is_whole && batch_script(batch) != SCRIPT_COUNT;
    if (is_error && may_repair && script_conn_takes_back(conn, reply))
        repair(exchange, batch);
    else if (is_error && unable_of(reply) == UNABLE_NOT_RUN)
        be_refused(exchange, batch, reply);
    else if (is_error)
        fail_batch(exchange, batch, script_conn_explain(conn, reply, named), false);
    else if (batch_script(batch) == SCRIPT_COUNT)
        answer_delete(exchange, batch, reply);
    else
        answer_batch(exchange, batch, reply);
    if (!list_is_empty(&exchange->open))
        script_conn_wake(conn); /* batches held back may go now */
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
static uint64_t patience_ns(const struct exchange *exchange)
{
    uint64_t sent_ns = oldest_of(&exchange->sent), open_ns = oldest_of(&exchange->open);
    uint64_t asked_ns = sent_ns < open_ns ? sent_ns : open_ns;
    return asked_ns != UINT64_MAX ? script_conn_due_ns(&exchange->conn, asked_ns) : UINT64_MAX;
}

static void on_probe(struct alarm *alarm)
{
    struct exchange *exchange = container_of(alarm, struct exchange, probe);
    uint64_t next_ns = script_conn_probe(&exchange->conn);
    if (next_ns != UINT64_MAX)
        alarm_set(exchange->alarms, &exchange->probe, next_ns);
}

/* A question has waited too long. */
static void open_circuit(struct exchange *exchange, bool is_owing)
{
    if (!alarm_is_set(&exchange->probe))
        alarm_set(exchange->alarms, &exchange->probe, script_conn_now_ns(&exchange->conn));
    script_conn_give_up(&exchange->conn, is_owing);
}

/* ---- the connection ---- */

static void fail_all(const struct exchange *exchange, struct list *batches, struct slice error, bool is_down)
{
    struct list now;
    list_take_all(&now, batches);
    while (!list_is_empty(&now)) {
        struct batch *batch = container_of(now.next, struct batch, in_exchange);
        list_take(&batch->in_exchange);
        fail_batch(exchange, batch, error, is_down);
    }
}

static void on_lost(struct script_conn *conn)
{
    struct exchange *exchange = container_of(conn, struct exchange, conn);
    if (clock_ns() >= patience_ns(exchange)) /* the lanes' timer may close a silent connection before the alarm */
        open_circuit(exchange, false);
    exchange->sent_us = 0;
    fail_all(exchange, &exchange->sent,
             err_text(conn->circuit.is_open ? ERR_UPSTREAM_TIMEOUT : ERR_UPSTREAM_UNAVAILABLE), true);
    if (!list_is_empty(&exchange->open))
        script_conn_wake(conn);
}

/* Has a batch with another script been sent that asks about this key? */
static bool is_asked_about(const struct exchange *exchange, const struct batch *by, struct slice key, uint64_t hash)
{
    enum script script = batch_script(by);
    for (const struct list *at = exchange->sent.next; at != &exchange->sent; at = at->next) {
        const struct batch *batch = container_of(at, struct batch, in_exchange);
        if (batch_script(batch) != script && batch_script(batch) != SCRIPT_COUNT && batch_concerns(batch, key, hash))
            return true;
    }
    return false;
}

/* Has one that was refused asked about this key? */
static bool is_refused_about(const struct exchange *exchange, const struct batch *by, struct slice key, uint64_t hash)
{
    (void)by;
    return any_concerns(&exchange->refused, key, hash);
}

static bool asks_only(const struct exchange *exchange, enum script script)
{
    for (const struct list *at = exchange->sent.next; at != &exchange->sent; at = at->next)
        if (batch_script(container_of(at, struct batch, in_exchange)) != script)
            return false;
    return true;
}

/* Redis has enough to do: the next batch goes when one of those has been answered. */
static bool is_enough(const struct exchange *exchange, const struct batch *batch)
{
    return !list_is_empty(&exchange->sent) && exchange->sent_us + batch_work_us(batch) > SENT_WORK_US;
}

/* True if one of the batch's keys is a key of which that is true. */
static bool has_key(const struct exchange *exchange, const struct batch *batch,
                    bool (*is)(const struct exchange *exchange, const struct batch *batch, struct slice key,
                               uint64_t hash))
{
    struct slice key;
    for (uint32_t i = 0; i < batch->n; i++) {
        const struct batch_entry *entry = &batch->entries[i];
        const struct decision *decision = container_of(entry->calls.next, struct decision, in_entry);
        struct argv_walk keys = {decision->key.at, decision->key.at + decision->key.len, decision->n_keys};
        while (argv_next(&keys, &key))
            if (is(exchange, batch, key, exchange_hash(exchange, key)))
                return true;
        if (decision->n_keys == 0 && is(exchange, batch, decision->key, entry->hash))
            return true;
    }
    return false;
}

/* A sent batch may get NOSCRIPT and be sent again, behind this one: then this would overtake it. */
static bool must_stay(const struct exchange *exchange, const struct batch *batch)
{
    return !asks_only(exchange, batch_script(batch)) && has_key(exchange, batch, is_asked_about); /* hardly ever */
}

/* True if one that it must not overtake has been refused. */
static bool is_behind_refused(const struct exchange *exchange, const struct batch *batch)
{
    return !list_is_empty(&exchange->refused) && has_key(exchange, batch, is_refused_about);
}

static struct slice refusal_of(const struct exchange *exchange)
{
    return slice_str(container_of(exchange->refused.next, struct batch, in_exchange)->refusal);
}

static void send_open(struct exchange *exchange)
{
    while (!list_is_empty(&exchange->open)) {
        struct batch *batch = container_of(exchange->open.next, struct batch, in_exchange);
        if (is_enough(exchange, batch) || must_stay(exchange, batch))
            return;
        list_take(&batch->in_exchange);
        if (is_behind_refused(exchange, batch)) {
            hold(exchange, batch, refusal_of(exchange), false);
            continue;
        }
        for (uint32_t i = 0; i < batch->n; i++)
            batch->entries[i].changes = quota_changes(exchange->settings, batch->entries[i].hash);
        send_batch(exchange, batch);
    }
}

/* Send what was gathered in this turn. Nothing gathered: a probe's connection goes on. */
static void on_change(struct script_conn *conn)
{
    struct exchange *exchange = container_of(conn, struct exchange, conn);
    if (!list_is_empty(&exchange->refused) && exchange->refuser != conn->base.lanes)
        ask_refused_again(exchange);
    switch (script_conn_find(conn)) {
    case SCRIPT_CONN_READY:
        send_open(exchange);
        break;
    case SCRIPT_CONN_NOT_YET:
        break;
    case SCRIPT_CONN_NONE:
        fail_open(exchange);
        break;
    }
}

static void on_unloaded(struct script_conn *conn)
{
    fail_open(container_of(conn, struct exchange, conn));
}

static void on_patience(struct alarm *alarm)
{
    struct exchange *exchange = container_of(alarm, struct exchange, patience);
    uint64_t due_ns = patience_ns(exchange);
    if (due_ns == UINT64_MAX)
        return;
    if (script_conn_now_ns(&exchange->conn) < due_ns) {
        alarm_set(exchange->alarms, &exchange->patience, due_ns);
        return;
    }
    open_circuit(exchange, !list_is_empty(&exchange->sent));
    fail_open(exchange);
}

static const struct script_conn_ops conn_ops = {
    .on_change = on_change,
    .on_reply = on_reply,
    .on_unloaded = on_unloaded,
    .on_lost = on_lost,
};

/* ---- the worker's ---- */

void exchange_init(struct exchange *exchange, struct lanes *lanes, struct alarms *alarms, struct login *login,
                   const struct quota_settings *settings, const struct exchange_ops *ops)
{
    exchange->ops = ops;
    exchange->alarms = alarms;
    exchange->patience = (struct alarm){.on_due = on_patience};
    exchange->probe = (struct alarm){.on_due = on_probe};
    exchange->again = (struct alarm){.on_due = on_again};
    exchange->settings = settings;
    list_init(&exchange->open);
    list_init(&exchange->sent);
    list_init(&exchange->refused);
    script_conn_init(&exchange->conn, lanes, login, &conn_ops);
}

void exchange_move(struct exchange *exchange, struct lanes *lanes)
{
    script_conn_move(&exchange->conn, lanes);
}

static void drop_all(struct list *batches)
{
    while (!list_is_empty(batches)) {
        struct batch *batch = container_of(batches->next, struct batch, in_exchange);
        list_take(&batch->in_exchange);
        for (uint32_t i = 0; i < batch->n; i++)
            while (!list_is_empty(&batch->entries[i].calls))
                decision_free(exchange_take(&batch->entries[i]));
        batch_free(batch);
    }
}

void exchange_fini(struct exchange *exchange)
{
    alarm_stop(exchange->alarms, &exchange->patience);
    alarm_stop(exchange->alarms, &exchange->probe);
    alarm_stop(exchange->alarms, &exchange->again);
    script_conn_fini(&exchange->conn);
    drop_all(&exchange->open);
    drop_all(&exchange->sent);
    drop_all(&exchange->refused);
}
