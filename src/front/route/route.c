#include "front/route/route.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "front/client/charge.h"
#include "front/client/answer.h"
#include "front/client/binding.h"
#include "front/cluster/cluster_commands.h"
#include "front/cluster/carry.h"
#include "front/commands/console.h"
#include "front/commands/decisions.h"
#include "front/client/login.h"
#include "front/commands/limit_command.h"
#include "front/route/lane_choice.h"
#include "front/client/meter.h"
#include "front/session/multi.h"
#include "front/route/outage.h"
#include "front/cluster/compound.h"
#include "front/route/fair_share.h"
#include "front/route/place.h"
#include "front/route/places.h"
#include "front/route/reads.h"
#include "front/route/request.h"
#include "front/client/session.h"
#include "front/cluster/shard_reads.h"
#include "front/session/stateful_send.h"
#include "front/session/subscribe.h"
#include "front/cluster/spread.h"
#include "front/route/target.h"
#include "front/client/timing.h"
#include "front/session/wait_coverage.h"
#include "resp/argv.h"
#include "upstream/lane/lend.h"

/* ---- sending ---- */

static enum route out_of_memory(struct client *client)
{
    client_close_starved(client);
    return ROUTE_STOP;
}

static bool route_note_call(struct client *client, struct lane *lane, const struct request *request)
{
    uint64_t tag = timing_tag(client, request->command, request->argc);
    if (lane->keeps && !client_keep(client, request->command, request->bytes, 1))
        return false;
    if (request->counted == 0 && client->lane_user.waited_us == 0 &&
        client_counts(client, UNIT_BYTES_OUT))
        /* replies charged by size are counted one by one */
        return lane_call_apart(lane, &client->lane_user, tag, 1);
    if (request->counted == 0 && client->lane_user.waited_us == 0)
        return lane_call(lane, &client->lane_user, tag, 1);
    struct call *call = lane_call_flow(lane, &client->lane_user, FLOW_ONE, 1, tag);
    if (call != NULL)
        call->counted = request->counted;
    return call != NULL;
}

/*
 * Marks the lane if the request may forge replies (may_forge in command_row.h), or if other clients
 * must not get the lane after the request.
 */
static void note_lane(struct client *client, struct lane *lane, const struct request *request)
{
    const struct command *command = request->command;
    bool is_mark = command->effect == EFFECT_TRACKING || command->effect == EFFECT_NO_EVICT ||
                   command->effect == EFFECT_NO_TOUCH;
    if (command->pins || is_mark || command->flow == FLOW_MONITOR)
        lane_forbid_reuse(lane);
    if (command->pins || command->flow == FLOW_SUBSCRIBE)
        lend_list(lane);
    if (!command->may_forge)
        return;
    if (transaction_is_open(&client->transaction))
        client->transaction.forges = true;
    else
        lane_distrust(lane);
}

/*
 * True if the command may write. EXEC runs the queued commands. A command that may forge replies
 * may run any other command.
 */
static bool may_write(const struct command *command)
{
    return command->is_pausable || command->may_forge || command->effect == EFFECT_EXEC;
}

/* Records a request that was sent on the client's private lane to a node of a cluster. */
static enum route note_carried(struct client *client, const struct request *request)
{
    if (transaction_is_open(&client->transaction))
        multi_note_queued(client, request);
    else if (!pin_has(client, PIN_PASSTHROUGH) && !carry_note_sent(client, request))
        return ROUTE_STOP;
    return ROUTE_TAKEN;
}

static enum route send_to(struct client *client, struct lane *lane, const struct request *request)
{
    lane_choice_note_read(client, request->command);
    bool is_plain = stateful_is_plain(client, request);
    if (!is_plain && !stateful_send(client, lane, request))
        return out_of_memory(client);
    if (client_is_closed(client))
        return ROUTE_STOP;
    if (client_has_own_lane(client))
        note_lane(client, lane, request);
    if (may_write(request->command))
        places_note_write(client, lane);
    if (!is_plain) {
        lane_choice_note_sent(client);
        return ROUTE_TAKEN;
    }
    lane_count_sent(&client->lane_user, SHARED_CALLS_FEW, (uint32_t)request->bytes.len);
    if (!route_note_call(client, lane, request))
        return out_of_memory(client);
    fair_share_note_request(client, request);
    lane_choice_note_sent(client);
    lane_gather(lane, &client->lane_user, request->bytes.at, request->bytes.len);
    return ROUTE_TAKEN;
}

