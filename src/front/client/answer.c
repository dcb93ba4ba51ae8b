#include "front/client/answer.h"

#include <stdio.h>
#include <string.h>

#include "front/client/charge.h"
#include "front/client/binding.h"
#include "front/cluster/carried.h"
#include "front/route/lane_choice.h"
#include "front/client/login.h"
#include "front/client/meter.h"
#include "front/client/session.h"
#include "front/session/stateful_send.h"
#include "front/client/timing.h"
#include "limit/refusal.h"
#include "upstream/lane/lend.h"
#include "upstream/lane/own_words.h"

/* ---- refusing ---- */

enum route answer_with(struct client *client, struct slice reply)
{
    client_answer(client, reply);
    reply_mode_take(&client->reply_mode);
    return client_is_closed(client) ? ROUTE_STOP : ROUTE_TAKEN;
}

/*
 * Answers a request with an error instead of sending it to Redis. Inside MULTI a command must fail
 * in Redis too, or EXEC would run the transaction without this request. Redis' own error is thrown
 * away.
 */
static enum route answer_refuse(struct client *client, struct lane *lane, struct request *request,
                                struct slice reply)
{
    request->is_refused = true;
    /* on a cluster weir sends MULTI itself */
    bool has_multi = lane != NULL || client_is_on_cluster(client);
    if (transaction_is_open(&client->transaction) && has_multi &&
        !stateful_break_multi(client, lane)) {
        client_close_starved(client);
        return ROUTE_STOP;
    }
    return answer_with(client, reply);
}

/*
 * The refusal for an operator's block of the client's subject or of the keyed subject. The text is
 * valid until the next call.
 */
static struct slice refusal_by_block(const struct client *client)
{
    struct front *front = client->front;
    struct last_refusal *last = &front->last_refusal;
    const struct shared_set *blocks = exceptions_blocks(front->rules->exceptions);
    const struct subject *keyed = client->meter != NULL ? client->meter->keyed : NULL;
    const struct block *block = blocks_find(blocks, subject_name(client->subject));
    if (block == NULL && keyed != NULL)
        block = blocks_find(blocks, subject_name(keyed));
    last->limit = NULL;
    return slice_of(last->text,
                    refusal_block(last->text, block != NULL ? block->reason : SLICE("")));
}

/*
 * Returns *n copies of the refusal of a request that is beyond a limit or denied. Lowers *n to at
 * most REFUSALS_TOLD. The text is valid until the next call.
 */
static struct slice refusals_of(struct front *front, const struct verdict *verdict, uint32_t *n)
{
    struct last_refusal *last = &front->last_refusal;
    int64_t wait_ms = verdict->wait_ns == GATE_NEVER
                          ? GATE_NEVER
                          : (int64_t)ns_to_ms_up((uint64_t)verdict->wait_ns);
    if (last->limit != verdict->limit || last->wait_ms != wait_ms) {
        last->len = refusal_text(last->text, slice_str(front->rules->error_prefix), verdict);
        last->limit = verdict->limit;
        last->wait_ms = wait_ms;
        last->copies = 1;
    }
    *n = *n < REFUSALS_TOLD ? *n : REFUSALS_TOLD;
    for (; last->copies < *n; last->copies++)
        memcpy(last->text + last->copies * last->len, last->text, last->len);
    return slice_of(last->text, *n * last->len);
}

static struct slice refusal_of(const struct client *client, const struct verdict *verdict)
{
    uint32_t once = 1;
    return verdict->limit->is_block ? refusal_by_block(client)
                                    : refusals_of(client->front, verdict, &once);
}

/* Answers a request that is beyond a limit, or denied. */
static enum route refuse_over(struct client *client, struct lane *lane, struct request *request,
                              enum gate gate, const struct verdict *verdict)
{
    enum route result = answer_refuse(client, lane, request, refusal_of(client, verdict));
    if (gate != GATE_CLOSE || result == ROUTE_STOP)
        return result;
    client_leave_for(client, CLOSED_LIMIT);
    return ROUTE_STOP;
}

