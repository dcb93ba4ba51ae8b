#include "front/session/multi.h"

#include "front/client/charge.h"
#include "front/client/answer.h"
#include "front/cluster/carry.h"
#include "front/route/lane_choice.h"
#include "front/route/fair_share.h"
#include "front/client/session.h"
#include "front/session/stateful.h"
#include "front/route/target.h"
#include "front/client/timing.h"
#include "front/route/places.h"
#include "front/session/wait_coverage.h"

#define CROSSING SLICE("-CROSSSLOT Keys in request don't hash to the same slot\r\n")
#define ABORTED SLICE("-EXECABORT Transaction discarded because of previous errors.\r\n")
#define REFUSED SLICE("-NOPERM this user has no permissions to run the 'multi' command\r\n")

static const char multi_request[] = "*1\r\n$5\r\nMULTI\r\n";

static struct pool *multi_pool_of(const struct client *client)
{
    return &client->front->loop->pool;
}

/* ---- end ---- */

/*
 * Gives the lane back. When the session on the lane ends, Redis ends the transaction and the
 * watches.
 */
static void leave_lane(struct client *client)
{
    struct carry *carry = carry_of(client);
    if (client_has_own_lane(client) && client->lane_user.lane != NULL &&
        (carry->is_begun || carry->step >= CARRY_BEGINS || pin_has(client, PIN_WATCH)))
        lane_choice_leave(client);
    carry->is_begun = false;
}

static void multi_end(struct client *client)
{
    leave_lane(client);
    carried_forget(client);
    pin_end(client, PIN_WATCH);
    transaction_drop(&client->transaction);
}

static bool multi_take_refusal(struct client *client, struct slice reply);
static void multi_go_on(struct client *client);
static struct slice lost(const struct client *client);

/*
 * Returns the client's carry (the requests that may be sent again, front/cluster/carry.h), with the
 * callbacks set. NULL: out of memory, and the client is closed.
 */
static struct carry *multi_need(struct client *client)
{
    static const struct carry_ops ops = {multi_take_refusal, multi_go_on, lost, multi_end};
    struct carry *carry = carry_need(client);
    if (carry != NULL)
        carry->ops = &ops;
    return carry;
}

/* ---- requests ---- */

/* Charges the request and answers it in weir. */
static enum route answer_here(struct client *client, struct request *request, struct slice reply)
{
    struct verdict verdict;
    enum route result = answer_unless_passed(client, NULL, request, &verdict);
    if (result != ROUTE_GOES_ON)
        return result;
    charge_answered(client, verdict.counted);
    answer_count(client, request, RESULT_LOCAL);
    return answer_with(client, reply);
}

static enum route multi_begin(struct client *client, struct request *request)
{
    struct verdict verdict;
    if (session_may_only_subscribe(client))
        return answer_subscribed(client, request);
    if (session_must_log_in(client))
        return answer_error(client, NULL, request, SLICE("-NOAUTH Authentication required.\r\n"));
    struct carry *carry = multi_need(client);
    if (carry == NULL)
        return ROUTE_STOP;
    enum route result = answer_unless_passed(client, NULL, request, &verdict);
    if (result != ROUTE_GOES_ON)
        return result;
    charge_answered(client, verdict.counted);
    answer_count(client, request, RESULT_LOCAL);
    if (!pin_has(client, PIN_WATCH) && !carry->is_lost) {
        carried_forget(client);
        queue_begin(&carry->queue);
    }
    (void)transaction_send(&client->transaction, EFFECT_MULTI);
    transaction_answered(&client->transaction, EFFECT_MULTI, true);
    client->extra->pause_ms = 0;
    session_drop_asked_library(client);
    return answer_with(client, SLICE("+OK\r\n"));
}

static enum route discard(struct client *client, struct request *request)
{
    if (client->lane_user.in_flight > 0) {
        client_wait_for_replies(client);
        return ROUTE_WAIT;
    }
    enum route result = answer_here(client, request, SLICE("+OK\r\n"));
    if (result == ROUTE_TAKEN)
        multi_end(client);
    return result;
}

static struct slice nil(const struct client *client)
{
    return session_protocol(client) == 3 ? SLICE("_\r\n") : SLICE("*-1\r\n");
}

