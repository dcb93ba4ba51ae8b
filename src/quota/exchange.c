#include "quota/exchange.h"

/* chosen: Redis works on one batch while the other waits in its socket */
#define SENT_WORK_US (2 * BATCH_WORK_US)
/* batches that a call is compared with; chosen: applications have few kinds of calls */
#define LOOK_BACK_MAX 16

static struct exchange *exchange_of(const struct script_node *node)
{
    return node->arg;
}

/* ---- adding calls to batches ---- */

uint16_t exchange_slot(const struct exchange *exchange, const struct decision *decision)
{
    struct slice key = decision->key;
    struct argv_walk keys = decision_keys(decision);
    if (!exchange->routes.is_cluster)
        return 0;
    return slot_of(decision->n_keys == 0 || argv_next(&keys, &key) ? key : decision->key);
}

bool exchange_is_crossing(const struct exchange *exchange, const struct decision *decision)
{
    struct slice key;
    struct argv_walk keys = decision_keys(decision);
    uint16_t slot = exchange_slot(exchange, decision);
    while (exchange->routes.is_cluster && argv_next(&keys, &key))
        if (slot_of(key) != slot)
            return true;
    return false;
}

uint64_t exchange_hash(const struct exchange *exchange, struct slice key)
{
    return hash_bytes(exchange->settings->key, key);
}

/* True if the batch has a call about one of the decision's keys. */
static bool concerns(const struct exchange *exchange, const struct batch *batch,
                     const struct decision *decision, uint64_t hash)
{
    struct slice key;
    struct argv_walk keys = decision_keys(decision);
    while (argv_next(&keys, &key))
        if (batch_concerns(batch, key, exchange_hash(exchange, key)))
            return true;
    return decision->n_keys == 0 && batch_concerns(batch, decision->key, hash);
}

/* NULL: out of memory. */
static struct batch *exchange_begin_batch(struct exchange *exchange, uint16_t slot,
                                          const struct batch_question *question, uint64_t asked_ns)
{
    struct batch *batch = batch_new(question);
    if (batch == NULL)
        return NULL;
    batch->asked_ns = asked_ns;
    batch->order = exchange->n_batches++;
    batch->slot = slot;
    return routes_put(&exchange->routes, batch) ? batch : NULL;
}

/*
 * Returns a batch that the call fits in. The call must not overtake a later batch with a call about
 * the same key. Equal CREDIT calls do not share a batch: each call is told the windows after that
 * call, not after the last call.
 */
static struct batch *find_batch(struct exchange *exchange, uint16_t slot,
                                const struct batch_question *question,
                                const struct decision *decision, uint64_t hash)
{
    unsigned left = question->algorithm->joining == QUOTA_ALONE ? 0 : LOOK_BACK_MAX;
    struct list *near = routes_near(&exchange->routes, slot);
    for (struct list *at = near->prev; at != near && left > 0; at = at->prev) {
        struct batch *batch = routes_near_at(at);
        if (batch->slot != slot)
            continue;
        left--;
        bool is_alike = !routes_was_refused(batch) && batch_fits(batch, question);
        if (is_alike && decision->ask.mode != QUOTA_CREDIT)
            return batch;
        if (concerns(exchange, batch, decision, hash))
            break;
        if (is_alike)
            return batch;
    }
    return exchange_begin_batch(exchange, slot, question, decision->asked_ns);
}

bool exchange_ask(struct exchange *exchange, struct decision *decision,
                  const struct batch_question *question, uint64_t hash)
{
    struct batch *batch =
        find_batch(exchange, exchange_slot(exchange, decision), question, decision, hash);
    if (batch == NULL)
        return false;
    uint64_t bits = 0;
    struct slice key;
    struct argv_walk keys = decision_keys(decision);
    while (argv_next(&keys, &key))
        bits |= batch_note_key(batch, exchange_hash(exchange, key));
    if (!batch_add(batch, decision, hash, bits)) {
        if (batch->n == 0) { /* the batch was made for this call */
            routes_take_out(batch);
            batch_free(batch);
        }
        return false;
    }
    decision->is_asking = true;
    script_node_note_asked(batch->node, batch, decision->asked_ns);
    script_node_wake(batch->node);
    return true;
}