enum route answer_over(struct client *client, const struct verdict *verdict, uint32_t n)
{
    enum route result = ROUTE_TAKEN;
    while (n > 0 && result == ROUTE_TAKEN) {
        uint32_t told = n;
        struct slice replies = refusals_of(client->front, verdict, &told);
        result = answer_with(client, replies);
        n -= told;
    }
    return result;
}

void answer_count(struct client *client, const struct request *request, enum counted_result result)
{
    front_count(client->front, request->command, result);
    if (result == RESULT_THROTTLED || result == RESULT_LOCAL || result == RESULT_ERROR)
        timing_local(client, timing_tag(client, request->command, request->argc), 1);
}

static enum route throttle(struct client *client, struct lane *lane, struct request *request,
                           enum gate gate, const struct verdict *verdict)
{
    answer_count(client, request, RESULT_THROTTLED);
    return refuse_over(client, lane, request, gate, verdict);
}

enum route answer_error(struct client *client, struct lane *lane, struct request *request,
                        struct slice reply)
{
    answer_count(client, request, RESULT_ERROR);
    return answer_refuse(client, lane, request, reply);
}

bool answer_is_barred(struct client *client, const struct request *request)
{
    return request_logs_in(request) && !login_may(client);
}

enum route answer_barred(struct client *client, const struct request *request)
{
    answer_count(client, request, RESULT_THROTTLED);
    client_answer(client, SLICE("-ERR too many failed logins, try again later\r\n"));
    client_leave_for(client, CLOSED_LIMIT);
    return ROUTE_STOP;
}

void answer_built(struct client *client, struct build *out)
{
    if (out->is_broken)
        client_close_starved(client);
    else
        client_answer(client, slice_of(out->at, out->len));
    reply_mode_take(&client->reply_mode);
    build_fini(out);
}

enum route answer_text(struct client *client, struct request *request, const char *text)
{
    struct build out;
    build_init(&out, false);
    build_error(&out, slice_str(text));
    if (out.is_broken) {
        client_close_starved(client);
        return ROUTE_STOP;
    }
    struct lane *lane = client_has_own_lane(client) ? client->lane_user.lane : NULL;
    enum route result = answer_error(client, lane, request, slice_of(out.at, out.len));
    build_fini(&out);
    return result;
}

const char *answer_subscriber_kinds(const struct client *client)
{
    return front_is_before_7(client->front) ? "P" : "P|S";
}

enum route answer_subscribed(struct client *client, struct request *request)
{
    char text[256];
    const char *kinds = answer_subscriber_kinds(client);
    snprintf(
        text, sizeof text,
        "ERR Can't execute '%s': only (%s)SUBSCRIBE / (%s)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this "
        "context",
        request->command->name, kinds, kinds);
    return answer_text(client, request, text);
}

/* ---- the gate ---- */

enum route answer_unless_passed(struct client *client, struct lane *lane, struct request *request,
                                struct verdict *verdict)
{
    enum gate gate = charge_ask(client, request, verdict);
    if (gate == GATE_WAIT)
        return ROUTE_WAIT;
    if (client_is_closed(client))
        return ROUTE_STOP;
    if (gate != GATE_PASS)
        return throttle(client, lane, request, gate, verdict);
    return ROUTE_GOES_ON;
}

enum route answer_refusal(struct client *client, struct request *request)
{
    struct verdict verdict;
    enum gate gate = charge_ask_refusal(client, request, &verdict);
    if (client_is_closed(client))
        return ROUTE_STOP;
    if (gate == GATE_WAIT)
        return ROUTE_WAIT;
    return gate == GATE_PASS ? ROUTE_GOES_ON : throttle(client, NULL, request, gate, &verdict);
}

/* ---- commands that weir answers itself ---- */

enum route answer_quit(struct client *client)
{
    client_answer(client, SLICE("+OK\r\n"));
    client_leave(client);
    return ROUTE_STOP;
}

/* True if a call or a message on the client's private lane is not finished. */
static bool answer_is_busy(const struct client *client)
{
    return client_has_own_lane(client) && client->lane_user.lane != NULL &&
           (client->lane_user.in_flight > 0 || lane_is_in_message(client->lane_user.lane));
}

