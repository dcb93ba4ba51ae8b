#include "front/session/stateful_send.h"

#include <stdlib.h>

#include "front/client/charge.h"
#include "front/cluster/carried.h"
#include "front/cluster/gather.h"
#include "front/route/fair_share.h"
#include "front/client/session.h"
#include "front/session/setinfo.h"
#include "front/session/stateful.h"
#include "front/client/timing.h"
#include "front/session/wait_coverage.h"

#define REQUEST(words) words, sizeof(words) - 1

static const char refused_request[] = "*1\r\n$12\r\nWEIR.REFUSED\r\n";
static const char reply_on_request[] = "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$2\r\nON\r\n";

/*
 * True if the request is MONITOR on a lane that monitors already. Redis does not answer a permitted
 * second MONITOR, and refuses one without permission. weir cannot know the permission. A MONITOR
 * that Redis always refuses is counted like any other request.
 */
static bool is_monitor_again(const struct client *client, const struct request *request)
{
    const struct lane *lane = client_has_own_lane(client) ? client->lane_user.lane : NULL;
    if (request->command->flow != FLOW_MONITOR || lane == NULL || !lane_is_monitoring(lane))
        return false;
    return request->argc == 1 && !(lane_is_subscribed(lane) && lane->key.protocol != 3);
}

static bool makes_passthrough(const struct client *client, const struct request *request)
{
    if (transaction_is_open(&client->transaction))
        return request_effect(request) == EFFECT_EXEC && request->argc == 1 &&
               client->transaction.is_passthrough;
    return request->command->flow == FLOW_PASSTHROUGH || is_monitor_again(client, request);
}

bool stateful_is_plain(const struct client *client, const struct request *request)
{
    const struct command *command = request->command;
    return command->flow == FLOW_ONE && command->effect == EFFECT_NONE && !command->blocks &&
           !command->pins && command->id != 0 && !command->is_urgent &&
           !reply_mode_is_deaf(&client->reply_mode) && !pin_has(client, PIN_PASSTHROUGH) &&
           !coverage_is_sought(client);
}

static bool hears(const struct client *client)
{
    return !transaction_is_open(&client->transaction) && !reply_mode_is_deaf(&client->reply_mode);
}

/* True if weir changes the answer. */
static bool must_gather(const struct client *client, const struct request *request)
{
    return gather_is_due(client, request_effect(request)) && hears(client);
}

/* True if weir must read the answer. */
static bool is_looked_at(const struct client *client, const struct request *request)
{
    return !transaction_is_open(&client->transaction) &&
           (request->command->flow != FLOW_ONE || request_effect(request) != EFFECT_NONE ||
            request->command->id == 0);
}

bool stateful_must_wait(const struct client *client, const struct request *request)
{
    if (client->lane_user.in_flight == 0 || pin_has(client, PIN_PASSTHROUGH))
        return false;
    if (must_gather(client, request) || coverage_must_wait(client, request))
        return true;
    if (client_has_own_lane(client) && lane_must_settle(client->lane_user.lane) &&
        is_looked_at(client, request))
        return true;
    if (request->command->flow == FLOW_MONITOR && !transaction_is_open(&client->transaction))
        return true; /* a second MONITOR may not be answered */
    enum effect effect = request_effect(request);
    bool is_stateful = request->command->flow != FLOW_ONE || effect != EFFECT_NONE;
    return makes_passthrough(client, request) ||
           (is_stateful && transaction_must_settle(&client->transaction, effect));
}

/* ---- sending ---- */

static struct call *send_muted(struct client *client, struct lane *lane, const char *request,
                               size_t n)
{
    struct call *call = lane_call_flow(lane, &client->lane_user, FLOW_ONE, 1, 0);
    if (call == NULL)
        return NULL;
    call->flags = CALL_MUTE;
    call->arrived_ns = 0;
    lane_send(lane, &client->lane_user, request, n);
    return call;
}

bool stateful_break_multi(struct client *client, struct lane *lane)
{
    if (!client_is_on_cluster(client))
        return send_muted(client, lane, REQUEST(refused_request)) != NULL;
    carried_void(client);
    return true;
}

/*
 * Sends a request on a passthrough lane. weir does not count replies on a passthrough lane: a
 * replica's stream, or the replies after an EXEC with SUBSCRIBE, MONITOR, CLIENT REPLY or SYNC.
 * CLIENT TRACKING is changed as on other lanes, so that its id cannot name another application's
 * lane.
 */