/* Returns weir's reply to EXEC. Empty: EXEC must be sent. */
static struct slice answer_to_exec(const struct client *client, const struct request *request)
{
    const struct carry *carry = carry_of(client);
    if (request->argc != 1)
        return SLICE(
            "-EXECABORT Transaction discarded because of: wrong number of arguments for 'exec' command\r\n");
    if (carry->is_void || carry->is_refused || (carry->must_move && carry->queue.is_cut))
        return ABORTED;
    return carried_has_lost_watch(client) ? nil(client) : SLICE("");
}

static enum route exec(struct client *client, struct request *request)
{
    struct carry *carry = carry_of(client);
    struct verdict verdict;
    if (client->lane_user.in_flight > 0) {
        client_wait_for_replies(client);
        return ROUTE_WAIT;
    }
    struct slice answer = answer_to_exec(client, request);
    if (answer.len > 0) {
        enum route result = answer_here(client, request, answer);
        if (result == ROUTE_TAKEN)
            multi_end(client);
        return result;
    }
    enum route result = answer_unless_passed(client, NULL, request, &verdict);
    if (result != ROUTE_GOES_ON)
        return result;
    answer_count(client, request, RESULT_FORWARDED);
    charge_answered(client, verdict.counted);
    /*
     * A redirect seen while queueing stays in force. The time-out of the redirect begins now, even
     * if the client has queued commands for longer than redirect-timeout.
     */
    struct nodes_row *there = carry->there;
    enum carry_why why = (enum carry_why)carry->why;
    uint64_t over_ns = carry->over_ns;
    if (over_ns != 0)
        over_ns += client->front->loop->now_ns - carry->since_ns;
    if (!carry_keep(client, request))
        return ROUTE_STOP;
    carry->there = carry->must_move ? there : NULL;
    carry->why = carry->must_move ? (uint8_t)why : CARRY_NOT_REFUSED;
    carry->over_ns = carry->must_move && over_ns != 0 ? over_ns : UINT64_MAX;
    carry->is_muted = reply_mode_take(&client->reply_mode);
    carry->is_exec = true;
    carry_set_step(carry, CARRY_WAITS);
    client_wait(client, WAIT_AGAIN);
    carry_go_on(client);
    return client_is_closed(client) ? ROUTE_STOP : ROUTE_TAKEN;
}

static bool changes_counting(const struct request *request)
{
    enum flow flow = (enum flow)request->command->flow;
    return flow == FLOW_SUBSCRIBE || flow == FLOW_UNSUBSCRIBE || flow == FLOW_MONITOR ||
           flow == FLOW_PASSTHROUGH || flow == FLOW_REPLY;
}

/*
 * True if Redis would queue the request, judged by the command table. After a lost watch weir
 * answers +QUEUED itself, and EXEC must still report the errors of bad requests.
 */
static bool is_sound(const struct request *request)
{
    const struct command *command = request->command;
    return command->id != 0 && (command->arity >= 0 ? request->argc == (uint32_t)command->arity
                                                    : request->argc >= (uint32_t)-command->arity);
}

static enum route queue(struct client *client, struct request *request)
{
    const struct carry *carry = carry_of(client);
    int32_t slot = target_slot(request);
    if (carry->is_refused)
        return answer_error(client, NULL, request, REFUSED);
    if (changes_counting(request))
        return answer_error(
            client, NULL, request,
            SLICE("-ERR this command is not allowed inside MULTI on a cluster behind weir\r\n"));
    if (slot == KEYS_CROSSING || !queue_fits(&carry->queue, slot >= 0 ? slot : KEYS_NO_SLOT))
        return answer_error(client, NULL, request, CROSSING);
    bool is_answered = carried_has_lost_watch(client) && !request->is_large && is_sound(request);
    return is_answered ? answer_here(client, request, SLICE("+QUEUED\r\n")) : ROUTE_GOES_ON;
}

