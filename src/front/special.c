#include "front/special.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/num.h"
#include "front/place.h"
#include "front/route.h"
#include "front/session.h"
#include "resp/argv.h"

#define REQUEST(words) words, sizeof(words) - 1

static const char refused_request[] = "*1\r\n$12\r\nWEIR.REFUSED\r\n";
static const char reply_on_request[] = "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$2\r\nON\r\n";
static const char ping_request[] = "*1\r\n$4\r\nPING\r\n";
static const char whoami_request[] = "*2\r\n$3\r\nACL\r\n$6\r\nWHOAMI\r\n";
static const char no_name_request[] = "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$0\r\n\r\n";

/* An effect of weir's own request behind EXEC. */
#define EFFECT_WHOAMI 255

/* And of CLIENT REPLY, which is a flow: its argument says what is to hold. */
#define EFFECT_REPLY 254
enum reply_mode { REPLY_ON, REPLY_OFF, REPLY_SKIP };

/* Inside MULTI all but these is queued, and answered by one reply whatever it is. */
static bool is_queued(const struct client *client, enum effect effect)
{
    return client->in_multi && effect != EFFECT_EXEC && effect != EFFECT_DISCARD && effect != EFFECT_MULTI &&
           effect != EFFECT_WATCH && effect != EFFECT_RESET;
}

/* Whose answer decides who the client is or where it goes on: nothing is taken until it has come. */
static bool is_session(enum effect effect)
{
    return effect == EFFECT_AUTH || effect == EFFECT_HELLO || effect == EFFECT_NAME || effect == EFFECT_RESET ||
           effect == EFFECT_SELECT;
}

static bool makes_raw(const struct client *client, const struct request *request)
{
    if (client->in_multi)
        return request_effect(request) == EFFECT_EXEC && request->argc == 1 && client->is_raw_after_exec;
    return request->command->flow == FLOW_RAW;
}

bool special_is_plain(const struct client *client, const struct request *request)
{
    const struct command *command = request->command;
    return command->flow == FLOW_ONE && command->effect == EFFECT_NONE && !command->blocks && !command->pins &&
           command->id != 0 && !command->is_urgent && !client->is_silent && !client->skips_next && !client->is_raw;
}

bool special_must_wait(const struct client *client, const struct request *request)
{
    if (client->rider.in_flight == 0 || client->is_raw)
        return false;
    bool is_special = request->command->flow != FLOW_ONE || request_effect(request) != EFFECT_NONE;
    bool is_exec = request_effect(request) == EFFECT_EXEC;
    return makes_raw(client, request) || (client->is_multi_unsure && is_special && !is_exec);
}

/* CLIENT REPLY OFF, or SKIP just before. Asking uses the SKIP up. */
static bool is_silenced(struct client *client)
{
    bool is_silenced = client->is_silent || client->skips_next;
    client->skips_next = false;
    return is_silenced;
}

/* ---- sending ---- */

static struct call *send_muted(struct client *client, struct lane *lane, const char *request, size_t n)
{
    struct call *call = lane_call_special(lane, &client->rider, FLOW_ONE, 1);
    if (call == NULL)
        return NULL;
    call->flags = CALL_MUTE;
    route_flush(client->front);
    lane_send(lane, request, n);
    return call;
}

bool special_break_multi(struct client *client, struct lane *lane)
{
    return send_muted(client, lane, REQUEST(refused_request)) != NULL;
}

/*
 * From here on replies cannot be told apart, so none is counted: what a replica is sent, and what EXEC answers when
 * SUBSCRIBE or CLIENT REPLY was queued.
 */
static bool send_raw(struct client *client, struct lane *lane, const struct request *request)
{
    route_flush(client->front);
    if (!client->is_raw) {
        client->is_raw = true;
        client->in_multi = false;
        client->holds |= HOLD_PINNED;
        lane_set_raw(lane);
    }
    lane_send(lane, request->bytes.at, request->bytes.len);
    return true;
}