static bool send_passthrough(struct client *client, struct lane *lane,
                             const struct request *request)
{
    if (!pin_has(client, PIN_PASSTHROUGH)) {
        pin_add(client, PIN_PASSTHROUGH);
        transaction_drop(&client->transaction);
        lane_pass_through(lane);
    }
    if (request_effect(request) == EFFECT_TRACKING)
        return stateful_send_tracking(client, lane, request);
    lane_send(lane, &client->lane_user, request->bytes.at, request->bytes.len);
    return true;
}

/*
 * weir keeps the state of CLIENT REPLY. Redis answers every request on a lane, and weir discards
 * the replies that the client has turned off. Redis still decides whether the client may use the
 * command: weir sends CLIENT REPLY ON, which changes nothing.
 */
static bool send_client_reply(struct client *client, struct lane *lane,
                              const struct request *request)
{
    /* flags of the call, by enum word_heard */
    static const uint8_t flags[] = {0, CALL_MUTE, CALL_MUTE_ERROR, CALL_MUTE_UNLESS_ERROR};
    enum reply_word word = request_reply_word(request);
    uint64_t tag = timing_tag(client, request->command, request->argc);
    if (lane->keeps && !client_keep(client, request->command, slice_of("", 0), 1))
        return false;
    struct call *call = lane_call_flow(lane, &client->lane_user, FLOW_ONE, 1, tag);
    if (call == NULL)
        return false;
    if (word == REPLY_NONE) {
        if (reply_mode_take(&client->reply_mode))
            call->flags |= CALL_MUTE;
        lane_send(lane, &client->lane_user, request->bytes.at, request->bytes.len);
        return true;
    }
    call->flags |= CALL_LOOK | flags[reply_mode_hears(&client->reply_mode, word)];
    call->effect = EFFECT_REPLY;
    call->argument = word;
    /* if Redis refuses CLIENT REPLY, the client receives the next replies */
    client_wait(client, WAIT_ANSWER);
    lane_send(lane, &client->lane_user, REQUEST(reply_on_request));
    return true;
}

/* True if Redis' replies can no longer be counted after EXEC has run the request. */
static bool ends_counting(const struct request *request)
{
    enum flow flow = (enum flow)request->command->flow;
    return flow == FLOW_SUBSCRIBE || flow == FLOW_UNSUBSCRIBE || flow == FLOW_MONITOR ||
           flow == FLOW_PASSTHROUGH || request_reply_word(request) != REPLY_NONE;
}

/* Returns the kind of reply; FLOW_ONE: one frame. */
static enum flow flow_of(const struct request *request)
{
    enum flow flow = (enum flow)request->command->flow;
    bool is_counted = flow == FLOW_UNSUBSCRIBE || flow == FLOW_MONITOR ||
                      (flow == FLOW_SUBSCRIBE && request->argc > 1);
    return is_counted ? flow : FLOW_ONE;
}

static uint32_t frames_of(const struct request *request, enum flow flow)
{
    bool is_list = flow == FLOW_SUBSCRIBE || flow == FLOW_UNSUBSCRIBE;
    /* without names 0: UNSUBSCRIBE is then answered by one frame for each subscription */
    return is_list ? request->argc - 1 : 1;
}

/*
 * Records a queued request. EXEC's reply is not parsed. A queued command that changes the session
 * pins the client. A queued command with uncountable replies makes the lane passthrough at EXEC.
 */
static void note_queued(const struct sending *s, const struct stateful *row)
{
    const struct command *command = s->request->command;
    if (command->id == 0)
        s->call->flags |= CALL_LOOK; /* the answer tells whether Redis knows the command */
    if (command->pins)
        pin_add(s->client, PIN_ID);
    if (row->pin != 0)
        pin_add(s->client, (enum pin)row->pin);
    if (row->queued != NULL)
        row->queued(s);
    if (ends_counting(s->request))
        s->client->transaction.is_passthrough = true;
}

