#include "front/route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "front/place.h"
#include "front/request.h"
#include "front/session.h"
#include "front/special.h"
#include "limit/gate.h"
#include "resp/argv.h"
#include "resp/emit.h"

#define UNKNOWN_SHOWN 128 /* bytes of an unknown command, and of its arguments, that Redis repeats */

void route_flush(struct front *front)
{
    if (front->run.lane == NULL)
        return;
    lane_send(front->run.lane, front->run.at, front->run.len);
    front->run.lane = NULL;
}

/* Requests that follow one another in memory become one piece. */
static void send_run(struct front *front, struct lane *lane, struct slice bytes)
{
    struct run *run = &front->run;
    if (run->lane == lane && run->at + run->len == bytes.at) {
        run->len += bytes.len;
        return;
    }
    route_flush(front);
    *run = (struct run){lane, bytes.at, bytes.len};
}

/* ---- refusing ---- */

/*
 * Answer with an error in the request's place. Inside MULTI something must fail in Redis too, or EXEC would run a
 * transaction with a hole: its reply is thrown away, ours follows.
 */
static enum route refuse(struct client *client, struct lane *lane, struct request *request, struct slice reply)
{
    request->is_refused = true;
    if (client->is_raw) {
        char name[SESSION_TEXT];
        session_print(client, name);
        log_warn("client %s is beyond its limits and closed: an error has no place among its replies", name);
        client_close(client);
        return ROUTE_STOP;
    }
    if (client->in_multi && lane != NULL && !special_break_multi(client, lane)) {
        client_close(client);
        return ROUTE_STOP;
    }
    client_answer(client, reply);
    client->skips_next = false;
    return client_is_closed(client) ? ROUTE_STOP : ROUTE_TAKEN;
}

static bool passes_gate(struct client *client, const struct command *command, char *refusal, size_t *refusal_len)
{
    if (client->subject == NULL)
        return true;
    struct front *front = client->front;
    const struct policy *policy = policies_at(front->policies, client->policy);
    struct verdict verdict;
    if (gate_pass(policy, client->subject, command, 1, front->loop->now_ns, &verdict))
        return true;
    *refusal_len = gate_refusal(refusal, front->settings->error_prefix, &verdict);
    return false;
}

/* ---- sending ---- */

static enum route out_of_memory(struct client *client)
{
    client_close(client);
    return ROUTE_STOP;
}

static enum route send_on(struct client *client, struct lane *lane, const struct request *request)
{
    if (!special_is_plain(client, request))
        return special_send(client, lane, request) ? ROUTE_TAKEN : out_of_memory(client);
    if (lane_has_few_calls(&client->rider, SHARED_CALLS_FEW))
        client->rider.sent_bytes = 0;
    if (!lane_call(lane, &client->rider))
        return out_of_memory(client);
    client->rider.sent_bytes += (uint32_t)request->bytes.len;
    send_run(client->front, lane, request->bytes);
    return ROUTE_TAKEN;
}

/* ---- commands that weir answers itself ---- */

static enum route answer(struct client *client, struct slice reply)
{
    client_answer(client, reply);
    client->skips_next = false;
    return client_is_closed(client) ? ROUTE_STOP : ROUTE_TAKEN;
}

static enum route quit(struct client *client)
{
    client_answer(client, SLICE("+OK\r\n"));
    client_leave(client);
    return ROUTE_STOP;
}

/* On a shared lane there is nothing to reset. */
static enum route reset(struct client *client)
{
    client->is_silent = false;
    session_reset(client);
    return answer(client, SLICE("+RESET\r\n"));
}

/* No name is on a shared lane. */
static enum route get_name(struct client *client)
{
    struct slice name = session_name(client);
    struct slice none = session_protocol(client) == 3 ? SLICE("_\r\n") : SLICE("$-1\r\n");
    if (name.len == 0)
        return answer(client, none);
    char header[EMIT_HEADER_MAX];
    client_answer(client, slice_of(header, emit_header(header, '$', (int64_t)name.len)));
    client_answer(client, name);
    return answer(client, SLICE("\r\n"));
}

