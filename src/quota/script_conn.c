#include "quota/script_conn.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "limit/command.h"
#include "resp/emit.h"

#define AGAIN_NS (500 * NS_PER_MS) /* Redis lets weir in no sooner for being asked more often */
#define LOST_MAX 2                 /* in a row, while scripts are loaded: somebody may be killing connections */
#define REPLY_MAX (4 << 20)        /* far more than any answer to what is asked */

/* What a call was, for on_answer: EFFECT_* are not used on this lane. */
enum { ASKED, LOADED };

/* It goes alone: from who is not let in Redis takes no long one, and closes the connection instead of saying why. */
#define FIRST 0

static struct script_conn *line_of(struct rider *rider)
{
    return container_of(rider, struct script_conn, rider);
}

/* ---- replies ---- */

static void on_bytes(struct rider *rider, const char *data, size_t n)
{
    struct script_conn *line = line_of(rider);
    if (line->reply.len + n > REPLY_MAX)
        lane_fail(rider->lane, END_LOST, "its answer to a script is too long");
    else if (!bytes_add(&line->reply, slice_of(data, n), REPLY_MAX))
        lane_fail(rider->lane, END_LOST, "out of memory");
}

static void keep_refusal(struct script_conn *line, struct slice reply)
{
    free(line->refusal);
    line->refusal = reply.len > 0 && reply.at[0] == '-' ? strndup(reply.at, reply.len) : NULL;
}

static bool is_hex(struct slice text)
{
    size_t i = 0;
    while (i < text.len && isxdigit((unsigned char)text.at[i]))
        i++;
    return i == text.len;
}

/* "$40\r\n<sha>\r\n", or why not: NOAUTH, BUSY, LOADING. */
static bool take_sha(struct script_conn *line, unsigned script, struct slice reply)
{
    if (reply.len != SCRIPT_SHA_LEN + 7 || memcmp(reply.at, "$40\r\n", 5) != 0 ||
        !is_hex(slice_of(reply.at + 5, SCRIPT_SHA_LEN)))
        return false;
    memcpy(line->shas[script], reply.at + 5, SCRIPT_SHA_LEN);
    return true;
}

static bool has_shas(const struct script_conn *line)
{
    return line->n_loads == SCRIPT_COUNT;
}

/* Whoever needs it next begins with the first script again. */
static void refuse(struct script_conn *line)
{
    line->n_sent = 0;
    line->is_let_in = line->is_unloaded = false;
    if (!has_shas(line))
        line->n_loads = 0;
    line->ops->on_unloaded(line);
}

/* Whether Redis lets weir in, and takes scripts. */
static void keep_first(struct script_conn *line, struct slice reply)
{
    keep_refusal(line, reply);
    line->is_let_in = take_sha(line, FIRST, reply);
    if (!line->is_let_in) {
        refuse(line);
        return;
    }
    if (has_shas(line))
        line->n_lost = 0;
    else
        line->n_loads = 1;
    script_conn_wake(line);
}

/* Once they are known it does not matter: NOSCRIPT is repaired. */
static void keep_sha(struct script_conn *line, unsigned script, struct slice reply)
{
    if (has_shas(line))
        return;
    line->n_loads++;
    line->is_unloaded |= !take_sha(line, script, reply);
    if (reply.len > 0 && reply.at[0] == '-')
        keep_refusal(line, reply);
    if (!has_shas(line))
        return;
    if (line->is_unloaded) {
        line->n_loads = 0;
        refuse(line);
        return;
    }
    line->n_lost = 0;
    script_conn_wake(line);
}

static void on_answer(struct rider *rider, const struct call *call, const struct glimpse *glimpse)
{
    struct script_conn *line = line_of(rider);
    struct slice reply = bytes_slice(&line->reply);
    (void)glimpse;
    line->reply.len = 0;
    if (call->effect == LOADED && call->argument == FIRST)
        keep_first(line, reply);
    else if (call->effect == LOADED)
        keep_sha(line, call->argument, reply);
    else
        line->ops->on_reply(line, reply);
}

/* ---- coming and going ---- */

static void forget_lane(struct script_conn *line)
{
    line->is_open = line->is_let_in = false;
    line->n_sent = 0;
    line->rider.lane = NULL;
    line->rider.in_flight = 0;
    line->reply.len = 0;
    line->is_unloaded = false;
    if (!has_shas(line))
        line->n_loads = 0;
}

/* Again and again before the scripts are there: who waits for them is not to wait for ever. */
static void on_lost(struct rider *rider)
{
    struct script_conn *line = line_of(rider);
    bool is_loading = !has_shas(line) || (line->n_sent > 0 && !line->is_let_in);
    bool is_hopeless = is_loading && ++line->n_lost > LOST_MAX;
    forget_lane(line);
    if (is_hopeless) {
        line->refused_ns = line->lanes->loop->now_ns;
        line->ops->on_unloaded(line);
    }
    keep_refusal(line, SLICE("")); /* from now on it is away, whatever was said before */
    line->ops->on_lost(line);
}