static enum route send_on(struct client *client, struct lane *lane, const struct request *request)
{
    if (request->is_large && client_is_on_cluster(client) && !carry_end_probe(client, lane))
        return ROUTE_STOP;
    enum route result = send_to(client, lane, request);
    bool is_carried =
        result == ROUTE_TAKEN && client_is_on_cluster(client) && client_has_own_lane(client);
    return is_carried ? note_carried(client, request) : result;
}

/* ---- weir's own commands ---- */

/* Counts one of weir's own commands, by its row of own.def. */
static void count_own(struct client *client, const struct request *request, bool is_error)
{
    size_t row = request->command->own - 1U;
    if (row < COUNTED_OWN)
        count_add(&client->front->counts.own[row][is_error], 1);
}

static enum route refuse_own(struct client *client, struct lane *lane, struct request *request)
{
    char text[OWN_ERROR_ROOM];
    count_own(client, request, true);
    return answer_error(client, lane, request,
                        slice_of(text, limit_command_check(client, request, text)));
}

/* Asks Redis to confirm the client's login. ROUTE_GOES_ON: Redis has confirmed the login. */
static enum route route_prove(struct client *client)
{
    enum login_result result = login_prove(client, false);
    if (result == LOGIN_WAITS)
        return ROUTE_WAIT;
    if (result == LOGIN_GONE)
        return ROUTE_STOP;
    enum route route =
        result == LOGIN_PASSED ? ROUTE_GOES_ON : answer_with(client, login_reply(client));
    login_end(client);
    return route;
}

static enum route run_own(struct client *client, struct request *request)
{
    char text[OWN_ERROR_ROOM];
    struct verdict verdict;
    bool is_decision = quota_decides(request->command);
    if (is_decision && !decisions_can_go(client))
        return ROUTE_WAIT;
    if (client_has_own_lane(client) && client->lane_user.in_flight > 0) {
        client_wait_for_replies(client); /* requests in flight may begin or end subscriptions */
        return ROUTE_WAIT;
    }
    if (limit_command_check(client, request, text) > 0)
        return refuse_own(client, NULL, request);
    bool is_unseen = is_decision && !session_is_witnessed(client);
    if (is_unseen)
        lane_choice_keep_user(client);
    if (is_unseen || limit_command_needs_proof(client, request)) {
        enum route proof = route_prove(client);
        if (proof != ROUTE_GOES_ON)
            return proof;
    }
    enum route result = answer_unless_passed(client, NULL, request, &verdict);
    if (result != ROUTE_GOES_ON)
        return result;
    charge_answered(client, verdict.counted);
    count_own(client, request, false);
    if (is_decision) {
        front_count(client->front, request->command, RESULT_LOCAL);
        decisions_ask(client, request);
    } else {
        limit_command_run(client, request);
        answer_count(client, request, RESULT_LOCAL);
    }
    return client_is_closed(client) ? ROUTE_STOP : ROUTE_TAKEN;
}

/* ---- the gate ---- */

/* Asks the gate. ROUTE_GOES_ON: the request passed and is counted as sent. */
static enum route route_ask_gate(struct client *client, struct lane *lane, struct request *request)
{
    struct verdict verdict;
    bool has_waited = meter_is_waiting(client);
    enum route result = answer_unless_passed(client, lane, request, &verdict);
    if (result != ROUTE_GOES_ON)
        return result;
    request->counted = verdict.counted;
    answer_count(client, request,
                 has_waited            ? RESULT_DELAYED
                 : verdict.is_shadowed ? RESULT_SHADOW
                                       : RESULT_FORWARDED);
    return ROUTE_GOES_ON;
}

/* ---- login ---- */

/* Acts on the result of a login. ROUTE_GOES_ON: HELLO will be answered by a lane. */
static enum route end_login(struct client *client, const struct request *request,
                            enum login_result result)
{
    enum route route = ROUTE_TAKEN;
    switch (result) {
    case LOGIN_WAITS:
        return ROUTE_WAIT;
    case LOGIN_GONE:
        return ROUTE_STOP;
    case LOGIN_BARRED:
        login_end(client);
        return answer_barred(client, request);
    case LOGIN_WRONG:
        route = answer_with(client, login_reply(client));
        break;
    case LOGIN_PASSED:
        if (request->command->effect == EFFECT_HELLO)
            return ROUTE_GOES_ON;
        route = answer_with(client, SLICE("+OK\r\n"));
        break;
    }
    login_end(client);
    return route;
}

/*
 * Handles AUTH and HELLO, which are never sent as they came. Exception: inside MULTI, a HELLO is
 * sent if it does not log in and does not change the protocol.
 */
