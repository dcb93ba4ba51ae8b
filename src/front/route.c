#include "front/route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "front/session.h"
#include "limit/gate.h"
#include "resp/argv.h"

#define UNKNOWN_SHOWN 128 /* bytes of an unknown command, and of its arguments, that Redis repeats */

struct request {
    const struct command *command;
    struct slice bytes; /* as multibulk; of a large request the beginning */
    struct slice name;
    uint32_t argc;
    bool is_large;
    bool is_refused; /* found on its way: nothing of it travels */
};

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

/* ---- which lane ---- */

enum finding { LANE_FOUND, LANE_NOT_YET, LANE_AWAY };

static enum finding wait_for_idle(struct client *client)
{
    client->rider.wants_idle = true;
    return LANE_NOT_YET;
}

static enum finding find_private(struct client *client, struct lane **found)
{
    struct rider *rider = &client->rider;
    if (client->has_own_lane && rider->lane != NULL) {
        *found = rider->lane;
        return LANE_FOUND;
    }
    if (rider->was_refused) {
        rider->was_refused = false;
        client->has_own_lane = false;
        return LANE_AWAY;
    }
    /* A client moves only when all its calls on the old lane are answered. */
    if (rider->in_flight > 0)
        return wait_for_idle(client);
    const struct lane_key key = {.protocol = 2};
    *found = lanes_private(&client->front->lanes, &key, rider);
    if (*found == NULL)
        return LANE_AWAY;
    client->has_own_lane = true;
    return LANE_FOUND;
}

static enum finding find_lane(struct client *client, bool must_be_private, struct lane **found)
{
    struct rider *rider = &client->rider;
    if (must_be_private) {
        enum finding finding = find_private(client, found);
        if (finding != LANE_FOUND)
            return finding;
    } else if (rider->in_flight > 0) {
        *found = rider->lane;
    } else {
        const struct lane_key key = {.protocol = 2};
        *found = lanes_shared(&client->front->lanes, &key);
        if (*found == NULL)
            return LANE_AWAY;
    }
    if (lane_is_ready(*found) && !lane_is_congested(*found))
        return LANE_FOUND;
    lane_wait(*found, rider);
    return LANE_NOT_YET;
}

/* ---- refusing ---- */