static void on_refused(struct rider *rider, struct slice reply)
{
    struct script_conn *line = line_of(rider);
    forget_lane(line);
    keep_refusal(line, reply);
    if (line->refusal != NULL)
        line->ops->on_unloaded(line);
    line->refused_ns = line->lanes->loop->now_ns;
}

static const struct rider_ops rider_ops = {
    .on_bytes = on_bytes,
    .on_answer = on_answer,
    .on_refused = on_refused,
    .on_lost = on_lost,
    .to_link = (ptrdiff_t)offsetof(struct script_conn, hollow) - (ptrdiff_t)offsetof(struct script_conn, rider),
};

static void on_wake(struct link *link)
{
    struct script_conn *line = container_of(link, struct script_conn, hollow);
    line->ops->on_change(line);
}

static const struct link_ops link_ops = {.on_wake = on_wake};

void script_conn_init(struct script_conn *line, struct lanes *lanes, struct login *login,
                      const struct script_conn_ops *ops)
{
    *line = (struct script_conn){.ops = ops, .lanes = lanes, .key = {.protocol = 2, .login = login}};
    line->rider.ops = &rider_ops;
    list_init(&line->rider.waiting);
    link_init_hollow(&line->hollow, lanes->loop, &link_ops);
}

void script_conn_fini(struct script_conn *line)
{
    list_take(&line->rider.waiting);
    list_take(&line->hollow.woken);
    if (line->rider.lane != NULL)
        lane_forget(line->rider.lane, &line->rider);
    forget_lane(line);
    bytes_fini(&line->reply);
    free(line->refusal);
    login_put(line->key.login);
}

void script_conn_wake(struct script_conn *line)
{
    link_wake(&line->hollow);
}

/* ---- asking ---- */

static bool send_call(struct script_conn *line, uint8_t effect, unsigned argument, const char *request, size_t n)
{
    struct call *call = lane_call_special(line->rider.lane, &line->rider, FLOW_ONE, 1, 0);
    if (call == NULL)
        return false;
    call->flags = CALL_LOOK;
    call->effect = effect;
    call->argument = argument;
    lane_send(line->rider.lane, &line->rider, request, n);
    return true;
}

static bool load(struct script_conn *line, enum script script)
{
    const struct slice words[] = {SLICE("SCRIPT"), SLICE("LOAD"), script_source(script)};
    char *request = malloc(words[2].len + 4 * EMIT_HEADER_MAX + 32);
    if (request == NULL)
        return false;
    size_t n = emit_array(request, words, 3);
    bool is_sent = send_call(line, LOADED, script, request, n);
    free(request);
    return is_sent;
}

/* The first by itself, and the others once it has been taken. */
static bool load_next(struct script_conn *line)
{
    unsigned end = line->is_let_in ? SCRIPT_COUNT : FIRST + 1;
    while (line->n_sent < end) {
        if (!load(line, (enum script)line->n_sent))
            return false;
        line->n_sent++;
    }
    return true;
}

enum script_conn_state script_conn_find(struct script_conn *line)
{
    if (!line->is_open) {
        if (line->refused_ns != 0 && line->lanes->loop->now_ns < line->refused_ns + AGAIN_NS)
            return SCRIPT_CONN_NONE;
        keep_refusal(line, SLICE("")); /* of another connection */
        line->key.epoch = node_epoch(line->lanes->node);
        line->is_open = lanes_open_own(line->lanes, &line->key, LANE_SCRIPT, &line->rider) != NULL;
        if (!line->is_open)
            return SCRIPT_CONN_NONE;
    }
    struct lane *lane = line->rider.lane;
    if (!lane_is_ready(lane) || lane_is_congested(lane)) {
        lane_wait(lane, &line->rider);
        return SCRIPT_CONN_NOT_YET;
    }
    if (!load_next(line))
        return SCRIPT_CONN_NONE;
    return line->is_let_in && has_shas(line) ? SCRIPT_CONN_READY : SCRIPT_CONN_NOT_YET;
}

struct slice script_conn_why_none(const struct script_conn *line)
{
    return line->refusal != NULL ? slice_str(line->refusal) : err_text(lanes_why_none(line->lanes));
}

struct slice script_conn_sha(const struct script_conn *line, enum script script)
{
    return slice_of(line->shas[script], SCRIPT_SHA_LEN);
}

bool script_conn_ask(struct script_conn *line, const char *request, size_t n)
{
    return send_call(line, ASKED, 0, request, n);
}