static enum route log_in(struct client *client, struct request *request, struct hello *hello)
{
    char error[HELLO_ERROR_ROOM];
    bool is_hello = request->command->effect == EFFECT_HELLO;
    bool is_read = is_hello ? hello_read(hello, request->bytes, error)
                            : hello_read_auth(hello, request->bytes, error);
    request->hello = is_read ? hello : NULL;
    if (transaction_is_open(&client->transaction))
        return ROUTE_GOES_ON;
    if (!login_has_begun(client)) {
        bool is_subscribed = session_may_only_subscribe(client);
        if (client_has_own_lane(client) && client->lane_user.in_flight > 0 &&
            (is_subscribed || hello->has_auth || !is_read)) {
            client_wait_for_replies(client); /* requests in flight may begin or end subscriptions */
            return ROUTE_WAIT;
        }
        if (answer_is_barred(client, request))
            return answer_barred(client, request);
        if (is_subscribed)
            return answer_subscribed(client, request);
        if (!is_read)
            return answer_text(client, request, error);
        if (subscribe_is_bound(client, hello->protocol))
            return answer_text(client, request,
                               "ERR HELLO cannot change the protocol while subscribed: unsubscribe "
                               "first");
        if (!hello->has_auth)
            return ROUTE_GOES_ON;
        lane_choice_release(client);
        enum route result = route_ask_gate(client, NULL, request);
        if (result != ROUTE_GOES_ON)
            return result;
        charge_bytes_in(client, request->n_bytes, request->counted);
        if (client_is_closed(client))
            return ROUTE_STOP;
    }
    request->is_paid = true;
    return end_login(client, request, login_ask(client, hello));
}

/* ---- the full path ---- */

static bool has_subcommands(const struct front *front, struct slice name)
{
    return command_find(front->commands, name, slice_of("", 0))->has_subcommands;
}

static enum route refuse_placeless(struct client *client, struct request *request)
{
    if (request_effect(request) == EFFECT_MULTI)
        transaction_break(&client->transaction);
    lane_choice_end_refused(client);
    enum route result = answer_error(client, NULL, request, lane_choice_why_none(client, request));
    if (!transaction_is_broken(&client->transaction))
        client_forget_refusal(client);
    return result;
}

/*
 * Refuses a request for which no lane was found. The client is closed as well where an error reply
 * would mislead it:
 * - Redis has accepted the client's new login, so the client would not know its user.
 * - The client does not hear replies. The client would believe that the lost command has run, or
 *   would wait for CLIENT REPLY ON for ever.
 * - The request asks for silence. The client would take the error for the reply to the next
 *   request.
 */
static enum route route_refuse_lane(struct client *client, struct request *request)
{
    bool has_changed = login_has_begun(client);
    bool is_in_multi =
        transaction_is_open(&client->transaction) || transaction_is_broken(&client->transaction);
    bool is_unheard =
        reply_mode_is_deaf(&client->reply_mode) || (!is_in_multi && request_silences(request));
    login_end(client);
    enum route result = refuse_placeless(client, request);
    if (!(has_changed || is_unheard) || result == ROUTE_STOP)
        return result;
    client_leave_for(client, CLOSED_UPSTREAM);
    return ROUTE_STOP;
}

/* No connection to Redis is available for the request. */
static enum route route_go_without(struct client *client, struct request *request, enum err why,
                                   bool is_handshake)
{
    switch (outage_meet(client, why, is_handshake)) {
    case OUTAGE_WAITS:
        lane_choice_end_refused(client);
        client_forget_refusal(client);
        login_prove_again(client);
        return ROUTE_WAIT;
    case OUTAGE_ERROR:
        return route_refuse_lane(client, request);
    case OUTAGE_CLOSES:
        outage_close(client);
        return ROUTE_STOP;
    case OUTAGE_STARVED:
        break;
    }
    return ROUTE_STOP;
}

/* No lane was found for the request. */
static enum route end_search(struct client *client, struct request *request)
{
    enum err why = lane_choice_lack(client, request);
    bool is_handshake = (request->command->flags & CMD_HANDSHAKE) != 0;
    return why == ERR_NONE ? route_refuse_lane(client, request)
                           : route_go_without(client, request, why, is_handshake);
}

/*
 * Returns why no auth lane was available. An auth lane may be the first connection to fail: Redis
 * is away then, though no other connection has failed yet.
 */
static enum err why_unasked(const struct lanes *lanes)
{
    if (lanes->down != ERR_NONE)
        return lanes->down;
    return lanes->why_none != ERR_NONE ? ERR_UPSTREAM_BUSY : ERR_UPSTREAM_UNAVAILABLE;
}

/*
 * No auth lane has confirmed the client's user. Until an auth lane does, weir sends nothing on the
 * client's private lane, not even to void a transaction.
 */