/* Returns the first of these batches with a call about the key; NULL: none. */
static struct batch *find_about(const struct list *batches, uint16_t slot, struct slice key,
                                uint64_t hash)
{
    for (const struct list *at = batches->next; at != batches; at = at->next) {
        struct batch *batch = container_of(at, struct batch, in_exchange);
        if (batch->slot == slot && batch_concerns(batch, key, hash))
            return batch;
    }
    return NULL;
}

bool exchange_concerns(const struct exchange *exchange, const struct decision *decision,
                       uint64_t hash)
{
    uint16_t slot = exchange_slot(exchange, decision);
    struct slice key = decision->key;
    for (struct list *at = exchange->routes.members.next; at != &exchange->routes.members;
         at = at->next) {
        const struct script_node *node = routes_member_at(at);
        if (find_about(&node->sent, slot, key, hash) != NULL ||
            find_about(&node->open, slot, key, hash) != NULL)
            return true;
    }
    return find_about(&exchange->routes.held, slot, key, hash) != NULL;
}

/* ---- answers ---- */

/*
 * Sends a batch, and takes ownership. False: the batch could not be sent, and all its calls have
 * failed.
 */
static bool send_batch(struct exchange *exchange, struct batch *batch)
{
    if (script_node_send(batch->node, batch)) {
        routes_note_sent(&exchange->routes, batch);
        return true;
    }
    routes_starve(&exchange->routes, batch);
    return false;
}

/*
 * Sends again, with the script, a batch that Redis has not run. A leaving node's batch goes to the
 * node that serves its slot now.
 */
static void repair(struct exchange *exchange, struct batch *batch)
{
    batch->is_whole = true;
    if (batch->node->is_leaving)
        (void)routes_put(&exchange->routes, batch);
    else
        (void)send_batch(exchange, batch);
}

static void exchange_on_reply(struct script_node *node, struct batch *batch, struct slice reply)
{
    struct exchange *exchange = exchange_of(node);
    bool is_error = reply.len > 1 && reply.at[0] == '-';
    bool may_repair = !batch->is_whole && batch_script(batch) != SCRIPT_COUNT;
    routes_note_over(&exchange->routes, batch);
    if (!is_error)
        script_node_note_answered(node, batch);
    if (is_error && may_repair && script_node_takes_back(node, reply))
        repair(exchange, batch);
    else if (is_error)
        routes_take_error(&exchange->routes, batch, reply);
    else
        batch_answer(exchange->routes.calls, batch, script_node_of(node), reply);
}

static void exchange_on_lost(struct script_node *node, struct batch *batch, struct slice error)
{
    struct exchange *exchange = exchange_of(node);
    routes_note_over(&exchange->routes, batch);
    batch_fail(exchange->routes.calls, batch, error, true);
}

/* No connection is available for the unsent batches of this node. */
static void on_none(struct script_node *node)
{
    struct exchange *exchange = exchange_of(node);
    struct slice error = script_node_why_none(node);
    bool is_away = node->is_away;
    struct list now;
    list_take_all(&now, &node->open);
    while (!list_is_empty(&now)) {
        struct batch *batch = container_of(now.next, struct batch, in_exchange);
        routes_take_out(batch);
        routes_note_unsent(&exchange->routes, batch);
        routes_take_lack(&exchange->routes, batch, error, is_away);
    }
}

/* ---- sending ---- */

/* Returns a sent batch with another script, at the same node, about this key; NULL: none. */
static const struct batch *find_sent(const struct exchange *exchange, const struct batch *by,
                                     struct slice key, uint64_t hash)
{
    enum script script = batch_script(by);
    const struct list *sent = &by->node->sent;
    (void)exchange;
    for (const struct list *at = sent->next; at != sent; at = at->next) {
        const struct batch *batch = container_of(at, struct batch, in_exchange);
        if (batch->slot == by->slot && batch_script(batch) != script &&
            batch_script(batch) != SCRIPT_COUNT && batch_concerns(batch, key, hash))
            return batch;
    }
    return NULL;
}

