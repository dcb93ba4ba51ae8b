#include "front/special.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/num.h"
#include "front/account.h"
#include "front/catalog.h"
#include "front/holds.h"
#include "front/login.h"
#include "front/pacing.h"
#include "front/proof.h"
#include "front/rewrite.h"
#include "front/session.h"
#include "front/setinfo.h"
#include "front/timing.h"
#include "resp/argv.h"

#define REQUEST(words) words, sizeof(words) - 1

static const char refused_request[] = "*1\r\n$12\r\nWEIR.REFUSED\r\n";
static const char reply_on_request[] = "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$2\r\nON\r\n";
static const char reply_off_request[] = "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$3\r\nOFF\r\n";
static const char no_name_request[] = "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$0\r\n\r\n";

/* Whose answer decides where the client goes on, or by which name: nothing is taken until it has come. */
static bool is_session(enum effect effect)
{
    return effect == EFFECT_HELLO || effect == EFFECT_NAME || effect == EFFECT_SELECT;
}

/* What Redis remembers of a connection, and may remember after it has been RESET. */
static bool is_mark(enum effect effect)
{
    return effect == EFFECT_TRACKING || effect == EFFECT_NO_EVICT || effect == EFFECT_NO_TOUCH;
}

/*
 * Who monitors already, and may, gets no answer to another MONITOR, and whoever may not an error: whether there is one only
 * Redis can tell. Where it is always an error it is like any other.
 */
static bool is_monitor_again(const struct client *client, const struct request *request)
{
    const struct lane *lane = client->has_private_lane ? client->rider.lane : NULL;
    if (request->command->flow != FLOW_MONITOR || lane == NULL || !lane_is_monitoring(lane))
        return false;
    bool is_resp2 = lane->key.protocol != 3 && !lane->is_unsure;
    return request->argc == 1 && !(lane_is_subscribed(lane) && is_resp2);
}

static bool makes_raw(const struct client *client, const struct request *request)
{
    if (transaction_is_open(&client->transaction))
        return request_effect(request) == EFFECT_EXEC && request->argc == 1 && client->transaction.is_raw;
    return request->command->flow == FLOW_RAW || is_monitor_again(client, request);
}

bool special_is_plain(const struct client *client, const struct request *request)
{
    const struct command *command = request->command;
    return command->flow == FLOW_ONE && command->effect == EFFECT_NONE && !command->blocks && !command->pins &&
           command->id != 0 && !command->is_urgent && !reply_mode_is_deaf(&client->reply_mode) && !client->is_raw &&
           !proof_is_sought(client);
}

static bool hears(const struct client *client)
{
    return !transaction_is_open(&client->transaction) && !reply_mode_is_deaf(&client->reply_mode);
}

/* Whose answer is changed on its way. */
static bool must_gather(const struct client *client, const struct request *request)
{
    return request_effect(request) == EFFECT_COMMAND && hears(client);
}

/* Is something concluded from its answer? */
static bool is_looked_at(const struct client *client, const struct request *request)
{
    return !transaction_is_open(&client->transaction) &&
           (request->command->flow != FLOW_ONE || request_effect(request) != EFFECT_NONE || request->command->id == 0);
}

bool special_must_wait(const struct client *client, const struct request *request)
{
    if (client->rider.in_flight == 0 || client->is_raw)
        return false;
    if (must_gather(client, request) || proof_must_wait(client, request))
        return true;
    if (client->has_private_lane && lane_must_settle(client->rider.lane) && is_looked_at(client, request))
        return true;
    if (request->command->flow == FLOW_MONITOR && !transaction_is_open(&client->transaction))
        return true; /* a second one may not be answered */
    enum effect effect = request_effect(request);
    bool is_special = request->command->flow != FLOW_ONE || effect != EFFECT_NONE;
    return makes_raw(client, request) || (is_special && transaction_must_settle(&client->transaction, effect));
}

/* ---- sending ---- */

static struct call *send_muted(struct client *client, struct lane *lane, const char *request, size_t n)
{
    struct call *call = lane_call_special(lane, &client->rider, FLOW_ONE, 1, 0);
    if (call == NULL)
        return NULL;
    call->flags = CALL_MUTE;
    call->arrived_ns = 0;
    lane_send(lane, &client->rider, request, n);
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
    if (!client->is_raw) {
        holds_be_raw(client);
        lane_pass_through(lane);
    }
    lane_send(lane, &client->rider, request->bytes.at, request->bytes.len);
    return true;
}

/*
 * CLIENT REPLY is kept here: on a lane every request is answered, and what the client does not want to hear is thrown
 * away. Redis still says whether the client may use the command, through CLIENT REPLY ON, which changes nothing.
 */