static enum route refuse_unproven(struct client *client, struct request *request)
{
    /* refused by another node of the cluster than the default node */
    if (login_is_refused(client)) {
        enum route result = answer_error(client, NULL, request, login_reply(client));
        login_end(client);
        return result;
    }
    enum err why = why_unasked(&session_row(client)->lanes);
    bool is_handshake =
        login_is_unanswered(client) || (request->command->flags & CMD_HANDSHAKE) != 0;
    if (!client_has_own_lane(client))
        return route_go_without(client, request, why, is_handshake);
    if (outage_meet(client, why, is_handshake) == OUTAGE_WAITS) {
        login_prove_again(client);
        return ROUTE_WAIT;
    }
    login_end(client);
    session_log_closed(client, LOG_SITE_CLIENT_CLOSED,
                       "Redis does not confirm that its login is still valid");
    lane_choice_abandon(client);
    client_leave_for(client, CLOSED_UPSTREAM);
    return ROUTE_STOP;
}

/* Finds a lane. ROUTE_GOES_ON: the request may be sent on *lane. */
static enum route route_find_lane(struct client *client, struct request *request,
                                  struct lane **lane)
{
    for (;;) {
        if (read_side_of(client) != NULL && reads_settle(client, request) == READS_WAIT)
            return ROUTE_WAIT;
        if (!lane_choice_turn(client))
            return client_is_closed(client) ? ROUTE_STOP : ROUTE_WAIT;
        switch (login_renew(client, (request->command->flags & CMD_HANDSHAKE) != 0)) {
        case LOGIN_WAITS:
            return ROUTE_WAIT;
        case LOGIN_PASSED:
            break;
        default:
            return client_is_leaving(client) ? ROUTE_STOP : refuse_unproven(client, request);
        }
        switch (lane_choice_find(client, request, lane)) {
        case LANE_NOT_YET:
            return ROUTE_WAIT;
        case LANE_NONE:
            if (!client_is_closed(client) && reads_give_up(client))
                break;
            return client_is_closed(client) ? ROUTE_STOP : end_search(client, request);
        case LANE_FOUND:
            session_note_lane(client);
            return ROUTE_GOES_ON;
        case LANE_UNPROVEN:
            break;
        }
    }
}

/* ---- by places, on a cluster ---- */

#define UNSERVED SLICE("-CLUSTERDOWN Hash slot not served\r\n")

/* Answers with an error. A client that does not hear replies is closed: see route_refuse_lane. */
static enum route refuse_at_place(struct client *client, struct request *request,
                                  struct slice reply)
{
    bool is_unheard = reply_mode_is_deaf(&client->reply_mode);
    enum route result = answer_error(client, NULL, request, reply);
    if (!is_unheard || result == ROUTE_STOP)
        return result;
    client_leave_for(client, CLOSED_UPSTREAM);
    return ROUTE_STOP;
}

/* No node serves the slot. The request waits for a new topology. */
static enum route await_slot(struct client *client, struct request *request)
{
    upstream_ask_topology(client->front->nodes.worker_lanes.upstream);
    client->extra->spread->target = NULL;
    switch (outage_meet(client, ERR_UPSTREAM_UNAVAILABLE, false)) {
    case OUTAGE_WAITS:
        return ROUTE_WAIT;
    case OUTAGE_STARVED:
        return ROUTE_STOP;
    default:
        return refuse_at_place(client, request, UNSERVED);
    }
}

/* No lane to the place's node is available. */
static enum route go_without_place(struct client *client, struct place *place,
                                   struct request *request)
{
    enum err why = place_lack(place);
    enum outage_step step = OUTAGE_ERROR;
    if (client_is_leaving(client))
        return ROUTE_STOP;
    if (why == ERR_UPSTREAM_UNAVAILABLE)
        upstream_ask_topology(client->front->nodes.worker_lanes.upstream);
    if (why != ERR_NONE)
        step = outage_meet(client, why, false);
    enum route result = ROUTE_STOP;
    if (step == OUTAGE_ERROR)
        result = refuse_at_place(client, request, place_why_none(place));
    else if (step == OUTAGE_WAITS)
        result = ROUTE_WAIT;
    else if (step == OUTAGE_CLOSES)
        outage_close(client);
    place_forget_refusal(place);
    return result;
}

/*
 * Finds the row for the request. ROUTE_GOES_ON: *row serves the request (NULL: no node does), and
 * calls in flight were sent by the same slot map.
 */
static enum route route_find_row(struct client *client, const struct request *request,
                                 struct nodes_row **row)
{
    do {
        if (client->lane_user.in_flight > 0 || places_must_settle(client) ||
            places_must_not_overtake(client, request)) {
            client_wait_for_replies(client);
            return ROUTE_WAIT;
        }
        *row = places_row_for(client, request);
    } while (spread_is_outdated(client->extra->spread, &client->front->nodes));
    return ROUTE_GOES_ON;
}