/*
 * CLIENT REPLY is kept here: on a lane every request is answered, and what the client does not want to hear is thrown
 * away. Redis still says whether the client may use the command, through CLIENT REPLY ON, which changes nothing.
 */
static bool send_client_reply(struct client *client, struct lane *lane, const struct request *request)
{
    struct slice mode = request->args[1];
    bool is_on = slice_eq_nocase(mode, SLICE("on"));
    bool is_off = slice_eq_nocase(mode, SLICE("off"));
    bool is_skip = slice_eq_nocase(mode, SLICE("skip"));
    struct call *call = lane_call_special(lane, &client->rider, FLOW_ONE, 1);
    if (call == NULL)
        return false;
    route_flush(client->front);
    if (request->argc != 3 || !(is_on || is_off || is_skip)) {
        if (is_silenced(client))
            call->flags |= CALL_MUTE;
        lane_send(lane, request->bytes.at, request->bytes.len);
        return true;
    }
    if (!is_on && !client->is_silent)
        call->flags |= CALL_MUTE_UNLESS_ERROR;
    else if (client->is_silent)
        call->flags |= is_on ? CALL_MUTE_ERROR : CALL_MUTE;
    call->flags |= CALL_LOOK;
    call->effect = EFFECT_REPLY;
    call->argument = is_on ? REPLY_ON : is_off ? REPLY_OFF : REPLY_SKIP;
    client->is_held = true; /* Redis may refuse it, and then what follows is heard */
    lane_send(lane, REQUEST(reply_on_request));
    return true;
}

/* What comes back, as far as it is more than one reply. */
static enum flow flow_of(struct client *client, const struct request *request, bool is_queued)
{
    enum flow flow = (enum flow)request->command->flow;
    if (is_queued) {
        /* Whom CLIENT REPLY silences already hears nothing of EXEC either. */
        bool is_heard = flow == FLOW_REPLY && !client->is_silent;
        client->is_raw_after_exec |=
            flow == FLOW_SUBSCRIBE || flow == FLOW_UNSUBSCRIBE || flow == FLOW_MONITOR || is_heard;
        return FLOW_ONE;
    }
    bool is_counted = flow == FLOW_UNSUBSCRIBE || flow == FLOW_MONITOR || (flow == FLOW_SUBSCRIBE && request->argc > 1);
    return is_counted ? flow : FLOW_ONE;
}

static uint32_t frames_of(const struct request *request, enum flow flow)
{
    bool is_list = flow == FLOW_SUBSCRIBE || flow == FLOW_UNSUBSCRIBE;
    return is_list ? request->argc - 1 : 1; /* UNSUBSCRIBE alone: 0, as many as there are subscriptions */
}

/* The number that the effect is about: a database, or on and off. */
static uint32_t argument_of(const struct request *request, enum effect effect)
{
    int64_t number;
    switch (effect) {
    case EFFECT_SELECT:
        return num_parse(request->args[0], &number) && number >= 0 && number <= INT32_MAX ? (uint32_t)number : 0;
    case EFFECT_TRACKING:
    case EFFECT_NO_EVICT:
    case EFFECT_NO_TOUCH:
        return slice_eq_nocase(request->args[1], SLICE("on"));
    default:
        return 0;
    }
}

/* What is queued takes effect at EXEC, among replies that nobody looks into. */
static void note_queued(struct client *client, const struct request *request, enum effect effect)
{
    if (request->command->pins || is_session(effect))
        client->holds |= HOLD_PINNED;
    if (effect == EFFECT_HELLO)
        client->rider.lane->is_unsure = true;
    if (effect == EFFECT_AUTH || effect == EFFECT_HELLO) {
        client->is_identity_queued = true;
        session_note(client, effect, true, request->bytes);
    }
}