static bool send_client_reply(struct client *client, struct lane *lane, const struct request *request)
{
    /* By enum word_heard. */
    static const uint8_t flags[] = {0, CALL_MUTE, CALL_MUTE_ERROR, CALL_MUTE_UNLESS_ERROR};
    enum reply_word word = request_reply_word(request);
    uint32_t tag = timing_tag(request->command, request->argc);
    struct call *call = lane_call_special(lane, &client->rider, FLOW_ONE, 1, tag);
    if (call == NULL)
        return false;
    if (word == REPLY_NONE) {
        if (reply_mode_take(&client->reply_mode))
            call->flags |= CALL_MUTE;
        lane_send(lane, &client->rider, request->bytes.at, request->bytes.len);
        return true;
    }
    call->flags |= CALL_LOOK | flags[reply_mode_hears(&client->reply_mode, word)];
    call->effect = EFFECT_REPLY;
    call->argument = word;
    client_hold(client); /* Redis may refuse it, and then what follows is heard */
    lane_send(lane, &client->rider, REQUEST(reply_on_request));
    return true;
}

static bool may_confirm(const struct request *request)
{
    enum flow flow = (enum flow)request->command->flow;
    return flow == FLOW_SUBSCRIBE || flow == FLOW_UNSUBSCRIBE || flow == FLOW_MONITOR;
}