/*
 * Finds a place and a lane for the request. ROUTE_GOES_ON: the request may be sent on *lane. If a
 * replica has no lane, the master is used.
 */
static enum route find_place(struct client *client, struct request *request, struct place **place,
                             struct lane **lane)
{
    if (client_need_spread(client) == NULL)
        return ROUTE_STOP;
    struct nodes_row *row;
    enum route found = route_find_row(client, request, &row);
    if (found != ROUTE_GOES_ON)
        return found;
    bool has_replicas = row != NULL && read_side_of(client) != NULL;
    if (has_replicas && shard_reads_must_wait(client, row)) {
        client_wait_for_replies(client);
        return ROUTE_WAIT;
    }
    if (row == NULL)
        return await_slot(client, request);
    if (has_replicas && shard_reads_hold(client, request, row))
        return ROUTE_WAIT;
    client->extra->spread->target = row;
    *place = place_get(client, row);
    if (*place == NULL)
        return ROUTE_STOP;
    switch (place_find_lane(*place, request->command, lane)) {
    case LANE_FOUND:
        return ROUTE_GOES_ON;
    case LANE_NOT_YET:
        return ROUTE_WAIT;
    default:
        if (!client_is_closed(client) && has_replicas && shard_reads_give_up(*place))
            return find_place(client, request, place, lane);
        return client_is_closed(client) ? ROUTE_STOP : go_without_place(client, *place, request);
    }
}

/* True if the client's last lane to the request's node is still open. */
static bool is_place_at_hand(const struct client *client, const struct request *request)
{
    const struct nodes_row *row = places_row_for(client, request);
    const struct place *place =
        row != NULL ? spread_place(client_extra(client)->spread, row) : NULL;
    return place != NULL && (place->was_refused || lease_holds(&place->shared));
}

/*
 * Returns the error for a request inside MULTI that would change the user or the protocol. Limits
 * depend on the user, which only an auth lane confirms. How replies are parsed depends on the
 * protocol. Empty: no error.
 */
static struct slice refusal_in_multi(const struct client *client, const struct request *request)
{
    const struct hello *hello = request->hello;
    enum effect effect = request_effect(request);
    if (!transaction_is_open(&client->transaction) ||
        (effect != EFFECT_AUTH && effect != EFFECT_HELLO))
        return SLICE("");
    if (effect == EFFECT_AUTH)
        return SLICE("-ERR AUTH is not allowed inside MULTI: log in before MULTI\r\n");
    if (hello == NULL)
        return SLICE("-ERR HELLO inside MULTI has wrong arguments\r\n");
    if (hello->has_auth)
        return SLICE("-ERR HELLO with AUTH is not allowed inside MULTI: log in before MULTI\r\n");
    return hello->protocol != 0 && hello->protocol != session_protocol(client)
               ? SLICE(
                     "-ERR HELLO cannot change the protocol inside MULTI: send HELLO before MULTI\r\n")
               : SLICE("");
}

/*
 * True if the request is CLIENT MAINT_NOTIFICATIONS and weir refuses it. A server with that command
 * would send the client to other addresses, past weir.
 */
static bool asks_for_maintenance(const struct client *client, const struct request *request)
{
    return !client->front->rules->passes_maintenance &&
           slice_is_word(request->args[0], SLICE("maint_notifications")) &&
           slice_is_word(request->name, SLICE("client"));
}

/* Refuses the request. The gate counts the request as any CLIENT command. */
static enum route refuse_maintenance(struct client *client, struct lane *lane,
                                     struct request *request, struct slice reply)
{
    struct verdict verdict;
    enum route result = answer_unless_passed(client, lane, request, &verdict);
    if (result != ROUTE_GOES_ON)
        return result;
    charge_answered(client, verdict.counted);
    charge_bytes_in(client, request->n_bytes, verdict.counted);
    return client_is_closed(client) ? ROUTE_STOP : answer_error(client, lane, request, reply);
}

static struct slice unknown_name(const struct client *client, const struct request *request,
                                 char *out)
{
    return unknown_command(request, front_is_before_7(client->front), out);
}

static struct slice unknown_of_container(const struct client *client, const struct request *request,
                                         char *out)
{
    return unknown_subcommand(request, front_is_before_7(client->front), out);
}

/*
 * Answers requests that Redis must not see. Inside MULTI the lane must receive an invalid command,
 * so that EXEC runs nothing.
 */