static void note_sent(struct client *client, struct lane *lane, const struct request *request, struct call *call)
{
    enum effect effect = (enum effect)call->effect;
    if (request->command->pins)
        client->holds |= HOLD_PINNED;
    if (effect == EFFECT_MULTI && client->in_multi)
        call->effect = EFFECT_NONE; /* refused: they do not nest */
    if ((effect == EFFECT_EXEC || effect == EFFECT_DISCARD) && !client->in_multi)
        call->effect = EFFECT_NONE; /* refused too */
    if (call->effect != EFFECT_NONE || request->command->id == 0)
        call->flags |= CALL_LOOK;
    if (call->effect == EFFECT_MULTI || call->effect == EFFECT_DISCARD)
        client->is_multi_unsure = true;
    if (effect == EFFECT_MULTI)
        client->in_multi = true;
    else if (effect == EFFECT_EXEC || effect == EFFECT_DISCARD || effect == EFFECT_RESET)
        client->in_multi = client->is_raw_after_exec = false;
    if (effect == EFFECT_NAME)
        lane->has_name |= client->has_own_lane;
    if (client->is_urgent) {
        client->is_held = true; /* what follows belongs to its own database */
        call->flags |= CALL_LOOK;
    }
    if (is_session(effect)) {
        client->is_held = true;
        if (effect != EFFECT_SELECT && effect != EFFECT_RESET)
            session_note(client, effect, false, request->bytes);
    }
}

/* Is every byte of the name printable, as Redis wants it? */
static bool is_good_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.at[i] < '!' || name.at[i] > '~')
            return false;
    return true;
}

static void send_bytes(struct client *client, struct lane *lane, const struct request *request, enum effect effect)
{
    route_flush(client->front);
    /* Nobody's name belongs on a lane for all; Redis is asked for leave all the same. */
    if (effect == EFFECT_NAME && !client->has_own_lane && is_good_name(request->args[1]))
        lane_send(lane, REQUEST(no_name_request));
    else if (request->command->flow == FLOW_REPLY && client->is_silent)
        lane_send(lane, REQUEST(reply_on_request)); /* queued: no lane falls silent */
    else
        lane_send(lane, request->bytes.at, request->bytes.len);
}

/* Where EXEC could have changed who the client is, Redis is asked who it is now. */
static bool ask_who(struct client *client, struct lane *lane)
{
    if (!client->is_identity_queued)
        return true;
    struct call *call = send_muted(client, lane, REQUEST(whoami_request));
    if (call == NULL)
        return false;
    call->flags |= CALL_LOOK;
    call->effect = EFFECT_WHOAMI;
    client->is_identity_queued = false;
    client->is_held = true;
    return true;
}

static bool send_call(struct client *client, struct lane *lane, const struct request *request)
{
    enum effect effect = request_effect(request);
    bool is_later = is_queued(client, effect);
    /* WAIT asks how far its connection's last command has come; this makes that everything the client has written. */
    bool needs_ping = effect == EFFECT_WAIT && !is_later && !lane_is_subscribed(lane);
    if (needs_ping && send_muted(client, lane, REQUEST(ping_request)) == NULL)
        return false;

    enum flow flow = flow_of(client, request, is_later);
    struct call *call = lane_call_special(lane, &client->rider, (uint8_t)flow, frames_of(request, flow));
    if (call == NULL)
        return false;
    if (effect == EFFECT_RESET)
        client->is_silent = false; /* its own reply is heard */
    /* Confirmations are pushes to Redis, and come even to the silenced. */
    if (is_silenced(client) && flow != FLOW_SUBSCRIBE && flow != FLOW_UNSUBSCRIBE)
        call->flags |= CALL_MUTE;
    if (request->command->blocks && !is_later)
        call->flags |= CALL_MAY_WAIT;
    if (is_later) {
        note_queued(client, request, effect);
    } else {
        call->effect = (uint8_t)effect;
        call->argument = argument_of(request, effect);
        note_sent(client, lane, request, call);
    }
    send_bytes(client, lane, request, effect);
    return effect == EFFECT_EXEC ? ask_who(client, lane) : true;
}

