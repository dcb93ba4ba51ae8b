#include "quota/script_conn.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "limit/command/command.h"
#include "resp/emit.h"
#include "upstream/lane/lack.h"
#include "upstream/node/redirect.h"

#define LOADED_NS (10 * NS_PER_S) /* after so long what Redis would not load is loaded again */
#define LOST_MAX 2                /* losses in a row while scripts are loaded, after which waiting calls fail */
#define REPLY_MAX (4 << 20)       /* far more than any reply to a script */
#define LOOK_NS (50 * NS_PER_MS)  /* while the lanes' back-off forbids a probe, it is looked at so often */

/* Sent alone: from clients that are not logged in Redis takes no long requests, and closes instead of answering. */
#define FIRST 0

/* The argument of a call without an effect: the ASKING before a question. */
#define ASKING 1

static struct script_conn *conn_of(struct rider *rider)
{
    return container_of(rider, struct script_conn, base.rider);
}

/* ---- replies ---- */

static void on_bytes(struct rider *rider, const char *data, size_t n)
{
    struct script_conn *conn = conn_of(rider);
    if (conn->reply.len + n > REPLY_MAX)
        lane_fail(rider->lane, END_LOST, "its answer to a script is too long");
    else if (!bytes_add(&conn->reply, slice_of(data, n), REPLY_MAX))
        lane_fail(rider->lane, END_LOST, "out of memory");
}

static struct node *node_of(const struct script_conn *conn)
{
    return lanes_node(conn->base.lanes);
}

static void keep_refusal(struct script_conn *conn, struct slice reply)
{
    free(conn->refusal);
    if (redirect_is(reply)) /* loading a script is not redirected: it is a lie, and no client hears it */
        reply = SLICE("-UPSTREAM moved\r\n");
    conn->refusal = reply.len > 0 && reply.at[0] == '-' ? strndup(reply.at, reply.len) : NULL;
}

static bool has_begun(struct slice reply, struct slice with)
{
    return reply.len >= with.len && memcmp(reply.at, with.at, with.len) == 0;
}

static struct slice explain(const struct script_conn *conn, enum lack lack, struct slice error, char *out)
{
    return lack_error(lack, node_of(conn)->upstream->is_cluster, error, out);
}

struct slice script_conn_explain(const struct script_conn *conn, struct slice error, char *out)
{
    enum lack lack = LACK_COUNT;
    if (has_begun(error, SLICE("-NOAUTH")))
        lack = LACK_USER;
    else if (lack_is_refused(error, "eval"))
        lack = LACK_EVAL;
    else if (lack_is_refused(error, "unlink"))
        lack = LACK_UNLINK;
    else if (lack_is_channel(error))
        lack = LACK_CHANNEL;
    else if (lack_is_key(error))
        lack = LACK_KEYS;
    else if (lack_is_in_script(error)) /* only TIME ends a script, and that error says where in the script it was */
        lack = lack_ends_script(error) ? LACK_TIME : LACK_RIGHT;
    if (lack == LACK_COUNT)
        return error;
    node_lacks(node_of(conn), lack);
    return explain(conn, lack, error, out);
}

/* Redis lets weir have its scripts run, but not so: from now on each call carries its script. */
static void send_whole(struct script_conn *conn, enum lack lack)
{
    node_lacks(node_of(conn), lack);
    conn->whole_ns = script_conn_now_ns(conn);
}

bool script_conn_takes_back(struct script_conn *conn, struct slice reply)
{
    static const struct slice noscript = {"-NOSCRIPT", 9};
    if (has_begun(reply, noscript))
        return true;
    if (!lack_is_refused(reply, "evalsha"))
        return false;
    send_whole(conn, LACK_EVALSHA);
    return true;
}

void script_conn_note_decided(const struct script_conn *conn)
{
    if (atomic_load_explicit(&node_of(conn)->lacks, memory_order_relaxed) == 0)
        return;
    node_lacks_no_more(node_of(conn), LACK_EVAL);
    node_lacks_no_more(node_of(conn), LACK_TIME);
    node_lacks_no_more(node_of(conn), LACK_KEYS);
    if (conn->whole_ns == 0)
        node_lacks_no_more(node_of(conn), LACK_EVALSHA);
}