static void note_sent(const struct sending *s)
{
    struct client *client = s->client;
    struct call *call = s->call;
    const struct command *command = s->request->command;
    call->effect = (uint8_t)transaction_send(&client->transaction, request_effect(s->request));
    call->argument = 0;
    if (command->pins)
        pin_add(client, PIN_ID);
    coverage_note_sent(client, s->request, call);
    if (call->effect == EFFECT_NONE && (call->flags & CALL_MUTE_ERROR) != 0 && command->id != 0 &&
        !client_is_urgent(client))
        call->effect = EFFECT_UNHEARD;
    if (call->effect != EFFECT_NONE || command->id == 0 || client_is_urgent(client))
        call->flags |= CALL_LOOK;
    const struct stateful *row = stateful_row((enum effect)call->effect);
    if (row->sent != NULL)
        row->sent(s);
    /* after an urgent request the next request belongs to the client's own database */
    if (client_is_urgent(client))
        client_wait(client, WAIT_ANSWER);
}

static bool stateful_send_send_call(struct client *client, struct lane *lane,
                                    const struct request *request)
{
    struct sending s = {client, lane, request, NULL};
    enum effect effect = request_effect(request);
    const struct stateful *row = stateful_row(effect);
    bool is_queued = transaction_queues(&client->transaction, effect);
    if (client_has_own_lane(client) && is_looked_at(client, request) &&
        !lane_vouch(lane, &client->lane_user))
        return false;
    if (client_has_own_lane(client) && !is_queued && setinfo_is_asked(request) &&
        !setinfo_tell(client, lane))
        return false;
    if (!is_queued && row->prepare != NULL && !row->prepare(&s))
        return false;
    enum flow flow = is_queued ? FLOW_ONE : flow_of(request);
    uint64_t tag = timing_tag(client, request->command, request->argc);
    if (lane->keeps && !client_keep(client, request->command, request_kept_bytes(request), 1))
        return false;
    struct call *call =
        lane_call_flow(lane, &client->lane_user, (uint8_t)flow, frames_of(request, flow), tag);
    if (call == NULL)
        return false;
    s.call = call;
    call->counted = request->counted;
    /*
     * Redis sends confirmations as pushes, even with CLIENT REPLY OFF. An error in place of a
     * confirmation is not sent.
     */
    if (reply_mode_take(&client->reply_mode))
        call->flags |=
            flow != FLOW_SUBSCRIBE && flow != FLOW_UNSUBSCRIBE ? CALL_MUTE : CALL_MUTE_ERROR;
    bool may_block = request_may_block(request) && !is_queued;
    if (may_block)
        call->flags |= CALL_MAY_WAIT;
    if (!may_block && (flow == FLOW_ONE || flow == FLOW_SUBSCRIBE || flow == FLOW_UNSUBSCRIBE))
        fair_share_note_request(client, request);
    else if (!request->is_large)
        fair_share_note_blocking(client, request->command, request->bytes.len, request->argc);
    if (is_queued)
        note_queued(&s, row);
    else
        note_sent(&s);
    if (row->send != NULL)
        return row->send(&s);
    lane_send(lane, &client->lane_user, request->bytes.at, request->bytes.len);
    return true;
}

/*
 * Returns why the client must be closed; NULL: no reason. weir cannot answer a login where replies
 * are not counted. A client with CLIENT REPLY OFF must not queue a command with uncountable
 * replies.
 */
static const char *stateful_send_why_not(const struct client *client, const struct request *request)
{
    if (pin_has(client, PIN_PASSTHROUGH))
        return request_logs_in(request) ? "it sends a login while weir cannot count its replies"
                                        : NULL;
    bool is_silent =
        reply_mode_is_off(&client->reply_mode) && transaction_is_open(&client->transaction);
    return is_silent && ends_counting(request)
               ? "it queues a command with uncountable replies while CLIENT REPLY is "
                 "off"
               : NULL;
}

bool stateful_send(struct client *client, struct lane *lane, const struct request *request)
{
    const char *why = stateful_send_why_not(client, request);
    if (why != NULL) {
        session_log_closed(client, LOG_SITE_CLIENT_CLOSED, why);
        client_leave_for(client, CLOSED_PROTOCOL);
        return true;
    }
    bool is_passthrough = pin_has(client, PIN_PASSTHROUGH) || makes_passthrough(client, request);
    bool is_reply = request->command->flow == FLOW_REPLY &&
                    !transaction_is_open(&client->transaction) && !request->is_large;
    if (!is_passthrough && !is_reply)
        return stateful_send_send_call(client, lane, request);
    /* the request gets no call of its own, so its count ends here */
    charge_answered(client, request->counted);
    return is_passthrough ? send_passthrough(client, lane, request)
                          : send_client_reply(client, lane, request);
}