/* What concerns the session alone, for a client that has no lane of its own. */
static bool is_ours(const struct client *client, enum effect effect)
{
    if (client->has_own_lane || client->front->settings->lanes_private)
        return false;
    return effect == EFFECT_RESET || (effect == EFFECT_GETNAME && !session_is_anonymous(client));
}

static size_t append_printable(char *out, struct slice text, size_t max)
{
    size_t n = text.len < max ? text.len : max;
    size_t len = 0;
    for (; len < n && text.at[len] != '\0'; len++)
        out[len] = text.at[len] == '\r' || text.at[len] == '\n' ? ' ' : text.at[len];
    return len;
}

/*
 * Redis finds commands by a hash of the whole name but compares up to a NUL, so that "GET\0x" can happen to run as GET:
 * such a name is answered here, as Redis answers a name that it does not find.
 */
static enum route unknown_command(struct client *client, struct lane *lane, struct request *request)
{
    char text[3 * UNKNOWN_SHOWN + 128];
    size_t len = (size_t)snprintf(text, sizeof text, "-ERR unknown command '");
    len += append_printable(text + len, request->name, UNKNOWN_SHOWN);
    len += (size_t)snprintf(text + len, sizeof text - len, "', with args beginning with: ");
    struct argv_walk walk;
    struct slice arg;
    argv_walk_init(&walk, request->bytes);
    size_t shown = 0;
    bool is_first = true;
    while (!request->is_large && shown < UNKNOWN_SHOWN && argv_next(&walk, &arg)) {
        if (!is_first) {
            size_t start = len;
            text[len++] = '\'';
            len += append_printable(text + len, arg, UNKNOWN_SHOWN - shown);
            text[len++] = '\'';
            text[len++] = ' ';
            shown += len - start;
        }
        is_first = false;
    }
    text[len++] = '\r';
    text[len++] = '\n';
    return refuse(client, lane, request, slice_of(text, len));
}

static bool has_nul(struct slice name)
{
    return memchr(name.at, '\0', name.len) != NULL;
}

/* ---- the whole way ---- */

/* Redis' own words if it has said any. */
static struct slice why_placeless(const struct client *client)
{
    return client->refusal != NULL ? slice_str(client->refusal) : err_text(lanes_why_none(&client->front->lanes));
}

/* As Redis does after an error inside MULTI: nothing is carried out, and EXEC says so. */
static enum route answer_broken_multi(struct client *client, struct request *request)
{
    request->is_refused = true;
    switch (request_effect(request)) {
    case EFFECT_EXEC:
        client->is_multi_broken = false;
        return answer(client, SLICE("-EXECABORT Transaction discarded because of previous errors.\r\n"));
    case EFFECT_DISCARD:
        client->is_multi_broken = false;
        return answer(client, SLICE("+OK\r\n"));
    case EFFECT_MULTI:
        return answer(client, SLICE("-ERR MULTI calls can not be nested\r\n"));
    default:
        return answer(client, why_placeless(client));
    }
}

static enum route refuse_placeless(struct client *client, struct request *request)
{
    client->is_multi_broken = request_effect(request) == EFFECT_MULTI;
    client->was_refused = false;
    enum route result = refuse(client, NULL, request, why_placeless(client));
    if (!client->is_multi_broken) {
        free(client->refusal);
        client->refusal = NULL;
    }
    return result;
}

static enum route route(struct client *client, struct request *request)
{
    const struct command *command = request->command;
    if (command->flow == FLOW_DROP) {
        client_close(client);
        return ROUTE_STOP;
    }
    if (command->flow == FLOW_QUIT && !client->is_raw)
        return quit(client);
    enum effect effect = request_effect(request);
    if (client->is_multi_broken && effect != EFFECT_RESET)
        return answer_broken_multi(client, request);
    client->is_multi_broken = false;
    if (effect != EFFECT_NONE && is_ours(client, effect))
        return effect == EFFECT_RESET ? reset(client) : get_name(client);

