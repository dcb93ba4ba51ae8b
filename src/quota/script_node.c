#include "quota/script_node.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "limit/command/command.h"
#include "resp/emit.h"
#include "upstream/lane/lack.h"
#include "upstream/node/not_run.h"

#define ALARMS 2 /* alarms of each node */
/* chosen: after this time weir tries again to load scripts that Redis refused to load */
#define LOADED_NS (10 * NS_PER_S)
/* chosen: losses in a row while scripts load; after more losses the waiting calls fail */
#define LOST_MAX 2
#define REPLY_MAX (4 << 20)      /* bytes; chosen: far more than any reply to a script */
#define LOOK_NS (50 * NS_PER_MS) /* interval of checks while the lanes' back-off forbids a probe */

/*
 * The script that is loaded first, alone. Redis accepts no long requests from clients without a
 * login, and closes the connection instead of answering.
 */
#define FIRST 0

/* The argument of the ASKING before a batch, which marks the reply to ASKING. */
#define ASKING 1

static struct script_node *node_of(struct lane_user *lane_user)
{
    return container_of(lane_user, struct script_node, base.lane_user);
}

static struct batch *script_node_first_of(const struct list *batches)
{
    return container_of(batches->next, struct batch, in_exchange);
}

static bool has_shas(const struct script_node *node)
{
    return node->n_loads == SCRIPT_COUNT;
}

/* ---- replies to SCRIPT LOAD ---- */

static void keep_refusal(struct script_node *node, struct slice reply)
{
    free(node->refusal);
    /* only a broken node redirects SCRIPT LOAD; clients must not see a redirect */
    if (redirect_is(reply))
        reply = SLICE("-UPSTREAM moved\r\n");
    node->refusal = reply.len > 0 && reply.at[0] == '-' ? strndup(reply.at, reply.len) : NULL;
}

/*
 * Called when Redis lets weir run scripts, but denies SCRIPT LOAD or EVALSHA. From now on each call
 * carries its script.
 */
static void send_whole(struct script_node *node, enum lack lack)
{
    node_lacks(script_node_of(node), lack);
    node->whole_ns = script_node_now_ns(node);
}

static bool is_hex(struct slice text)
{
    size_t i = 0;
    while (i < text.len && isxdigit((unsigned char)text.at[i]))
        i++;
    return i == text.len;
}

/* Reads "$40\r\n<sha>\r\n". False: Redis refused, with NOAUTH, BUSY or LOADING. */
static bool take_sha(struct script_node *node, unsigned script, struct slice reply)
{
    if (reply.len != SCRIPT_SHA_LEN + 7 || memcmp(reply.at, "$40\r\n", 5) != 0 ||
        !is_hex(slice_of(reply.at + 5, SCRIPT_SHA_LEN)))
        return false;
    memcpy(node->shas[script], reply.at + 5, SCRIPT_SHA_LEN);
    return true;
}

/* Restarts loading with the first script. */
static void load_anew(struct script_node *node)
{
    node->n_loading = 0;
    node->is_let_in = node->is_unloaded = false;
    if (!has_shas(node))
        node->n_loads = 0;
}

static void script_node_refuse(struct script_node *node)
{
    node->is_away = false;
    load_anew(node);
    node->ops->on_none(node);
}

/* Takes the reply to the first script, which shows whether Redis accepts weir. */
static void script_node_keep_first(struct script_node *node, struct slice reply)
{
    char named[LACK_ERROR_ROOM];
    if (lack_is_refused(reply, "script")) {
        send_whole(node, LACK_SCRIPT);
        node->is_let_in = true;
        script_node_wake(node);
        return;
    }
    keep_refusal(node, batch_explain(script_node_of(node), reply, named));
    node->is_let_in = take_sha(node, FIRST, reply);
    if (!node->is_let_in) {
        script_node_refuse(node);
        return;
    }
    node_lacks_no_more(script_node_of(node), LACK_SCRIPT);
    if (has_shas(node))
        node->n_lost = 0;
    else
        node->n_loads = 1;
    script_node_wake(node);
}

/*
 * Takes the reply for another script. The reply is ignored once all hashes are known: a script that
 * Redis lacks is sent again after NOSCRIPT.
 */