static bool is_hex(struct slice text)
{
    size_t i = 0;
    while (i < text.len && isxdigit((unsigned char)text.at[i]))
        i++;
    return i == text.len;
}

/* "$40\r\n<sha>\r\n", or why not: NOAUTH, BUSY, LOADING. */
static bool take_sha(struct script_conn *conn, unsigned script, struct slice reply)
{
    if (reply.len != SCRIPT_SHA_LEN + 7 || memcmp(reply.at, "$40\r\n", 5) != 0 ||
        !is_hex(slice_of(reply.at + 5, SCRIPT_SHA_LEN)))
        return false;
    memcpy(conn->shas[script], reply.at + 5, SCRIPT_SHA_LEN);
    return true;
}

static bool has_shas(const struct script_conn *conn)
{
    return conn->n_loads == SCRIPT_COUNT;
}

/* The next script_conn_find begins with the first script again. */
static void refuse(struct script_conn *conn)
{
    conn->is_away = false;
    conn->n_sent = 0;
    conn->is_let_in = conn->is_unloaded = false;
    if (!has_shas(conn))
        conn->n_loads = 0;
    conn->ops->on_unloaded(conn);
}

/* The reply to the first script: does Redis let weir in? */
static void keep_first(struct script_conn *conn, struct slice reply)
{
    char named[LACK_ERROR_ROOM];
    if (lack_is_refused(reply, "script")) {
        send_whole(conn, LACK_SCRIPT);
        conn->is_let_in = true;
        script_conn_wake(conn);
        return;
    }
    keep_refusal(conn, script_conn_explain(conn, reply, named));
    conn->is_let_in = take_sha(conn, FIRST, reply);
    if (conn->is_let_in)
        node_lacks_no_more(node_of(conn), LACK_SCRIPT);
    if (!conn->is_let_in) {
        refuse(conn);
        return;
    }
    if (has_shas(conn))
        conn->n_lost = 0;
    else
        conn->n_loads = 1;
    script_conn_wake(conn);
}

/* Once they are known it does not matter: NOSCRIPT is repaired. */
static void keep_sha(struct script_conn *conn, unsigned script, struct slice reply)
{
    if (has_shas(conn))
        return;
    conn->n_loads++;
    conn->is_unloaded |= !take_sha(conn, script, reply);
    if (reply.len > 0 && reply.at[0] == '-')
        keep_refusal(conn, reply);
    if (conn->is_unloaded && conn->n_loads == conn->n_sent) { /* fewer than all where memory was short */
        conn->n_loads = 0;
        refuse(conn);
        return;
    }
    if (!has_shas(conn))
        return;
    conn->n_lost = 0;
    script_conn_wake(conn);
}

static void on_answer(struct rider *rider, const struct call *call, const struct glimpse *glimpse)
{
    struct script_conn *conn = conn_of(rider);
    struct slice reply = bytes_slice(&conn->reply);
    (void)glimpse;
    conn->reply.len = 0;
    circuit_close(&conn->circuit);
    if (call->effect == EFFECT_LOADED && call->argument == FIRST)
        keep_first(conn, reply);
    else if (call->effect == EFFECT_LOADED)
        keep_sha(conn, call->argument, reply);
    else if (call->argument != ASKING)
        conn->ops->on_reply(conn, reply);
    else if (lack_is_refused(reply, "asking"))
        node_lacks(node_of(conn), LACK_ASKING);
    else
        node_lacks_no_more(node_of(conn), LACK_ASKING);
}

/* ---- coming and going ---- */

/* The next connection begins anew. */
static void forget(struct script_conn *conn)
{
    weir_lane_lost(&conn->base);
    conn->is_let_in = false;
    conn->whole_ns = 0;
    conn->n_sent = 0;
    conn->reply.len = 0;
    conn->is_unloaded = false;
    if (!has_shas(conn))
        conn->n_loads = 0;
}