    struct lane *lane = NULL;
    switch (place_find(client, request, &lane)) {
    case PLACE_NOT_YET:
        return ROUTE_WAIT;
    case PLACE_NONE:
        return refuse_placeless(client, request);
    case PLACE_FOUND:
        break;
    }
    if (special_must_wait(client, request)) {
        place_wait_for_idle(client);
        return ROUTE_WAIT;
    }
    if (has_nul(request->name))
        return unknown_command(client, lane, request);

    char refusal[GATE_REFUSAL_ROOM];
    size_t refusal_len;
    if (!passes_gate(client, command, refusal, &refusal_len))
        return refuse(client, lane, request, slice_of(refusal, refusal_len));
    return send_on(client, lane, request);
}

static struct slice located(const struct request_scan *scan, struct slice bytes, uint32_t i)
{
    if (i >= scan->argc || (uint64_t)scan->args[i].off + scan->args[i].len > bytes.len)
        return slice_of("", 0);
    return slice_of(bytes.at + scan->args[i].off, scan->args[i].len);
}

static const struct command *find_command(const struct front *front, struct slice name, struct slice sub)
{
    const struct command *command = command_find(front->commands, name, sub);
    if (command->id != 0 || !has_nul(name))
        return command;
    /* Redis recognizes POST and Host: up to a NUL. */
    const struct command *cut = command_find(front->commands, slice_str(name.at), slice_of("", 0));
    return cut->flow == FLOW_DROP ? cut : command;
}

static void describe(struct request *request, const struct front *front, const struct request_scan *scan,
                     struct slice bytes)
{
    request->bytes = bytes;
    request->argc = scan->argc;
    request->name = located(scan, bytes, 0);
    request->args[0] = located(scan, bytes, 1);
    request->args[1] = located(scan, bytes, 2);
    request->command = find_command(front, request->name, request->args[0]);
}

/* An inline request travels as multibulk. */
static enum route route_inline(struct client *client, struct slice line)
{
    char *out = malloc(ARGV_INLINE_ROOM(line.len));
    if (out == NULL)
        return out_of_memory(client);
    size_t len;
    size_t used;
    struct request_scan scan = {0};
    enum route result = ROUTE_TAKEN;
    if (!argv_split(line, out, &len)) {
        client_answer(client, err_text(ERR_PROTO_UNBALANCED_QUOTES));
        client_leave(client);
        result = ROUTE_STOP;
    } else if (len > 0 && request_scan(&scan, &request_limits_normal, out, len, &used) == SCAN_FRAME) {
        struct request request = {0};
        describe(&request, client->front, &scan, slice_of(out, len));
        result = route(client, &request);
    }
    route_flush(client->front); /* `out` goes */
    free(out);
    return result;
}

enum route route_request(struct client *client, const struct request_scan *scan, struct slice bytes)
{
    if (scan->is_inline)
        return route_inline(client, bytes);
    if (scan->argc == 0)
        return ROUTE_TAKEN;
    struct request request = {0};
    describe(&request, client->front, scan, bytes);
    return route(client, &request);
}

enum route route_large(struct client *client, const struct request_scan *scan, struct slice bytes)
{
    struct passage *passage = malloc(sizeof *passage);
    if (passage == NULL)
        return out_of_memory(client);
    client->heavy_until_ns = client->front->loop->now_ns + HEAVY_NS;
    struct request request = {.is_large = true};
    describe(&request, client->front, scan, bytes);
    enum route result = route(client, &request);
    route_flush(client->front);
    if (result != ROUTE_TAKEN) {
        free(passage);
        return result;
    }
    *passage = (struct passage){.scan = *scan, .is_refused = request.is_refused};
    client->passage = passage;
    return ROUTE_TAKEN;
}