/* Watched keys decide the node, so all watched keys must be of one slot. */
static enum route multi_watch(struct client *client, struct request *request)
{
    struct carry *carry = multi_need(client);
    int32_t slot = keys_slot(request->command, request->bytes, request->argc);
    if (carry == NULL)
        return ROUTE_STOP;
    if (!pin_has(client, PIN_WATCH) && !carry->is_lost) {
        carried_forget(client);
        queue_begin(&carry->queue);
    }
    if (slot == KEYS_CROSSING || (slot >= 0 && !queue_fits(&carry->queue, slot)))
        return answer_error(client, NULL, request, CROSSING);
    if (slot >= 0)
        carry->queue.slot = slot;
    return ROUTE_GOES_ON;
}

enum route multi_take(struct client *client, struct request *request)
{
    enum effect effect = request_effect(request);
    bool is_open = transaction_is_open(&client->transaction);
    if (!is_open && effect == EFFECT_WATCH)
        return multi_watch(client, request);
    if (!is_open)
        return effect == EFFECT_MULTI ? multi_begin(client, request) : ROUTE_GOES_ON;
    switch (effect) {
    case EFFECT_MULTI:
        return answer_here(client, request, SLICE("-ERR MULTI calls can not be nested\r\n"));
    case EFFECT_WATCH:
        return answer_here(client, request, SLICE("-ERR WATCH inside MULTI is not allowed\r\n"));
    case EFFECT_DISCARD:
        return discard(client, request);
    case EFFECT_EXEC:
        return exec(client, request);
    default:
        return queue(client, request);
    }
}

/* ---- on the lane ---- */

/* Sends weir's own MULTI. False: out of memory, and the client is closed. */
static bool send_multi(struct client *client, struct lane *lane, bool asks)
{
    struct call *call = lane_vouch(lane, &client->lane_user) && (!asks || carry_ask(client, lane))
                            ? lane_call_flow(lane, &client->lane_user, FLOW_ONE, 1, 0)
                            : NULL;
    if (call == NULL) {
        client_close_starved(client);
        return false;
    }
    call->effect = EFFECT_BEGUN;
    call->flags = CALL_MUTE | CALL_LOOK;
    call->arrived_ns = 0;
    lane_choice_note_sent(client);
    lane_send(lane, &client->lane_user, multi_request, sizeof multi_request - 1);
    return true;
}

enum route multi_begin_on(struct client *client, struct lane *lane)
{
    const struct carry *carry = carry_of(client);
    if (carry->is_begun || carry->is_refused)
        return ROUTE_GOES_ON;
    if (!send_multi(client, lane, carry->asks_there))
        return ROUTE_STOP;
    client_wait(client, WAIT_ANSWER);
    return ROUTE_WAIT;
}

void multi_note_queued(struct client *client, const struct request *request)
{
    int32_t slot = target_slot(request);
    queue_add(&carry_of(client)->queue, multi_pool_of(client),
              request->is_large ? slice_of("", 0) : request->bytes,
              slot >= 0 ? slot : KEYS_NO_SLOT);
}

/*
 * A node refuses all requests that were sent together. The first refusal counts, and later refusals
 * change nothing.
 */
static bool multi_take_refusal(struct client *client, struct slice reply)
{
    struct carry *carry = carry_of(client);
    carry->may_forge = carry->may_wait = false;
    carry->slot = KEYS_NO_SLOT;
    if (carry->must_move)
        return carry_is_refusal(client, reply);
    if (carry->step == CARRY_NONE) {
        carry->since_ns = 0;
        carry->n_redirects = 0;
    }
    if (!carry_read_refusal(client, reply))
        return false;
    carry->must_move = true;
    carry->is_lost |= pin_has(client, PIN_WATCH);
    return true;
}

/* ---- EXEC ---- */

static struct slice lost(const struct client *client)
{
    return pin_has(client, PIN_WATCH) ? nil(client) : SLICE("");
}