static enum route route_refuse(struct client *client, struct lane *lane, struct request *request)
{
    char unknown[UNKNOWN_ROOM];
    struct slice refusal = refusal_in_multi(client, request);
    if (refusal.len > 0)
        return answer_error(client, lane, request, refusal);
    if (request_is_unseen(request))
        return answer_error(client, lane, request, SLICE("-ERR the arguments are too long\r\n"));
    if (payer_is_hidden(client, request))
        return answer_error(client, lane, request,
                            SLICE("-ERR the arguments before the key are too long: limits need "
                                  "the key\r\n"));
    enum route about_cluster = cluster_commands_answer(client, lane, request);
    if (about_cluster != ROUTE_GOES_ON)
        return about_cluster;
    if (unknown_by_luck(request->name))
        return answer_error(client, lane, request, unknown_name(client, request, unknown));
    if (request->command->flow == FLOW_OWN)
        return refuse_own(client, lane, request);
    if (unknown_by_luck(request->args[0]) && has_subcommands(client->front, request->name))
        return answer_error(client, lane, request, unknown_of_container(client, request, unknown));
    if (asks_for_maintenance(client, request))
        return refuse_maintenance(client, lane, request,
                                  unknown_of_container(client, request, unknown));
    return ROUTE_GOES_ON;
}

/* As forward, but sends the request by a place. */
static enum route forward_by_place(struct client *client, struct request *request)
{
    enum route result = route_refuse(client, NULL, request);
    if (result == ROUTE_GOES_ON && !is_place_at_hand(client, request))
        result = answer_refusal(client, request);
    struct place *place = NULL;
    struct lane *lane = NULL;
    if (result == ROUTE_GOES_ON)
        result = find_place(client, request, &place, &lane);
    if (result == ROUTE_GOES_ON)
        result = route_ask_gate(client, NULL, request);
    if (result != ROUTE_GOES_ON)
        return result;
    place_send(place, lane, request);
    if (client_is_closed(client))
        return ROUTE_STOP;
    places_note_keys(client, request);
    return ROUTE_TAKEN;
}

/* On a cluster: chooses the node. */
static enum route aim(struct client *client, const struct request *request)
{
    struct nodes_row *row = target_for(client, request);
    /* the place holds the proof of the login */
    bool needs_place = row != front_default_row(client->front) && session_login(client) != NULL;
    bool is_set = target_set(client, row) && (!needs_place || place_get(client, row) != NULL);
    return is_set ? ROUTE_GOES_ON : ROUTE_STOP;
}

/*
 * Sends one request by the client's main side. The gate first checks for a refusal, so that a
 * refused request opens no connection. The gate charges once a lane is ready, so that a request
 * passes at the moment of its charge. A slow connect can therefore not release more requests at
 * once than the limits allow. Inside MULTI the client has a lane already, and a refusal must void
 * the transaction on that lane.
 */
static enum route forward(struct client *client, struct request *request)
{
    /* the gate decided before Redis was asked about the login */
    bool is_asked = login_has_begun(client);
    if (client_is_on_cluster(client)) {
        bool may_probe = request->is_large && !target_is_held(client);
        enum route aimed = may_probe ? carry_probe(client, request) : ROUTE_GOES_ON;
        if (aimed == ROUTE_GOES_ON)
            aimed = aim(client, request);
        if (aimed != ROUTE_GOES_ON)
            return aimed;
    }
    if (!transaction_is_open(&client->transaction)) {
        enum route result = route_refuse(client, NULL, request);
        if (result == ROUTE_GOES_ON && !is_asked && !lane_choice_is_at_hand(client, request))
            result = answer_refusal(client, request);
        if (result != ROUTE_GOES_ON)
            return result;
        if (subscribe_takes(client, request))
            return subscribe_run(client, request);
    }

    struct lane *lane = NULL;
    enum route found = route_find_lane(client, request, &lane);
    if (found != ROUTE_GOES_ON)
        return found;
    if (stateful_must_wait(client, request)) {
        client_wait_for_replies(client);
        return ROUTE_WAIT;
    }
    if (client_is_on_cluster(client) && transaction_is_open(&client->transaction)) {
        enum route begun = multi_begin_on(client, lane);
        if (begun != ROUTE_GOES_ON)
            return begun;
    }
    if (transaction_is_open(&client->transaction)) {
        enum route result = route_refuse(client, lane, request);
        if (result != ROUTE_GOES_ON)
            return result;
    }
    if (!is_asked) {
        enum route result = route_ask_gate(client, lane, request);
        if (result != ROUTE_GOES_ON) {
            if (result == ROUTE_TAKEN && client_has_own_lane(client) &&
                client->lane_user.in_flight == 0)
                /* the refused request needs no lane: once woken, the client gives it back */
                link_wake(&client->link);
            return result;
        }
    }
    return send_on(client, lane, request);
}

