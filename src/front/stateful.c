#include "front/stateful.h"

#include "base/clock.h"
#include "base/num.h"
#include "front/binding.h"
#include "front/catalog.h"
#include "front/lane_choice.h"
#include "front/login.h"
#include "front/rewrite.h"
#include "front/session.h"
#include "front/setinfo.h"
#include "front/wait_coverage.h"
#include "resp/argv.h"
#include "resp/emit.h"
#include "upstream/lend.h"

static bool is_error(const struct glimpse *reply)
{
    return glimpse_type(reply) == '-';
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

/* ---- HELLO, CLIENT SETNAME, SELECT: the answer decides how the client goes on, so nothing is taken before it ---- */

static bool prepare_hello(struct client *client, struct lane *lane, const struct request *request)
{
    const struct hello *hello = request->hello;
    return session_ask(client, rewrite_protocol(lane, hello), hello->has_name, hello->name);
}

static void hello_sent(struct client *client, struct lane *lane, const struct request *request, struct call *call)
{
    (void)call;
    lane->has_name |= client->has_private_lane && request->hello->has_name;
    client_hold(client);
}

/* Inside MULTI only what is well put, without a login and of the client's protocol: as it came. */
static bool send_hello(struct client *client, struct lane *lane, const struct request *request)
{
    if (!transaction_is_open(&client->transaction))
        return rewrite_hello(client, lane, request->hello);
    lane_send(lane, &client->rider, request->bytes.at, request->bytes.len);
    return true;
}

static bool prepare_name(struct client *client, struct lane *lane, const struct request *request)
{
    (void)lane;
    return session_ask(client, 0, true, request->args[1]);
}

static void name_sent(struct client *client, struct lane *lane, const struct request *request, struct call *call)
{
    (void)request;
    (void)call;
    lane->has_name |= client->has_private_lane;
    client_hold(client);
}

/* A shared lane bears no client's name. Redis still says whether the client may have one. */
static bool send_name(struct client *client, struct lane *lane, const struct request *request)
{
    static const char no_name[] = "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$0\r\n\r\n";
    if (!client->has_private_lane && hello_is_name(request->args[1]))
        lane_send(lane, &client->rider, no_name, sizeof no_name - 1);
    else
        lane_send(lane, &client->rider, request->bytes.at, request->bytes.len);
    return true;
}

static void asked_answered(struct client *client, const struct call *call, const struct glimpse *reply)
{
    (void)call;
    client_go_on(client);
    if (is_error(reply))
        return;
    if (session_take_asked(client))
        lane_choice_note_name(client);
    (void)binding_change(client);
}

static bool prepare_select(struct client *client, struct lane *lane, const struct request *request)
{
    (void)lane;
    (void)request;
    return session_ask(client, 0, false, SLICE(""));
}

static void select_sent(struct client *client, struct lane *lane, const struct request *request, struct call *call)
{
    int64_t number;
    (void)lane;
    call->argument = num_parse(request->args[0], &number) && number >= 0 && number <= INT32_MAX ? (uint32_t)number : 0;
    client_hold(client);
}

static void select_answered(struct client *client, const struct call *call, const struct glimpse *reply)
{
    client_go_on(client);
    if (is_error(reply))
        return;
    if (session_select(client, call->argument))
        (void)binding_change(client);
    else
        client_close_starved(client);
}

/* ---- RESET: weir's own on the client's lane, before its answer to the client (answer.c) ---- */

static void reset_answered(struct client *client, const struct call *call, const struct glimpse *reply)
{
    (void)call;
    if (glimpse_starts(reply, SLICE("+RESET")))
        return;
    lane_choice_abandon(client);
    pins_end(client);
}

/* ---- transactions ---- */

static void multi_sent(struct client *client, struct lane *lane, const struct request *request, struct call *call)
{
    (void)lane;
    (void)request;
    (void)call;
    client->extra->pause_ms = 0;
}

static void multi_answered(struct client *client, const struct call *call, const struct glimpse *reply)
{
    (void)call;
    transaction_answered(&client->transaction, EFFECT_MULTI, !is_error(reply));
}

static void exec_sent(struct client *client, struct lane *lane, const struct request *request, struct call *call)
{
    (void)request;
    call->argument = client->extra->pause_ms;
    if (client->transaction.admits)
        call->flags |= CALL_ADMITS;
    if (client->transaction.forges)
        lane_distrust(lane);
}

/* CLIENT PAUSE ms WRITE has been carried out. */
static void pause_answered(struct client *client, const struct call *call, const struct glimpse *reply)
{
    if (!is_error(reply) && call->argument > 0)
        node_pause(lane_node(client->rider.lane), clock_ns() + call->argument * NS_PER_MS);
}

static void exec_answered(struct client *client, const struct call *call, const struct glimpse *reply)
{
    pin_end(client, PIN_WATCH); /* whatever the answer is */
    pause_answered(client, call, reply);
}

static void discard_answered(struct client *client, const struct call *call, const struct glimpse *reply)
{
    (void)call;
    transaction_answered(&client->transaction, EFFECT_DISCARD, !is_error(reply));
    if (!is_error(reply))
        pin_end(client, PIN_WATCH);
}

static void watch_answered(struct client *client, const struct call *call, const struct glimpse *reply)
{
    (void)call;
    if (!is_error(reply))
        pin_add(client, PIN_WATCH);
}

static void unwatch_answered(struct client *client, const struct call *call, const struct glimpse *reply)
{
    (void)call;
    if (!is_error(reply))
        pin_end(client, PIN_WATCH);
}

/* ---- CLIENT TRACKING, NO-EVICT, NO-TOUCH: on or off ---- */

static void switch_sent(struct client *client, struct lane *lane, const struct request *request, struct call *call)
{
    (void)client;
    (void)lane;
    call->argument = slice_is_word(request->args[1], SLICE("on"));
}

static void switch_answered(struct client *client, const struct call *call, const struct glimpse *reply)
{
    enum pin pin = call->effect == EFFECT_TRACKING   ? PIN_TRACKING
                   : call->effect == EFFECT_NO_EVICT ? PIN_NO_EVICT
                                                     : PIN_NO_TOUCH;
    if (is_error(reply))
        return;
    if (call->argument != 0)
        pin_add(client, pin);
    else
        pin_end(client, pin);
}

/* ---- CLIENT PAUSE, CLIENT UNPAUSE ---- */

/* Of CLIENT PAUSE ms WRITE; 0 of ALL, which holds back everything on whatever lane. */
static uint32_t pause_ms(const struct request *request)
{
    int64_t ms;
    if (request->argc != 4 || !has_word(request, SLICE("write")) || !num_parse(request->args[1], &ms) || ms < 0)
        return 0;
    return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

static void pause_sent(struct client *client, struct lane *lane, const struct request *request, struct call *call)
{
    (void)client;
    (void)lane;
    call->argument = pause_ms(request);
}

static void pause_queued(struct client *client, const struct request *request)
{
    client->extra->pause_ms = pause_ms(request);
}

static void end_urgent(struct client *client)
{
    if (client->is_urgent)
        client_go_on(client);
}

static void unpause_answered(struct client *client, const struct call *call, const struct glimpse *reply)
{
    (void)call;
    if (!is_error(reply))
        node_pause(lane_node(client->rider.lane), 0);
    end_urgent(client);
}

/* ---- ACL LOAD, ACL SETUSER default ..., CONFIG SET requirepass ...: whom Redis takes a stranger for ---- */

static bool admits(const struct request *request)
{
    return request->argc == 2 || request->is_large || has_word(request, SLICE("default")) ||
           has_word(request, SLICE("requirepass"));
}

static void admit_sent(struct client *client, struct lane *lane, const struct request *request, struct call *call)
{
    (void)client;
    (void)lane;
    if (admits(request))
        call->flags |= CALL_ADMITS;
}

static void admit_queued(struct client *client, const struct request *request)
{
    if (admits(request))
        transaction_note_admission(&client->transaction);
}

/* ---- COMMAND, CLIENT GETNAME, CLIENT SETINFO, CLIENT REPLY: weir answers, or changes the answer ---- */

static void command_sent(struct client *client, struct lane *lane, const struct request *request, struct call *call)
{
    (void)lane;
    if ((call->flags & CALL_MUTE) == 0)
        catalog_ask(client, request->bytes);
}

static void command_answered(struct client *client, const struct call *call, const struct glimpse *reply)
{
    (void)call;
    (void)reply;
    catalog_answered(client);
}

/* A shared lane bears no name: Redis says whether the client may ask for its own, and weir which that is. */
static void getname_sent(struct client *client, struct lane *lane, const struct request *request, struct call *call)
{
    (void)request;
    if (lane->role != LANE_SHARED || session_name(client).len == 0 || (call->flags & CALL_MUTE) != 0)
        return;
    call->argument = 1;
    call->flags |= CALL_MUTE_UNLESS_ERROR;
    client_hold(client);
}

static void answer_name(struct client *client)
{
    struct slice name = session_name(client);
    char header[EMIT_HEADER_MAX];
    client_answer_now(client, slice_of(header, emit_header(header, '$', (int64_t)name.len)));
    client_answer_now(client, name);
    client_answer_now(client, SLICE("\r\n"));
}

static void getname_answered(struct client *client, const struct call *call, const struct glimpse *reply)
{
    if (call->argument == 0)
        return;
    client_go_on(client);
    if (!is_error(reply))
        answer_name(client);
}

static bool prepare_library(struct client *client, struct lane *lane, const struct request *request)
{
    (void)lane;
    return setinfo_note(client, request);
}

static bool send_library(struct client *client, struct lane *lane, const struct request *request)
{
    setinfo_send(client, lane, request);
    return true;
}

static void library_answered(struct client *client, const struct call *call, const struct glimpse *reply)
{
    if (is_error(reply) && call->argument != 0)
        session_forget_library(client);
}

static void reply_answered(struct client *client, const struct call *call, const struct glimpse *reply)
{
    if (!is_error(reply))
        reply_mode_set(&client->reply_mode, (enum reply_word)call->argument);
    client_go_on(client);
}

/* ---- weir's own words on a client's lane ---- */

static void login_answered(struct client *client, const struct call *call, const struct glimpse *reply)
{
    (void)call;
    login_lane_answered(client, reply);
}

static void id_answered(struct client *client, const struct call *call, const struct glimpse *reply)
{
    (void)call;
    (void)reply;
    lend_list(client->rider.lane);
}

/* ---- what weir does not know ---- */

/* True if Redis does not know the command, which then has done nothing. */
static bool is_harmless(const struct glimpse *reply)
{
    static const struct slice harmless[] = {
        {"-ERR unknown ", 13},
        {"-ERR Unknown subcommand or wrong", 32}, /* up to 6.2 */
        {"-NOAUTH", 7},
        {"-NOPERM", 7},
    };
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++)
        if (glimpse_starts(reply, harmless[i]))
            return true;
    return false;
}

static void unknown_answered(struct client *client, const struct call *call, const struct glimpse *reply)
{
    (void)call;
    if (client->is_urgent)
        end_urgent(client);
    else if (!is_harmless(reply))
        pin_add(client, PIN_UNKNOWN);
}

/* ---- the table ---- */

static const struct stateful rows[] = {
    /* effect, prepare, sent, answered, queued, pin inside MULTI, send */
    [EFFECT_NONE] = {NULL, NULL, unknown_answered, NULL, 0, NULL},
    [EFFECT_HELLO] = {prepare_hello, hello_sent, asked_answered, NULL, PIN_SESSION, send_hello},
    [EFFECT_NAME] = {prepare_name, name_sent, asked_answered, NULL, PIN_SESSION, send_name},
    [EFFECT_SELECT] = {prepare_select, select_sent, select_answered, NULL, PIN_DATABASE, NULL},
    [EFFECT_RESET] = {NULL, NULL, reset_answered, NULL, 0, NULL},
    [EFFECT_MULTI] = {NULL, multi_sent, multi_answered, NULL, 0, NULL},
    [EFFECT_EXEC] = {NULL, exec_sent, exec_answered, NULL, 0, NULL},
    [EFFECT_DISCARD] = {NULL, NULL, discard_answered, NULL, 0, NULL},
    [EFFECT_WATCH] = {NULL, NULL, watch_answered, NULL, 0, NULL},
    [EFFECT_UNWATCH] = {NULL, NULL, unwatch_answered, NULL, 0, NULL},
    [EFFECT_TRACKING] = {NULL, switch_sent, switch_answered, NULL, PIN_SESSION, rewrite_tracking},
    [EFFECT_NO_EVICT] = {NULL, switch_sent, switch_answered, NULL, PIN_SESSION, NULL},
    [EFFECT_NO_TOUCH] = {NULL, switch_sent, switch_answered, NULL, PIN_SESSION, NULL},
    [EFFECT_PAUSE] = {NULL, pause_sent, pause_answered, pause_queued, 0, NULL},
    [EFFECT_UNPAUSE] = {NULL, NULL, unpause_answered, NULL, 0, NULL},
    [EFFECT_ADMIT] = {NULL, admit_sent, NULL, admit_queued, 0, NULL},
    [EFFECT_COMMAND] = {NULL, command_sent, command_answered, NULL, 0, NULL},
    [EFFECT_GETNAME] = {NULL, getname_sent, getname_answered, NULL, 0, NULL},
    [EFFECT_LIBRARY] = {prepare_library, NULL, library_answered, NULL, PIN_SESSION, send_library},
    [EFFECT_REPLY] = {NULL, NULL, reply_answered, NULL, 0, NULL},
    [EFFECT_WAIT] = {NULL, NULL, coverage_wait_answered, NULL, 0, NULL},
    [EFFECT_WRITE] = {NULL, NULL, coverage_write_answered, NULL, 0, NULL},
    [EFFECT_LOGIN] = {NULL, NULL, login_answered, NULL, 0, NULL},
    [EFFECT_ID] = {NULL, NULL, id_answered, NULL, 0, NULL},
};

const struct stateful *stateful_row(enum effect effect)
{
    static const struct stateful nothing;
    return effect < sizeof rows / sizeof rows[0] ? &rows[effect] : &nothing;
}

/*
 * True if Redis wants a password of a client that does not hear that. Redis had let the client in before: the
 * connection that it had there is gone. The client would lose command after command, or wait for CLIENT REPLY ON.
 */
static bool is_shut_out_unheard(const struct call *call, const struct glimpse *reply)
{
    return (call->flags & CALL_MUTE_ERROR) != 0 && glimpse_starts(reply, SLICE("-NOAUTH"));
}

void stateful_answered(struct client *client, const struct call *call, const struct glimpse *reply)
{
    const struct stateful *row = stateful_row((enum effect)call->effect);
    if (is_shut_out_unheard(call, reply)) {
        session_log_closed(client, LOG_SITE_CLIENT_CLOSED,
                           "its connection to Redis is gone, and the next wants a password");
        client_leave_for(client, CLOSED_UPSTREAM);
    } else if (row->answered != NULL) {
        row->answered(client, call, reply);
    }
}