static bool answer_listens(const struct client *client)
{
    return client_has_own_lane(client) && client->lane_user.lane != NULL &&
           lane_is_subscribed(client->lane_user.lane);
}

/*
 * True if the client stays on its lane after RESET, because of a lasting pin. If weir lends its own
 * login to clients without a login, the lane would have to log in again. RESET then takes the lane
 * away.
 */
static bool keeps_lane(const struct client *client)
{
    bool has_lane = client_has_own_lane(client) && client->lane_user.lane != NULL;
    return has_lane && pins_last(client) &&
           worker_lanes_lent(&client->front->nodes.worker_lanes) == NULL;
}

/*
 * Resets the lane in Redis before RESET is answered. The client may stay on the lane, and must get
 * no message that another client publishes after the RESET. A nonce precedes the reset, so the
 * reply to the reset is trusted.
 */
static enum route reset_lane(struct client *client)
{
    static const char request[] = "*1\r\n$5\r\n" OWN_RESET "\r\n";
    struct lane *lane = client->lane_user.lane;
    struct call *call = lane_vouch(lane, &client->lane_user)
                            ? lane_call_flow(lane, &client->lane_user, FLOW_ONE, 1, 0)
                            : NULL;
    if (call == NULL) {
        client_close_starved(client);
        return ROUTE_STOP;
    }
    call->effect = EFFECT_RESET;
    call->flags = CALL_MUTE | CALL_LOOK;
    call->arrived_ns = 0;
    lane_send(lane, &client->lane_user, request, sizeof request - 1);
    pin_add(client, PIN_RESET);
    client_wait_for_replies(client);
    return ROUTE_WAIT;
}

/* Ends the client's session. If the client keeps its lane, ends the lane's session, too. */
static void reset_session(struct client *client)
{
    bool keeps = keeps_lane(client) && pin_has(client, PIN_RESET);
    if (client_has_own_lane(client) && !keeps)
        lane_choice_leave(client);
    if (!keeps)
        pins_end(client);
    pins_reset(client);
    session_reset(client);
    if (!keeps)
        return;
    client->lane_user.lane->has_name = false;
    lend_note_login(client->lane_user.lane);
}

/*
 * Answers RESET after all earlier requests. A lane that the client gives up is checked before the
 * next owner gets it.
 */
static enum route reset(struct client *client)
{
    bool had_login = session_login(client) != NULL;
    reset_session(client);
    carried_forget(client);
    reply_mode_end_off(&client->reply_mode);
    client->transaction = (struct transaction){0};
    lane_choice_end_refused(client);
    lane_choice_note_name(client);
    (void)(had_login ? binding_unbind(client) : binding_change(client));
    if (client_is_leaving(client))
        /* without its login the client is one connection too many, and has got the error */
        return ROUTE_STOP;
    return answer_with(client, SLICE("+RESET\r\n"));
}

enum route answer_reset(struct client *client, struct request *request)
{
    struct verdict verdict;
    if (answer_is_busy(client)) {
        client_wait_for_replies(client);
        return ROUTE_WAIT;
    }
    if (!pin_has(client, PIN_RESET) && (answer_listens(client) || keeps_lane(client)))
        return reset_lane(client);
    enum route result = answer_unless_passed(client, NULL, request, &verdict);
    if (result != ROUTE_GOES_ON)
        return result;
    charge_answered(client, verdict.counted);
    answer_count(client, request, RESULT_LOCAL);
    return reset(client);
}

enum route answer_broken_multi(struct client *client, struct request *request)
{
    request->is_refused = true;
    answer_count(client, request, RESULT_ERROR);
    switch (request_effect(request)) {
    case EFFECT_EXEC:
        transaction_end_broken(&client->transaction);
        return answer_with(
            client, SLICE("-EXECABORT Transaction discarded because of previous errors.\r\n"));
    case EFFECT_DISCARD:
        transaction_end_broken(&client->transaction);
        return answer_with(client, SLICE("+OK\r\n"));
    case EFFECT_MULTI:
        return answer_with(client, SLICE("-ERR MULTI calls can not be nested\r\n"));
    default:
        return answer_with(client, lane_choice_why_none(client, request));
    }
}