/* Redis is sure to refuse this, and so marks an open transaction as broken. */
static const char refused_upstream[] = "*1\r\n$12\r\nWEIR.REFUSED\r\n";

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
    if (client->in_multi) {
        struct call *call = lane_call_special(lane, &client->rider, FLOW_ONE, 1);
        if (call == NULL) {
            client_close(client);
            return ROUTE_STOP;
        }
        call->flags = CALL_MUTE;
        route_flush(client->front);
        lane_send(lane, refused_upstream, sizeof refused_upstream - 1);
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
    if (gate_pass(policy, client->subject, command, 1, front->now_ns, &verdict))
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

/* Inside MULTI all but these is queued, and answered by one reply whatever it is. */
static bool runs_inside_multi(enum effect effect)
{
    return effect == EFFECT_EXEC || effect == EFFECT_DISCARD || effect == EFFECT_MULTI || effect == EFFECT_WATCH ||
           effect == EFFECT_RESET;
}

static void follow_multi(struct client *client, const struct command *command, struct call *call)
{
    if (command->effect == EFFECT_MULTI && !client->in_multi) {
        client->in_multi = true;
        call->flags |= CALL_LOOK;
    } else if (command->effect == EFFECT_EXEC || command->effect == EFFECT_DISCARD ||
               command->effect == EFFECT_RESET) {
        client->in_multi = false;
        client->is_raw_after_exec = false;
    }
}

/* Whose answer decides who the client is: nothing is taken until it has come. */
static bool changes_identity(enum effect effect)
{
    return effect == EFFECT_AUTH || effect == EFFECT_HELLO || effect == EFFECT_NAME || effect == EFFECT_RESET;
}

static bool is_silenced(struct client *client)
{
    bool is_silenced = client->is_silent || client->skips_next;
    client->skips_next = false;
    return is_silenced;
}

static uint32_t replies_to(const struct request *request, enum flow flow)
{
    switch (flow) {
    case FLOW_SUBSCRIBE:
        return request->argc - 1;
    case FLOW_UNSUBSCRIBE:
        return request->argc - 1; /* 0: as many as there are subscriptions */
    default:
        return 1;
    }
}

/* A queued command whose effect on the replies begins with EXEC. */
static bool disturbs_exec(enum flow flow)
{
    return flow != FLOW_ONE && flow != FLOW_QUIT && flow != FLOW_DROP;
}

static enum flow flow_of(struct client *client, const struct request *request)
{
    enum flow flow = request->command->flow;
    if (client->in_multi && !runs_inside_multi(request->command->effect)) {
        client->is_raw_after_exec |= disturbs_exec(flow);
        return FLOW_ONE;
    }
    if (flow == FLOW_SUBSCRIBE && request->argc < 2)
        return FLOW_ONE; /* an error */
    return flow;
}

static enum route send_special(struct client *client, struct lane *lane, const struct request *request)
{
    const struct command *command = request->command;
    enum flow flow = flow_of(client, request);
    bool is_queued = client->in_multi && !runs_inside_multi(command->effect);
    struct call *call = lane_call_special(lane, &client->rider, flow, replies_to(request, flow));
    if (call == NULL)
        return out_of_memory(client);
    if (command->effect == EFFECT_RESET)
        client->is_silent = false; /* its own reply is heard */
    /* Confirmations are pushes to Redis, and come even so. */
    if (is_silenced(client) && flow != FLOW_SUBSCRIBE && flow != FLOW_UNSUBSCRIBE)
        call->flags |= CALL_MUTE;
    call->effect = command->effect;
    if (!is_queued && changes_identity(command->effect) && !request->is_large) {
        call->flags |= CALL_LOOK;
        client->is_held = true;
        session_note(client, command->effect, request->bytes);
    }
    follow_multi(client, command, call);
    client->is_blocking = command->blocks && !is_queued;
    route_flush(client->front);
    lane_send(lane, request->bytes.at, request->bytes.len);
    return ROUTE_TAKEN;
}

/*
 * From here on replies cannot be told apart, so none is counted: what a replica is sent, and what EXEC answers when
 * SUBSCRIBE or CLIENT REPLY was queued.
 */
static bool makes_raw(const struct client *client, const struct command *command)
{
    if (client->in_multi)
        return command->effect == EFFECT_EXEC && client->is_raw_after_exec;
    return command->flow == FLOW_RAW;
}

static enum route send_raw(struct client *client, struct lane *lane, const struct request *request)
{
    route_flush(client->front);
    if (!client->is_raw) {
        client->is_raw = true;
        client->in_multi = false;
        lane_set_raw(lane);
    }
    lane_send(lane, request->bytes.at, request->bytes.len);
    return ROUTE_TAKEN;
}

/*
 * CLIENT REPLY is kept here: on a lane every request is answered, and what the client does not want to hear is thrown
 * away. Redis still says whether the client may use the command, through CLIENT REPLY ON, which changes nothing.
 */
static const char reply_on[] = "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$2\r\nON\r\n";

static enum route send_client_reply(struct client *client, struct lane *lane, const struct request *request)
{
    struct argv_walk walk;
    struct slice mode = {"", 0};
    argv_walk_init(&walk, request->bytes);
    while (argv_next(&walk, &mode)) { /* the last argument */
    }
    bool is_on = slice_eq_nocase(mode, SLICE("on"));
    bool is_off = slice_eq_nocase(mode, SLICE("off"));
    bool is_skip = slice_eq_nocase(mode, SLICE("skip"));
    bool is_valid = request->argc == 3 && (is_on || is_off || is_skip);

    struct call *call = lane_call_special(lane, &client->rider, FLOW_ONE, 1);
    if (call == NULL)
        return out_of_memory(client);
    route_flush(client->front);
    if (!is_valid) {
        if (is_silenced(client))
            call->flags |= CALL_MUTE;
        lane_send(lane, request->bytes.at, request->bytes.len);
        return ROUTE_TAKEN;
    }
    if (!is_on)
        call->flags |= CALL_MUTE_UNLESS_ERROR;
    client->skips_next = is_skip && !client->is_silent;
    client->is_silent = is_off || (client->is_silent && !is_on);
    lane_send(lane, reply_on, sizeof reply_on - 1);
    return ROUTE_TAKEN;
}

static enum route send_on(struct client *client, struct lane *lane, const struct request *request)
{
    const struct command *command = request->command;
    bool is_plain = command->flow == FLOW_ONE && command->effect == EFFECT_NONE && !command->blocks;
    if (is_plain && !client->is_silent && !client->skips_next && !client->is_raw) {
        if (!lane_call(lane, &client->rider))
            return out_of_memory(client);
        client->is_blocking = false;
        send_run(client->front, lane, request->bytes);
        return ROUTE_TAKEN;
    }
    if (client->is_raw || makes_raw(client, command))
        return send_raw(client, lane, request);
    if (command->flow == FLOW_REPLY && !client->in_multi && !request->is_large)
        return send_client_reply(client, lane, request);
    return send_special(client, lane, request);
}

/* ---- commands that weir answers itself ---- */

static enum route quit(struct client *client)
{
    client_answer(client, SLICE("+OK\r\n"));
    client_leave(client);
    return ROUTE_STOP;
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
    memcpy(text + len, "\r\n", 2);
    return refuse(client, lane, request, slice_of(text, len + 2));
}

static bool has_nul(struct slice name)
{
    return memchr(name.at, '\0', name.len) != NULL;
}

/* ---- the whole way ---- */

static enum route route(struct client *client, struct request *request)
{
    const struct command *command = request->command;
    if (command->flow == FLOW_DROP) {
        client_close(client);
        return ROUTE_STOP;
    }
    if (command->flow == FLOW_QUIT && !client->is_raw)
        return quit(client);

    struct lane *lane = NULL;
    bool must_be_private = client->has_own_lane || client->front->settings->lanes_private ||
                           !command->is_shareable || request->is_large;
    switch (find_lane(client, must_be_private, &lane)) {
    case LANE_NOT_YET:
        return ROUTE_WAIT;
    case LANE_AWAY:
        return refuse(client, NULL, request, err_text(ERR_UPSTREAM_UNAVAILABLE));
    case LANE_FOUND:
        break;
    }
    if (!client->is_raw && makes_raw(client, command) && client->rider.in_flight > 0) {
        (void)wait_for_idle(client);
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
    request->command = find_command(front, request->name, located(scan, bytes, 1));
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