static void keep_sha(struct script_node *node, unsigned script, struct slice reply)
{
    if (has_shas(node))
        return;
    node->n_loads++;
    node->is_unloaded |= !take_sha(node, script, reply);
    if (reply.len > 0 && reply.at[0] == '-')
        keep_refusal(node, reply);
    if (node->is_unloaded && node->n_loads == node->n_loading) { /* Redis may be short of memory */
        node->n_loads = 0;
        script_node_refuse(node);
        return;
    }
    if (!has_shas(node))
        return;
    node->n_lost = 0;
    script_node_wake(node);
}

/* ---- loading scripts ---- */

static bool script_node_send_call(struct script_node *node, enum effect effect, unsigned argument,
                                  const char *request, size_t n)
{
    struct call *call =
        lane_call_flow(node->base.lane_user.lane, &node->base.lane_user, FLOW_ONE, 1, 0);
    if (call == NULL)
        return false;
    call->flags = CALL_LOOK;
    call->effect = (uint8_t)effect;
    call->argument = argument;
    lane_send(node->base.lane_user.lane, &node->base.lane_user, request, n);
    return true;
}

static bool script_node_load(struct script_node *node, enum script script)
{
    const struct slice words[] = {SLICE("SCRIPT"), SLICE("LOAD"), script_source(script)};
    char *request = malloc(words[2].len + 4 * EMIT_HEADER_MAX + 32);
    if (request == NULL)
        return false;
    size_t n = emit_array(request, words, 3);
    bool is_sent = script_node_send_call(node, EFFECT_LOADED, script, request, n);
    free(request);
    return is_sent;
}

/* Sends the first script alone. Sends the other scripts once Redis has loaded the first. */
static bool load_next(struct script_node *node)
{
    unsigned end = node->is_let_in ? SCRIPT_COUNT : FIRST + 1;
    if (node->whole_ns != 0)
        return true;
    if (node->n_loading == 0)
        keep_refusal(node, SLICE("")); /* clears the refusal of an earlier load */
    while (node->n_loading < end) {
        if (!script_node_load(node, (enum script)node->n_loading))
            return false;
        node->n_loading++;
    }
    return true;
}

/*
 * Opens the connection. False: no connection is possible now. is_away is set if the node is
 * unreachable, or if weir has no descriptors left.
 */
static bool open_lane(struct script_node *node)
{
    if (!circuit_may_try(&node->circuit, script_node_now_ns(node)))
        return false;
    node->is_away = node->base.lanes->down != ERR_NONE;
    bool is_open = weir_lane_open(&node->base, node->login, LANE_SCRIPT);
    node->is_away |= lanes_are_starved(node->base.lanes);
    if (is_open || node->is_away)
        keep_refusal(node, SLICE("")); /* clears the refusal of an earlier connection */
    return is_open;
}

/* While the circuit is open no call waits for a connection that is being opened. */
static enum script_conn_state being_opened(struct script_node *node)
{
    node->is_away = node->circuit.is_open;
    return node->circuit.is_open ? SCRIPT_CONN_NONE : SCRIPT_CONN_NOT_YET;
}

/* Loads the scripts again after LOADED_NS: the rights of weir's user may have changed. */
static void load_again(struct script_node *node)
{
    uint64_t after_ns = upstream_time(node->base.lanes->upstream, LOADED_NS);
    if (node->whole_ns == 0 || script_node_now_ns(node) < node->whole_ns + after_ns)
        return;
    node->whole_ns = 0;
    load_anew(node);
}

enum script_conn_state script_node_find(struct script_node *node)
{
    if (!node->base.is_open && !open_lane(node))
        return SCRIPT_CONN_NONE;
    struct lane *lane = node->base.lane_user.lane;
    if (!lane_is_ready(lane) || lane_is_congested(lane)) {
        lane_wait(lane, &node->base.lane_user);
        return being_opened(node);
    }
    load_again(node);
    if (!load_next(node)) {
        node->is_away = false;
        return SCRIPT_CONN_NONE;
    }
    if (!node->is_let_in || (!has_shas(node) && node->whole_ns == 0))
        return being_opened(node);
    return SCRIPT_CONN_READY;
}