bool special_send(struct client *client, struct lane *lane, const struct request *request)
{
    if (client->is_raw || makes_raw(client, request))
        return send_raw(client, lane, request);
    if (request->command->flow == FLOW_REPLY && !client->in_multi && !request->is_large)
        return send_client_reply(client, lane, request);
    return send_call(client, lane, request);
}

/* ---- being answered ---- */

static void hold(struct client *client, uint8_t what, bool is_on)
{
    client->holds = (uint8_t)(is_on ? client->holds | what : client->holds & ~what);
}

static void confirm_identity(struct client *client, const struct glimpse *whoami)
{
    client->is_held = false;
    link_wake(&client->link);
    if (session_confirm(client, whoami))
        return;
    char name[SESSION_TEXT];
    session_print(client, name);
    log_warn("client %s is closed: it changed its user inside MULTI, and Redis does not tell to whom", name);
    place_abandon(client);
    client_leave(client);
}

static void hold_reply_mode(struct client *client, enum reply_mode mode, bool is_ok)
{
    client->is_held = false;
    link_wake(&client->link);
    if (!is_ok)
        return;
    client->skips_next = mode == REPLY_SKIP && !client->is_silent;
    client->is_silent = mode == REPLY_OFF || (mode == REPLY_SKIP && client->is_silent);
}

/* Redis does not know the command: it has done nothing. Else weir does not know what it did. */
static void judge_unknown(struct client *client, const struct glimpse *reply)
{
    static const struct slice harmless[] = {{"-ERR unknown ", 13}, {"-NOAUTH", 7}, {"-NOPERM", 7}, {"+QUEUED", 7}};
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++)
        if (glimpse_starts(reply, harmless[i]))
            return;
    client->holds |= HOLD_PINNED;
}

static void end_urgent(struct client *client)
{
    client->is_held = false;
    link_wake(&client->link);
}

void special_answered(struct client *client, const struct call *call, const struct glimpse *reply)
{
    bool is_ok = glimpse_type(reply) != '-';
    switch (call->effect) {
    case EFFECT_NONE:
        if (client->is_urgent)
            end_urgent(client);
        else
            judge_unknown(client, reply);
        break;
    case EFFECT_WHOAMI:
        confirm_identity(client, reply);
        break;
    case EFFECT_REPLY:
        hold_reply_mode(client, (enum reply_mode)call->argument, is_ok);
        break;
    case EFFECT_MULTI:
        client->is_multi_unsure = false;
        client->in_multi &= is_ok;
        break;
    case EFFECT_EXEC:
        hold(client, HOLD_WATCH, false); /* however it ends */
        break;
    case EFFECT_DISCARD:
        client->is_multi_unsure = false;
        client->in_multi |= !is_ok;
        client->is_identity_queued &= !is_ok;
        hold(client, HOLD_WATCH, !is_ok && (client->holds & HOLD_WATCH) != 0);
        break;
    case EFFECT_WATCH:
        hold(client, HOLD_WATCH, is_ok || (client->holds & HOLD_WATCH) != 0);
        break;
    case EFFECT_UNWATCH:
        hold(client, HOLD_WATCH, !is_ok && (client->holds & HOLD_WATCH) != 0);
        break;
    case EFFECT_TRACKING:
        if (is_ok)
            hold(client, HOLD_TRACKING, call->argument != 0);
        break;
    case EFFECT_NO_EVICT:
        if (is_ok)
            hold(client, HOLD_NO_EVICT, call->argument != 0);
        break;
    case EFFECT_NO_TOUCH:
        if (is_ok)
            hold(client, HOLD_NO_TOUCH, call->argument != 0);
        break;
    case EFFECT_RESET:
        if (is_ok)
            hold(client, HOLD_WATCH | HOLD_TRACKING | HOLD_NO_TOUCH, false);
        /* fall through */
    case EFFECT_AUTH:
    case EFFECT_HELLO:
    case EFFECT_SELECT:
    case EFFECT_NAME:
        session_answered(client, (enum effect)call->effect, call->argument, reply);
        client->is_held = false;
        link_wake(&client->link);
        break;
    default:
        break;
    }
}