/* Lost again and again while scripts are loaded: fail the calls that wait. */
static void on_lost(struct rider *rider, const struct lane *lane)
{
    (void)lane;
    struct script_conn *conn = conn_of(rider);
    bool is_loading = !has_shas(conn) || (conn->n_sent > 0 && !conn->is_let_in);
    bool is_hopeless = is_loading && ++conn->n_lost > LOST_MAX;
    forget(conn);
    keep_refusal(conn, SLICE("")); /* from now on it is away, whatever was said before */
    if (is_hopeless) {
        circuit_fail(&conn->circuit, clock_ns());
        conn->is_away = true; /* no word of Redis' says otherwise */
        conn->ops->on_unloaded(conn);
    }
    conn->ops->on_lost(conn);
}

/* Without a word of Redis' the connection could not be made, or its greeting had no answer in time. */
static void on_refused(struct rider *rider, enum lane_end end, struct slice reply)
{
    struct script_conn *conn = conn_of(rider);
    char named[LACK_ERROR_ROOM];
    forget(conn);
    if (end == END_LOGIN_REFUSED && lanes_may_log_in(conn->base.lanes)) { /* there is another password to try */
        script_conn_wake(conn);
        return;
    }
    keep_refusal(conn, end == END_LOGIN_REFUSED ? explain(conn, node_login_lack(node_of(conn)), SLICE("-NOAUTH"), named)
                                                : reply);
    conn->is_away = end == END_LOST || end == END_LATE;
    if (!conn->is_away)
        circuit_close(&conn->circuit); /* a refusal is an answer */
    circuit_fail(&conn->circuit,
                 clock_ns()); /* of timers, too, where the loop's time is that of the iteration before */
    if (conn->refusal != NULL)
        conn->ops->on_unloaded(conn);
}

static const struct rider_ops rider_ops = {
    .on_bytes = on_bytes,
    .on_answer = on_answer,
    .on_refused = on_refused,
    .on_lost = on_lost,
    .to_link = WEIR_LANE_TO_LINK,
};

static void on_wake(struct link *link)
{
    struct script_conn *conn = container_of(link, struct script_conn, base.hollow);
    conn->ops->on_change(conn);
}

static const struct link_ops link_ops = {.on_wake = on_wake};

void script_conn_init(struct script_conn *conn, struct lanes *lanes, struct login *login,
                      const struct script_conn *like, const struct script_conn_ops *ops)
{
    *conn = (struct script_conn){.ops = ops, .login = login};
    if (like != NULL && has_shas(like)) {
        memcpy(conn->shas, like->shas, sizeof conn->shas);
        conn->n_loads = SCRIPT_COUNT;
    }
    weir_lane_init(&conn->base, lanes, &rider_ops, &link_ops);
}

void script_conn_close(struct script_conn *conn)
{
    weir_lane_close(&conn->base);
    forget(conn);
}

void script_conn_fini(struct script_conn *conn)
{
    weir_lane_fini(&conn->base);
    bytes_fini(&conn->reply);
    free(conn->refusal);
    login_put(conn->login);
}

void script_conn_wake(struct script_conn *conn)
{
    link_wake(&conn->base.hollow);
}

/* ---- asking ---- */

static bool send_call(struct script_conn *conn, enum effect effect, unsigned argument, const char *request, size_t n)
{
    struct call *call = lane_call_special(conn->base.rider.lane, &conn->base.rider, FLOW_ONE, 1, 0);
    if (call == NULL)
        return false;
    call->flags = CALL_LOOK;
    call->effect = (uint8_t)effect;
    call->argument = argument;
    lane_send(conn->base.rider.lane, &conn->base.rider, request, n);
    return true;
}

static bool load(struct script_conn *conn, enum script script)
{
    const struct slice words[] = {SLICE("SCRIPT"), SLICE("LOAD"), script_source(script)};
    char *request = malloc(words[2].len + 4 * EMIT_HEADER_MAX + 32);
    if (request == NULL)
        return false;
    size_t n = emit_array(request, words, 3);
    bool is_sent = send_call(conn, EFFECT_LOADED, script, request, n);
    free(request);
    return is_sent;
}