static void send_exec(struct client *client)
{
    struct carry *carry = carry_of(client);
    struct lane_user *lane_user = &client->lane_user;
    struct lane *lane = lane_user->lane;
    const struct request request = {.argc = 1, .bytes = bytes_slice(&carry->request)};
    lane_user->arrived_ns = carry->arrived_ns;
    lane_user->waited_us = carry->waited_us;
    struct call *call = lane_call_flow(lane, lane_user, FLOW_ONE, 1, carry->tag);
    if (call == NULL) {
        client_close_starved(client);
        return;
    }
    call->effect = EFFECT_EXEC;
    call->flags = CALL_LOOK;
    (void)transaction_send(&client->transaction, EFFECT_EXEC);
    const struct sending sending = {client, lane, &request, call};
    stateful_row(EFFECT_EXEC)->sent(&sending);
    carry->is_begun = carry->must_move = false;
    carry->in_reply = false;
    carry_set_step(carry, CARRY_SENT);
    places_note_write(client, lane);
    fair_share_note_call(client, timing_command(client->front, carry->tag), 0,
                         timing_argc(carry->tag));
    lane_choice_note_sent(client);
    lane_send(lane, lane_user, carry->request.at, carry->request.len);
    client_resume_woken(client, WAIT_AGAIN);
    client_wait_for_replies(client);
}

/* Sends all queued requests again, and discards their replies. */
static void send_queue(struct client *client)
{
    struct carry *carry = carry_of(client);
    struct lane *lane = client->lane_user.lane;
    carry->must_move = false;
    carry->why = CARRY_NOT_REFUSED;
    carry->there = NULL;
    carry_set_step(carry, CARRY_REPLAYS);
    if ((client->pins & PINS_THAT_LAST) != 0)
        lane_forbid_reuse(lane);
    for (uint32_t i = 0; i < carry->queue.n; i++) {
        struct call *call = lane_call_flow(lane, &client->lane_user, FLOW_ONE, 1, 0);
        if (call == NULL) {
            client_close_starved(client);
            return;
        }
        call->arrived_ns = 0;
    }
    client->lane_user.wants_idle = true;
    lane_send(lane, &client->lane_user, carry->queue.requests.at, carry->queue.requests.len);
}

/* Begins the transaction on `lane`. */
static void begin_on(struct client *client, struct lane *lane, bool asks)
{
    if (!send_multi(client, lane, asks))
        return;
    carry_set_step(carry_of(client), CARRY_BEGINS);
    client->lane_user.wants_idle = true;
}

/* Redis knows the watched keys on one lane only. EXEC goes to the watching lane, or answers nil. */
static void begin_where_watched(struct client *client)
{
    const struct carry *carry = carry_of(client);
    if (!carry->must_move && !carried_has_lost_watch(client)) {
        begin_on(client, client->lane_user.lane, carry->asks_there);
        return;
    }
    multi_end(client);
    carry_answer(client, nil(client));
}

/* Begins the transaction on a lane to the right node. */
static void begin_again(struct client *client)
{
    struct carry *carry = carry_of(client);
    struct lane *lane = NULL;
    struct nodes_row *row = carry_row(carry);
    if (pin_has(client, PIN_WATCH)) {
        begin_where_watched(client);
        return;
    }
    leave_lane(client);
    if (row == NULL) {
        upstream_ask_topology(client->front->nodes.worker_lanes.upstream);
        carry_pause(client);
        return;
    }
    if (!target_set(client, row))
        return;
    switch (carry_find_lane(client, &lane)) {
    case CARRY_FOUND:
        begin_on(client, lane, carry_asks(carry));
        break;
    case CARRY_FOUND_NONE:
        lane_choice_end_refused(client);
        client_forget_refusal(client);
        carry_pause(client);
        break;
    case CARRY_FOUND_WAITS:
    case CARRY_FOUND_GONE:
        break;
    }
}

static void abort_exec(struct client *client)
{
    multi_end(client);
    carry_answer(client, ABORTED);
}

static void multi_go_on(struct client *client)
{
    struct carry *carry = carry_of(client);
    switch ((enum carry_step)carry->step) {
    case CARRY_BEGINS:
        if (carry->is_refused)
            abort_exec(client);
        else if (carry->queue.n > 0 && carry->queue.requests.len > 0)
            send_queue(client);
        else
            send_exec(client);
        break;
    case CARRY_REPLAYS:
        if (carry->must_move) {
            carry_set_step(carry, CARRY_WAITS);
            leave_lane(client);
            link_wake(&client->link);
        } else {
            send_exec(client);
        }
        break;
    default:
        if (carry->queue.is_cut && !carry->is_begun)
            abort_exec(client); /* EXEC was refused, and the queue cannot be sent again */
        else if (carry->is_begun && !carry->must_move)
            send_exec(client);
        else
            begin_again(client);
        break;
    }
}