/* Answers INFO of an operator with weir's own text. */
static enum route tell_info(struct client *client, struct request *request)
{
    if (client_has_own_lane(client) && client->lane_user.in_flight > 0) {
        client_wait_for_replies(client);
        return ROUTE_WAIT;
    }
    limit_command_info(client, request);
    answer_count(client, request, RESULT_LOCAL);
    return client_is_closed(client) ? ROUTE_STOP : ROUTE_TAKEN;
}

/* Answers RESET. A private lane that stays or is subscribed is reset in Redis, too. */
static enum route route_reset(struct client *client, struct request *request)
{
    enum route result = subscribe_reset(client);
    if (result != ROUTE_GOES_ON)
        return result;
    if (!client_has_own_lane(client))
        return answer_reset(client, request);
    switch (login_renew(client, (request->command->flags & CMD_HANDSHAKE) != 0)) {
    case LOGIN_WAITS:
        return ROUTE_WAIT;
    case LOGIN_PASSED:
        return answer_reset(client, request);
    default:
        return client_is_leaving(client) ? ROUTE_STOP : refuse_unproven(client, request);
    }
}

/*
 * True if the request would end or change the client's session before requests that may come back
 * are answered. Requests that come back are sent again in the session in which they came.
 */
static bool must_wait_for_kept(const struct client *client, const struct request *request)
{
    enum effect effect = (enum effect)request->command->effect;
    return client_extra(client)->unanswered.first != NULL &&
           (request->command->flow == FLOW_QUIT || request->command->flow == FLOW_DROP ||
            effect == EFFECT_AUTH || effect == EFFECT_HELLO || effect == EFFECT_RESET);
}

/* True if the request goes by the client's main side, and calls of places or hops are in flight. */
static bool must_wait_for_places(const struct client *client, const struct request *request)
{
    return spread_in_flight(client_extra(client)->spread) > 0 && !places_take(client, request) &&
           !compound_takes(client, request);
}

/* On a cluster: sends the request by a place, as several calls, or as on one server. */
static enum route forward_by_slot(struct client *client, struct request *request)
{
    if (compound_takes(client, request)) {
        if (client_need_spread(client) == NULL)
            return ROUTE_STOP;
        if (client->lane_user.in_flight == 0 && !places_must_settle(client))
            return compound_run(client, request);
        client_wait_for_replies(client);
        return ROUTE_WAIT;
    }
    return places_take(client, request) ? forward_by_place(client, request)
                                        : forward(client, request);
}

/* On a cluster: true if a call on the client's private lane may still come back. */
static bool must_wait_for_carried(struct client *client)
{
    if (!carry_is_busy(client))
        return false;
    carry_go_on(client); /* the call may just have been answered */
    if (client_is_closed(client) || !carry_is_busy(client))
        return client_is_closed(client);
    if (client->lane_user.in_flight > 0)
        client_wait_for_replies(client);
    else
        client_wait(client, WAIT_AGAIN);
    return true;
}

static enum route route(struct client *client, struct request *request)
{
    if (subscribe_is_under_way(client))
        return subscribe_run(client, request);
    if (must_wait_for_kept(client, request) || must_wait_for_places(client, request)) {
        client_wait_for_replies(client);
        return ROUTE_WAIT;
    }
    if (must_wait_for_carried(client))
        return client_is_closed(client) ? ROUTE_STOP : ROUTE_WAIT;
    const struct command *command = request->command;
    if (read_side_of(client) != NULL && reads_settle(client, request) == READS_WAIT)
        return ROUTE_WAIT;
    if (client->unbound != NULL && (command->flags & CMD_HANDSHAKE) == 0 && !binding_bind(client))
        return ROUTE_STOP;
    if (command->flow == FLOW_DROP && !pin_has(client, PIN_PASSTHROUGH)) {
        client_drop(client);
        return ROUTE_STOP;
    }
    if (client_extra(client)->n_asked > 0 && !quota_decides(command)) {
        client_wait(client, WAIT_DECISION);
        return ROUTE_WAIT;
    }
    if (command->flow == FLOW_QUIT && !pin_has(client, PIN_PASSTHROUGH)) {
        answer_count(client, request, RESULT_LOCAL);
        return answer_quit(client);
    }
    if (client_is_operator(client) && limit_command_is_info(client, request))
        return tell_info(client, request);
    if (client_is_operator(client)) {
        enum route result = console_answer(client, request);
        if (result != ROUTE_GOES_ON)
            return result;
    }
    if (!transaction_is_open(&client->transaction) && reads_take_word(client, request)) {
        answer_count(client, request, RESULT_LOCAL);
        return answer_with(client, SLICE("+OK\r\n"));
    }
    enum effect effect = request_effect(request);
    if (transaction_is_broken(&client->transaction) && effect != EFFECT_RESET) {
        return answer_broken_multi(client, request);
    }
    transaction_end_broken(&client->transaction);
    if (effect == EFFECT_RESET && !pin_has(client, PIN_PASSTHROUGH))
        return route_reset(client, request);