static const struct batch *find_held(const struct exchange *exchange, const struct batch *by,
                                     struct slice key, uint64_t hash)
{
    return find_about(&exchange->routes.held, by->slot, key, hash);
}

static bool asks_only(const struct script_node *node, enum script script)
{
    for (const struct list *at = node->sent.next; at != &node->sent; at = at->next)
        if (batch_script(container_of(at, struct batch, in_exchange)) != script)
            return false;
    return true;
}

/*
 * True if Redis has enough work in flight: the batch is sent after one of the sent batches is
 * answered.
 */
static bool is_enough(const struct script_node *node, const struct batch *batch)
{
    return !list_is_empty(&node->sent) && node->sent_us + batch_work_us(batch) > SENT_WORK_US;
}

typedef const struct batch *find_other(const struct exchange *exchange, const struct batch *by,
                                       struct slice key, uint64_t hash);

/* Returns what `find` finds first for a key of the batch; NULL: nothing. */
static const struct batch *find_for_keys(const struct exchange *exchange, const struct batch *batch,
                                         find_other *find)
{
    const struct batch *found = NULL;
    for (uint32_t i = 0; i < batch->n && found == NULL; i++) {
        const struct batch_entry *entry = &batch->entries[i];
        const struct decision *decision = batch_first_call(entry);
        struct argv_walk keys = decision_keys(decision);
        struct slice key;
        while (found == NULL && argv_next(&keys, &key))
            found = find(exchange, batch, key, exchange_hash(exchange, key));
        if (decision->n_keys == 0)
            found = find(exchange, batch, decision->key, entry->hash);
    }
    return found;
}

/*
 * True if the batch must wait. A sent batch with another script may get NOSCRIPT and be sent again.
 * This batch would then overtake the other batch.
 */
static bool exchange_must_stay(const struct exchange *exchange, const struct batch *batch)
{
    /* a batch of another script in flight is rare */
    return !asks_only(batch->node, batch_script(batch)) &&
           find_for_keys(exchange, batch, find_sent) != NULL;
}

/* Sends the batch. False: on_done has run for calls of this batch or of another batch. */
static bool exchange_go(struct exchange *exchange, struct batch *batch)
{
    routes_take_out(batch);
    const struct batch *before = NULL; /* a refused batch, which this batch must not overtake */
    if (!list_is_empty(&exchange->routes.held))
        before = find_for_keys(exchange, batch, find_held);
    if (before != NULL)
        return routes_put_behind(&exchange->routes, batch, before);
    for (uint32_t i = 0; i < batch->n; i++)
        batch->entries[i].changes = quota_changes(exchange->settings, batch->entries[i].hash);
    return send_batch(exchange, batch);
}

static void send_open(struct script_node *node)
{
    struct exchange *exchange = exchange_of(node);
    for (struct list *at = node->open.next; at != &node->open;) {
        struct batch *batch = container_of(at, struct batch, in_exchange);
        if (is_enough(node, batch) || exchange_must_stay(exchange, batch))
            return;
        at = at->next;
        if (!routes_must_wait(&exchange->routes, batch) && !exchange_go(exchange, batch))
            at = node->open.next; /* on_done may have added calls */
    }
}

/*
 * Sends the batches of this iteration. Without a batch, continues the start of a connection that a
 * probe has opened.
 */
static void exchange_on_look(struct script_node *node)
{
    if (node->is_leaving) {
        if (list_is_empty(&node->sent))
            script_node_free(node);
        return;
    }
    switch (script_node_find(node)) {
    case SCRIPT_CONN_READY:
        send_open(node);
        break;
    case SCRIPT_CONN_NOT_YET:
        break;
    case SCRIPT_CONN_NONE:
        on_none(node);
        break;
    }
}

static const struct script_node_ops node_ops = {
    .on_look = exchange_on_look,
    .on_none = on_none,
    .on_reply = exchange_on_reply,
    .on_lost = exchange_on_lost,
};

/* ---- start ---- */

void exchange_init(struct exchange *exchange, struct nodes *nodes, struct alarms *alarms,
                   const struct quota_settings *settings, const struct batch_ops *calls)
{
    exchange->settings = settings;
    routes_init(&exchange->routes, nodes, alarms, calls, &node_ops, exchange);
}