/* What comes back, as far as it is more than one reply. */
static enum flow flow_of(struct client *client, const struct request *request, bool is_queued)
{
    enum flow flow = (enum flow)request->command->flow;
    if (is_queued) {
        /* Whom CLIENT REPLY silences already hears of EXEC only what follows heard_from. */
        enum reply_word word = request_reply_word(request);
        if (!reply_mode_is_off(&client->reply_mode) &&
            (may_confirm(request) || word == REPLY_OFF || word == REPLY_SKIP))
            transaction_note_raw(&client->transaction);
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

static bool has_word(const struct request *request, struct slice wanted)
{
    struct argv_walk walk;
    struct slice word;
    argv_walk_init(&walk, request->bytes);
    while (argv_next(&walk, &word))
        if (slice_is_word(word, wanted))
            return true;
    return false;
}

/* Of CLIENT PAUSE ms WRITE; of ALL nothing, which holds back everything on whatever lane. */
static uint32_t pause_ms(const struct request *request)
{
    int64_t ms;
    if (request->argc != 4 || !has_word(request, SLICE("write")) || !num_parse(request->args[1], &ms) || ms < 0)
        return 0;
    return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

/* ACL LOAD, ACL SETUSER default ..., CONFIG SET requirepass ...: each is about whom Redis takes a stranger for. */
static bool admits(const struct request *request, enum effect effect)
{
    return effect == EFFECT_ADMIT && (request->argc == 2 || request->is_large || has_word(request, SLICE("default")) ||
                                      has_word(request, SLICE("requirepass")));
}

/* The number that the effect is about: a database, on and off, or milliseconds. */
static uint32_t argument_of(const struct request *request, enum effect effect)
{
    int64_t number;
    switch (effect) {
    case EFFECT_SELECT:
        return num_parse(request->args[0], &number) && number >= 0 && number <= INT32_MAX ? (uint32_t)number : 0;
    case EFFECT_TRACKING:
    case EFFECT_NO_EVICT:
    case EFFECT_NO_TOUCH:
        return slice_is_word(request->args[1], SLICE("on"));
    case EFFECT_PAUSE:
        return pause_ms(request);
    default:
        return 0;
    }
}

static uint32_t heard_from(const struct client *client)
{
    return client_extra(client)->queued.heard_from;
}

/* CLIENT SETNAME does what can be read of it, too. */
static bool can_rename(const struct request *request)
{
    return !request->is_large && request->argc == 3 && hello_is_name(request->args[1]);
}

/* What will be of use at EXEC. False: out of memory. */
static bool queue(struct queued *queued, const struct request *request, enum effect effect)
{
    switch (effect) {
    case EFFECT_PAUSE:
        queued_pause(queued, pause_ms(request));
        return true;
    case EFFECT_TRACKING:
        queued_go_astray(queued);
        return true;
    case EFFECT_NAME:
        if (request->is_large)
            queued_go_astray(queued);
        return !can_rename(request) || queued_rename(queued, request->args[1]);
    case EFFECT_SELECT:
        return queued_select(queued, argument_of(request, EFFECT_SELECT));
    case EFFECT_HELLO:
        return queued_hello(queued, request->hello);
    default:
        return true;
    }
}

/*
 * What is queued takes effect at EXEC, among replies that nobody looks into. Who has a lane of its own, and so MULTI, has
 * its `extra` too.
 */
static void note_queued(struct client *client, const struct request *request, enum effect effect, struct call *call)
{
    struct queued *queued = &client->extra->queued;
    if (request->command->pins || is_session(effect) || is_mark(effect))
        holds_pin(client);
    if (request->command->id == 0)
        call->flags |= CALL_LOOK; /* is it there? */
    if (admits(request, effect))
        transaction_note_admission(&client->transaction);
    if (effect == EFFECT_HELLO)
        client->rider.lane->is_unsure = true;
    if (reply_mode_is_off(&client->reply_mode))
        queued_add_silent(queued, request_reply_word(request) == REPLY_ON || may_confirm(request));
    if (!queue(queued, request, effect))
        client_close_starved(client);
    if (request->hello != NULL && request->hello->has_auth)
        login_queue(client, request->hello);
    queued_add(queued);
}

/* Of what EXEC answers only what follows `heard_from` is heard, without what would tell how much that is. */
static void expect_tail(struct client *client, struct call *call)
{
    call->flags = CALL_LOOK | CALL_TAIL;
    call->argument = heard_from(client) - 1;
    client_hold(client);
}

/* What it carries out it does to the lane, to the client, and to those who do not log in. */
static void note_exec(struct client *client, struct lane *lane, struct call *call, struct transaction ended)
{
    struct queued *queued = &client->extra->queued;
    if (queued->heard_from > 0)
        expect_tail(client, call);
    else
        call->argument = queued->pause_ms;
    if (ended.admits)
        call->flags |= CALL_ADMITS;
    if (ended.forges)
        lane_distrust(lane);
    lane->is_telling |= queued->login != NULL;
    /* Who it is then is not known before it has been answered, nor in which protocol that is, or which database. */
    if (queued->login != NULL || queued_has_session(queued))
        client_hold(client);
    queued_end(queued);
}

static void note_transaction(struct client *client, struct lane *lane, struct call *call, struct transaction before)
{
    switch (call->effect) {
    case EFFECT_MULTI:
        queued_begin(&client->extra->queued);
        break;
    case EFFECT_EXEC:
        note_exec(client, lane, call, before);
        break;
    case EFFECT_DISCARD:
        queued_end(&client->extra->queued);
        break;
    default:
        break;
    }
}

static bool gives_name(const struct request *request, enum effect effect)
{
    return effect == EFFECT_NAME || (effect == EFFECT_HELLO && request->hello->has_name);
}

/* On a lane for all there is no name: Redis says whether the client may ask for its own, and weir which that is. */
static void note_name_asked(struct client *client, const struct lane *lane, struct call *call)
{
    call->argument = 0;
    if (lane->role != LANE_SHARED || session_name(client).len == 0 || (call->flags & CALL_MUTE) != 0)
        return;
    call->argument = 1;
    call->flags |= CALL_MUTE_UNLESS_ERROR;
    client_hold(client);
}

static void note_sent(struct client *client, struct lane *lane, const struct request *request, enum effect effect,
                      struct call *call)
{
    const struct transaction before = client->transaction;
    call->effect = (uint8_t)transaction_send(&client->transaction, effect);
    call->argument = argument_of(request, effect);
    if (request->command->pins)
        holds_pin(client);
    proof_note_sent(client, request, call);
    if (call->effect == EFFECT_NONE && (call->flags & CALL_MUTE_ERROR) != 0 && request->command->id != 0 &&
        !client->is_urgent)
        call->effect = EFFECT_UNHEARD;
    if (call->effect != EFFECT_NONE || request->command->id == 0)
        call->flags |= CALL_LOOK;
    note_transaction(client, lane, call, before);
    if (admits(request, effect))
        call->flags |= CALL_ADMITS;
    if (gives_name(request, effect))
        lane->has_name |= client->has_private_lane;
    if (client->is_urgent)
        call->flags |= CALL_LOOK;
    if (effect == EFFECT_COMMAND && (call->flags & CALL_MUTE) == 0)
        catalog_ask(client, request->bytes);
    if (call->effect == EFFECT_GETNAME)
        note_name_asked(client, lane, call);
    if (client->is_urgent || is_session(effect)) /* what follows belongs to its own database; or to another session */
        client_hold(client);
}

/* What it asks for is noted before its call is, which cannot be taken back. False: out of memory. */
static bool note_asked(struct client *client, const struct lane *lane, const struct request *request,
                       enum effect effect)
{
    const struct hello *hello = request->hello;
    switch (effect) {
    case EFFECT_HELLO:
        return session_ask(client, rewrite_protocol(lane, hello), hello->has_name, hello->name);
    case EFFECT_NAME:
        return session_ask(client, 0, true, request->args[1]);
    case EFFECT_SELECT:
        return session_ask(client, 0, false, SLICE(""));
    case EFFECT_LIBRARY:
        return setinfo_note(client, request);
    default:
        return true;
    }
}

static bool send_bytes(struct client *client, struct lane *lane, const struct request *request)
{
    enum effect effect = request_effect(request);
    struct rider *rider = &client->rider;
    if (effect == EFFECT_HELLO && !transaction_is_open(&client->transaction))
        return rewrite_hello(client, lane, request->hello);
    if (effect == EFFECT_HELLO && request->hello->n_wrong > 0)
        return rewrite_wrong_hello(client, lane, request->hello);
    if (effect == EFFECT_TRACKING)
        return rewrite_tracking(client, lane, request);
    /* Nobody's name belongs on a lane for all; Redis is asked for leave all the same. */
    if (effect == EFFECT_LIBRARY)
        setinfo_send(client, lane, request);
    else if (effect == EFFECT_NAME && !client->has_private_lane && hello_is_name(request->args[1]))
        lane_send(lane, rider, REQUEST(no_name_request));
    else if (reply_mode_is_off(&client->reply_mode) && transaction_is_open(&client->transaction) &&
             heard_from(client) == 0 && request_reply_word(request) != REPLY_NONE)
        lane_send(lane, rider, REQUEST(reply_on_request)); /* queued: no lane falls silent */
    else
        lane_send(lane, rider, request->bytes.at, request->bytes.len);
    return true;
}

static bool send_call(struct client *client, struct lane *lane, const struct request *request)
{
    enum effect effect = request_effect(request);
    bool is_later = transaction_queues(&client->transaction, effect);
    if (client->has_private_lane && is_looked_at(client, request) && !lane_vouch(lane, &client->rider))
        return false;

    if (client->has_private_lane && !is_later && setinfo_is_asked(request) && !setinfo_tell(client, lane))
        return false;

    if ((!is_later || effect == EFFECT_LIBRARY) && !note_asked(client, lane, request, effect))
        return false;

    /* Even the silenced hear confirmations, and nothing else: Redis itself must hold back what comes among them. */
    bool falls_silent =
        is_later && reply_mode_is_off(&client->reply_mode) && heard_from(client) == 0 && may_confirm(request);
    if (falls_silent && send_muted(client, lane, REQUEST(reply_off_request)) == NULL)
        return false;
    if (falls_silent)
        queued_add(&client->extra->queued);

    enum flow flow = flow_of(client, request, is_later);
    uint32_t tag = timing_tag(request->command, request->argc);
    struct call *call = lane_call_special(lane, &client->rider, (uint8_t)flow, frames_of(request, flow), tag);
    if (call == NULL)
        return false;
    call->counted = request->counted;
    /* Confirmations are pushes to Redis, and come even to the silenced; an error in their place does not. */
    if (reply_mode_take(&client->reply_mode))
        call->flags |= flow != FLOW_SUBSCRIBE && flow != FLOW_UNSUBSCRIBE ? CALL_MUTE : CALL_MUTE_ERROR;
    if (request_may_block(request) && !is_later)
        call->flags |= CALL_MAY_WAIT;
    else if (flow == FLOW_ONE && !request->is_large)
        pacing_note_sent(client, 1);
    if (is_later) {
        note_queued(client, request, effect, call);
    } else {
        note_sent(client, lane, request, effect, call);
    }
    return send_bytes(client, lane, request);
}

/* Who it is, and what answers nobody can tell apart, is not to be known together. */
static bool hides_login(const struct client *client, const struct request *request, bool is_raw)
{
    bool ends_queue = request_effect(request) == EFFECT_EXEC && client_extra(client)->queued.login != NULL;
    return (ends_queue && (is_raw || heard_from(client) > 0)) || (client->is_raw && request_logs_in(request));
}

static void close_hidden(struct client *client)
{
    session_log_closed(client, LOG_SITE_CLIENT_CLOSED, "it logs in where its replies cannot be told apart");
    client_leave_for(client, CLOSED_PROTOCOL);
}

bool special_send(struct client *client, struct lane *lane, const struct request *request)
{
    bool is_raw = client->is_raw || makes_raw(client, request);
    if (hides_login(client, request, is_raw)) {
        close_hidden(client);
        return true;
    }
    bool is_reply =
        request->command->flow == FLOW_REPLY && !transaction_is_open(&client->transaction) && !request->is_large;
    if (!is_raw && !is_reply)
        return send_call(client, lane, request);
    account_answered(client, request->counted); /* no call of its own that would be answered */
    return is_raw ? send_raw(client, lane, request) : send_client_reply(client, lane, request);
}