/* Send the first script by itself, the others once Redis has taken it. */
static bool load_next(struct script_conn *conn)
{
    unsigned end = conn->is_let_in ? SCRIPT_COUNT : FIRST + 1;
    if (conn->whole_ns != 0)
        return true;
    if (conn->n_sent == 0)
        keep_refusal(conn, SLICE("")); /* of a load before: if none can be sent now, that is not why */
    while (conn->n_sent < end) {
        if (!load(conn, (enum script)conn->n_sent))
            return false;
        conn->n_sent++;
    }
    return true;
}

/* False: there can be none now. is_away says whether the node, or a system without descriptors, is why. */
static bool open_lane(struct script_conn *conn)
{
    if (!circuit_may_try(&conn->circuit, script_conn_now_ns(conn)))
        return false;
    conn->is_away = conn->base.lanes->down != ERR_NONE;
    bool is_open = weir_lane_open(&conn->base, conn->login, LANE_SCRIPT);
    conn->is_away |= lanes_are_starved(conn->base.lanes);
    if (is_open || conn->is_away)
        keep_refusal(conn, SLICE("")); /* of another connection */
    return is_open;
}

/* While the circuit is open no call waits for a connection that is being opened. */
static enum script_conn_state being_opened(struct script_conn *conn)
{
    conn->is_away = conn->circuit.is_open;
    return conn->circuit.is_open ? SCRIPT_CONN_NONE : SCRIPT_CONN_NOT_YET;
}

/* The rights of weir's user may have changed since scripts were not to be loaded or called by their hashes. */
static void load_again(struct script_conn *conn)
{
    uint64_t after_ns = upstream_time(conn->base.lanes->upstream, LOADED_NS);
    if (conn->whole_ns == 0 || script_conn_now_ns(conn) < conn->whole_ns + after_ns)
        return;
    conn->whole_ns = 0;
    conn->n_sent = 0;
    conn->is_let_in = conn->is_unloaded = false;
    if (!has_shas(conn))
        conn->n_loads = 0;
}

enum script_conn_state script_conn_find(struct script_conn *conn)
{
    if (!conn->base.is_open && !open_lane(conn))
        return SCRIPT_CONN_NONE;
    struct lane *lane = conn->base.rider.lane;
    if (!lane_is_ready(lane) || lane_is_congested(lane)) {
        lane_wait(lane, &conn->base.rider);
        return being_opened(conn);
    }
    load_again(conn);
    if (!load_next(conn)) {
        conn->is_away = false;
        return SCRIPT_CONN_NONE;
    }
    if (!conn->is_let_in || (!has_shas(conn) && conn->whole_ns == 0))
        return being_opened(conn);
    return SCRIPT_CONN_READY;
}

void script_conn_give_up(struct script_conn *conn, bool is_owing)
{
    struct lane *lane = conn->base.rider.lane;
    circuit_open(&conn->circuit);
    conn->is_away = true;
    if (is_owing && conn->base.is_open)
        lane_fail(lane, END_LATE, "it does not answer within upstream-timeout");
}

uint64_t script_conn_probe(struct script_conn *conn)
{
    uint64_t now_ns = script_conn_now_ns(conn);
    if (conn->circuit.is_open)
        (void)script_conn_find(conn);
    uint64_t next_ns = circuit_probe_ns(&conn->circuit, now_ns);
    bool is_held_back = !conn->base.is_open && !lanes_are_up(conn->base.lanes);
    return next_ns != UINT64_MAX && is_held_back ? now_ns + LOOK_NS : next_ns;
}

struct slice script_conn_why_none(const struct script_conn *conn)
{
    if (conn->refusal != NULL)
        return slice_str(conn->refusal);
    return err_text(conn->circuit.is_open ? ERR_UPSTREAM_TIMEOUT : lanes_why_away(conn->base.lanes));
}

struct slice script_conn_sha(const struct script_conn *conn, enum script script)
{
    return slice_of(conn->shas[script], SCRIPT_SHA_LEN);
}

/* ASKING holds for the next request of the connection: nothing is sent between the two. */
bool script_conn_ask(struct script_conn *conn, bool is_asking, const char *request, size_t n)
{
    static const char asking[] = "*1\r\n$6\r\nASKING\r\n";
    if (is_asking && !send_call(conn, EFFECT_NONE, ASKING, asking, sizeof asking - 1))
        return false;
    return send_call(conn, EFFECT_NONE, 0, request, n);
}