    if (client_is_on_cluster(client) && !pin_has(client, PIN_PASSTHROUGH)) {
        enum route result = multi_take(client, request);
        if (result != ROUTE_GOES_ON)
            return result;
    }
    if (command->flow == FLOW_OWN && !transaction_is_open(&client->transaction))
        return run_own(client, request);
    struct hello hello;
    bool is_login =
        (effect == EFFECT_AUTH || effect == EFFECT_HELLO) && !pin_has(client, PIN_PASSTHROUGH);
    if (!is_login)
        return client_is_on_cluster(client) ? forward_by_slot(client, request)
                                            : forward(client, request);
    enum route result = log_in(client, request, &hello);
    if (result == ROUTE_GOES_ON)
        result = forward(client, request);
    if (result != ROUTE_WAIT)
        login_end(client);
    return result;
}

/* Routes the request and charges its bytes. Bytes of refused requests are not charged. */
static enum route route_counted(struct client *client, struct request *request, size_t n_bytes)
{
    request->n_bytes = n_bytes;
    enum route result = route(client, request);
    if (result != ROUTE_WAIT)
        outage_end(client);
    if (result == ROUTE_TAKEN)
        charge_withdraw(client);
    if (result == ROUTE_TAKEN && !request->is_refused && !request->is_paid)
        charge_bytes_in(client, n_bytes, request->counted);
    return result;
}

/* An empty request asks for nothing and gets no reply, but its bytes count. */
static enum route route_nothing(struct client *client, size_t n_bytes)
{
    enum gate gate = charge_ask_bytes(client, n_bytes);
    if (gate != GATE_PASS)
        return gate == GATE_WAIT ? ROUTE_WAIT : ROUTE_STOP;
    charge_bytes_in(client, n_bytes, 0);
    return ROUTE_TAKEN;
}

/* Rewrites an inline request as multibulk, and routes it. */
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
        count_add(&client->front->counts.protocol_errors[ERR_PROTO_UNBALANCED_QUOTES], 1);
        client_answer(client, err_text(ERR_PROTO_UNBALANCED_QUOTES));
        client_leave_for(client, CLOSED_PROTOCOL);
        result = ROUTE_STOP;
    } else if (len == 0) {
        result = route_nothing(client, line.len);
    } else if (request_scan(&scan, &request_limits_normal, out, len, &used) == SCAN_FRAME) {
        struct request request = {0};
        describe_request(&request, client->front, &scan, slice_of(out, len));
        result = route_counted(client, &request, line.len);
    }
    /* sends the gathered bytes before `out` is freed */
    outbox_flush(&client->front->nodes.worker_lanes.outbox);
    free(out);
    return result;
}

enum route route_request(struct client *client, const struct request_scan *scan, struct slice bytes)
{
    if (scan->is_inline)
        return route_inline(client, bytes);
    if (scan->argc == 0)
        return route_nothing(client, bytes.len);
    /* the request came whole, but other clients must not wait behind it */
    if (bytes.len > LARGE_REQUEST)
        client_note_heavy(client);
    struct request request = {0};
    describe_request(&request, client->front, scan, bytes);
    return route_counted(client, &request, bytes.len);
}

enum route route_large(struct client *client, const struct request_scan *scan, struct slice bytes)
{
    struct extra *extra = client_need_extra(client);
    struct passage *passage = extra != NULL ? malloc(sizeof *passage) : NULL;
    if (passage == NULL)
        return out_of_memory(client);
    client_note_heavy(client);
    struct request request = {.is_large = true};
    bool is_skipped = reply_mode_skips(&client->reply_mode);
    describe_request(&request, client->front, scan, bytes);
    enum route result = route_counted(client, &request, bytes.len);
    if (result != ROUTE_TAKEN) {
        free(passage);
        return result;
    }
    *passage = (struct passage){
        .scan = *scan,
        .tag = timing_tag(client, request.command, request.argc),
        .counted = request.counted,
        .is_refused = request.is_refused,
        .may_block = request_may_block(&request) && !transaction_is_open(&client->transaction),
        .is_skipped = is_skipped,
    };
    extra->passage = passage;
    client->lane_user.is_sending = !request.is_refused;
    return ROUTE_TAKEN;
}