struct slice script_node_why_none(const struct script_node *node)
{
    if (node->refusal != NULL)
        return slice_str(node->refusal);
    return err_text(node->circuit.is_open ? ERR_UPSTREAM_TIMEOUT
                                          : lanes_why_away(node->base.lanes));
}

/* ---- sending ---- */

/* Returns when a batch with this asked_ns is late; UINT64_MAX: never. */
static uint64_t due_of(const struct script_node *node, uint64_t asked_ns)
{
    return circuit_due_ns(asked_ns, node->base.lanes->upstream->timeout_ns);
}

/*
 * The alarm is set for the batch that is the oldest when the alarm is set. Later batches are due
 * later.
 */
void script_node_note_asked(struct script_node *node, struct batch *batch, uint64_t asked_ns)
{
    uint64_t due_ns = due_of(node, asked_ns);
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

/*
 * ASKING applies to the next request of the connection, so nothing may be sent between ASKING and
 * the request.
 */
static bool script_node_send_request(struct script_node *node, bool is_asking, const char *request,
                                     size_t n)
{
    static const char asking[] = "*1\r\n$6\r\nASKING\r\n";
    if (is_asking && !script_node_send_call(node, EFFECT_NONE, ASKING, asking, sizeof asking - 1))
        return false;
    return script_node_send_call(node, EFFECT_NONE, 0, request, n);
}

/* Returns the script's source or hash; empty: UNLINK. */
static struct slice script_word(const struct script_node *node, const struct batch *batch)
{
    enum script script = batch_script(batch);
    if (script == SCRIPT_COUNT)
        return SLICE("");
    return batch->is_whole ? script_source(script) : slice_of(node->shas[script], SCRIPT_SHA_LEN);
}

bool script_node_send(struct script_node *node, struct batch *batch)
{
    size_t len;
    batch->sent_ns = script_node_now_ns(node);
    batch->is_whole |= node->whole_ns != 0;
    char *request = batch_write(batch, script_word(node, batch), &len);
    bool is_sent =
        request != NULL && script_node_send_request(node, batch->is_asking, request, len);
    free(request);
    if (!is_sent)
        return false;
    list_push(&node->sent, &batch->in_exchange);
    node->sent_us += batch_work_us(batch);
    return true;
}

static struct batch *take_sent(struct script_node *node)
{
    struct batch *batch = script_node_first_of(&node->sent);
    list_take(&batch->in_exchange);
    node->sent_us -= batch_work_us(batch);
    return batch;
}

static void take_reply(struct script_node *node, struct slice reply)
{
    if (list_is_empty(&node->sent))
        return; /* a lane delivers no reply without a request */
    node->ops->on_reply(node, take_sent(node), reply);
    if (!list_is_empty(&node->open) || node->is_leaving)
        script_node_wake(node); /* batches that had to wait may be sent now */
}

bool script_node_takes_back(struct script_node *node, struct slice error)
{
    if (slice_begins(error, SLICE("-NOSCRIPT")))
        return true;
    if (!lack_is_refused(error, "evalsha"))
        return false;
    send_whole(node, LACK_EVALSHA);
    return true;
}

void script_node_note_answered(const struct script_node *node, const struct batch *batch)
{
    struct node *of = script_node_of(node);
    if (atomic_load_explicit(&of->lacks, memory_order_relaxed) == 0)
        return;
    if (batch_script(batch) == SCRIPT_COUNT) {
        node_lacks_no_more(of, LACK_UNLINK);
        return;
    }
    node_lacks_no_more(of, LACK_EVAL);
    node_lacks_no_more(of, LACK_TIME);
    node_lacks_no_more(of, LACK_KEYS);
    if (node->whole_ns == 0)
        node_lacks_no_more(of, LACK_EVALSHA);
}

/* ---- time-outs ---- */

/* Returns the least asked_ns of these batches; UINT64_MAX: no batch. */
static uint64_t oldest_of(const struct list *batches)
{
    uint64_t oldest_ns = UINT64_MAX;
    for (const struct list *at = batches->next; at != batches; at = at->next) {
        uint64_t asked_ns = container_of(at, struct batch, in_exchange)->asked_ns;
        oldest_ns = asked_ns < oldest_ns ? asked_ns : oldest_ns;
    }
    return oldest_ns;
}

/* Returns when the oldest batch is late; UINT64_MAX: no batch. */
static uint64_t patience_ns(const struct script_node *node)
{
    uint64_t sent_ns = oldest_of(&node->sent), open_ns = oldest_of(&node->open);
    uint64_t asked_ns = sent_ns < open_ns ? sent_ns : open_ns;
    return asked_ns != UINT64_MAX ? due_of(node, asked_ns) : UINT64_MAX;
}

/*
 * Tries to reach the node while the circuit is open. Once the connection is ready on_look follows,
 * and has the scripts loaded. The first answer closes the circuit.
 */
static void on_probe(struct alarm *alarm)
{
    struct script_node *node = container_of(alarm, struct script_node, probe);
    uint64_t now_ns = script_node_now_ns(node);
    if (node->circuit.is_open)
        (void)script_node_find(node);
    uint64_t next_ns = circuit_probe_ns(&node->circuit, now_ns);
    bool is_held_back = !node->base.is_open && !lanes_are_up(node->base.lanes);
    if (next_ns != UINT64_MAX)
        alarm_set(node->alarms, &node->probe, is_held_back ? now_ns + LOOK_NS : next_ns);
}

/*
 * Opens the circuit, because a batch is late. If the batch was sent (is_owing), its connection is
 * closed, and script_node_on_lost follows at once. A connection that is still being opened, or
 * loads scripts, stays open. The first answer on this connection closes the circuit.
 */
static void open_circuit(struct script_node *node, bool is_owing)
{
    if (!alarm_is_set(&node->probe) && !node->is_leaving)
        alarm_set(node->alarms, &node->probe, script_node_now_ns(node));
    circuit_open(&node->circuit);
    node->is_away = true;
    if (is_owing && node->base.is_open)
        lane_fail(node->base.lane_user.lane, END_LATE,
                  "it does not answer within upstream-timeout");
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

static void script_node_on_bytes(struct lane_user *lane_user, const char *data, size_t n)
{
    struct script_node *node = node_of(lane_user);
    if (node->reply.len + n > REPLY_MAX)
        lane_fail(lane_user->lane, END_LOST, "its reply to a script is too long");
    else if (!bytes_add(&node->reply, slice_of(data, n), REPLY_MAX))
        lane_fail(lane_user->lane, END_LOST, "out of memory");
}

static void script_node_on_answer(struct lane_user *lane_user, const struct call *call,
                                  const struct glimpse *glimpse)
{
    struct script_node *node = node_of(lane_user);
    struct slice reply = bytes_slice(&node->reply);
    (void)glimpse;
    node->reply.len = 0;
    circuit_close(&node->circuit);
    if (call->effect == EFFECT_LOADED && call->argument == FIRST)
        script_node_keep_first(node, reply);
    else if (call->effect == EFFECT_LOADED)
        keep_sha(node, call->argument, reply);
    else if (call->argument != ASKING)
        take_reply(node, reply);
    else if (lack_is_refused(reply, "asking"))
        node_lacks(script_node_of(node), LACK_ASKING);
    else
        node_lacks_no_more(script_node_of(node), LACK_ASKING);
}

/* Resets the state of the connection. */
static void script_node_forget(struct script_node *node)
{
    weir_lane_lost(&node->base);
    node->whole_ns = 0;
    node->reply.len = 0;
    load_anew(node);
}

/* Fails the sent batches, which get no answer. */
static void lose_sent(struct script_node *node)
{
    struct list now;
    /* the lanes' timer may close a silent connection before the alarm fires */
    if (clock_ns() >= patience_ns(node))
        open_circuit(node, false);
    node->sent_us = 0;
    struct slice error =
        err_text(node->circuit.is_open ? ERR_UPSTREAM_TIMEOUT : ERR_UPSTREAM_UNAVAILABLE);
    list_take_all(&now, &node->sent);
    while (!list_is_empty(&now)) {
        struct batch *batch = script_node_first_of(&now);
        list_take(&batch->in_exchange);
        node->ops->on_lost(node, batch, error);
    }
    if (!list_is_empty(&node->open) || node->is_leaving)
        script_node_wake(node);
}

/*
 * The connection was lost. After LOST_MAX losses in a row while scripts load, the waiting calls
 * fail.
 */
static void script_node_on_lost(struct lane_user *lane_user, const struct lane *lane)
{
    (void)lane;
    struct script_node *node = node_of(lane_user);
    bool is_loading = !has_shas(node) || (node->n_loading > 0 && !node->is_let_in);
    bool is_hopeless = is_loading && ++node->n_lost > LOST_MAX;
    script_node_forget(node);
    keep_refusal(node, SLICE("")); /* the node is unreachable now, whatever Redis said before */
    if (is_hopeless) {
        circuit_fail(&node->circuit, clock_ns());
        node->is_away = true; /* Redis has sent no error that names another cause */
        node->ops->on_none(node);
    }
    lose_sent(node);
}

/*
 * The connection was refused. `reply` is empty if the connection could not be made, or its greeting
 * timed out.
 */
static void script_node_on_refused(struct lane_user *lane_user, enum lane_end end,
                                   struct slice reply)
{
    struct script_node *node = node_of(lane_user);
    const struct node *of = script_node_of(node);
    char named[LACK_ERROR_ROOM];
    script_node_forget(node);
    /* not all of weir's passwords are refused: tries again */
    if (end == END_LOGIN_REFUSED && lanes_may_log_in(node->base.lanes)) {
        script_node_wake(node);
        return;
    }
    if (end == END_LOGIN_REFUSED)
        reply = lack_error(node_login_lack(of), of->upstream->is_cluster, SLICE("-NOAUTH"), named);
    keep_refusal(node, reply);
    node->is_away = end == END_LOST || end == END_LATE;
    if (!node->is_away)
        circuit_close(&node->circuit);        /* a refusal is an answer */
    circuit_fail(&node->circuit, clock_ns()); /* in a timer the loop's time is old */
    if (node->refusal != NULL)
        node->ops->on_none(node);
}

static const struct lane_user_ops lane_user_ops = {
    .on_bytes = script_node_on_bytes,
    .on_answer = script_node_on_answer,
    .on_refused = script_node_on_refused,
    .on_lost = script_node_on_lost,
    .to_link = WEIR_LANE_TO_LINK,
};

static void script_node_on_wake(struct link *link)
{
    struct script_node *node = container_of(link, struct script_node, base.hollow);
    node->ops->on_look(node);
}

static const struct link_ops link_ops = {.on_wake = script_node_on_wake};

/* ---- start and end ---- */

struct script_node *script_node_new(struct lanes *lanes, struct alarms *alarms, struct login *login,
                                    const struct script_node *like,
                                    const struct script_node_ops *ops, void *arg)
{
    struct script_node *node = calloc(1, sizeof *node);
    if (node == NULL || !alarms_reserve(alarms, ALARMS)) {
        free(node);
        login_put(login);
        return NULL;
    }
    node->ops = ops;
    node->arg = arg;
    node->alarms = alarms;
    node->patience = (struct alarm){.on_due = on_patience};
    node->probe = (struct alarm){.on_due = on_probe};
    node->login = login;
    list_init(&node->in_routes);
    list_init(&node->open);
    list_init(&node->sent);
    if (like != NULL && has_shas(like)) {
        memcpy(node->shas, like->shas, sizeof node->shas);
        node->n_loads = SCRIPT_COUNT;
    }
    weir_lane_init(&node->base, lanes, &lane_user_ops, &link_ops);
    return node;
}

static void script_node_drop_all(struct list *batches)
{
    while (!list_is_empty(batches)) {
        struct batch *batch = script_node_first_of(batches);
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
    alarms_release(node->alarms, ALARMS);
    list_take(&node->in_routes);
    weir_lane_fini(&node->base);
    bytes_fini(&node->reply);
    free(node->refusal);
    login_put(node->login);
    script_node_drop_all(&node->open);
    script_node_drop_all(&node->sent);
    free(node);
}

void script_node_leave(struct script_node *node)
{
    node->is_leaving = true;
    alarm_stop(node->alarms, &node->probe);
    if (list_is_empty(&node->sent)) {
        stop_alarms(node);
        weir_lane_close(&node->base);
        script_node_forget(node);
    }
    script_node_wake(node);
}
