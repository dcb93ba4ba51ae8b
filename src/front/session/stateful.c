#include "front/session/stateful.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/num.h"
#include "front/client/binding.h"
#include "front/cluster/carried.h"
#include "front/cluster/gather.h"
#include "front/route/lane_choice.h"
#include "front/client/login.h"
#include "front/client/session.h"
#include "front/session/setinfo.h"
#include "front/session/wait_coverage.h"
#include "resp/argv.h"
#include "resp/emit.h"
#include "upstream/lane/lend.h"
#include "upstream/lane/owned.h"

static bool stateful_has_word(const struct request *request, struct slice wanted)
{
    struct argv_walk walk;
    struct slice word;
    argv_walk_init(&walk, request->bytes);
    while (argv_next(&walk, &word))
        if (slice_is_word(word, wanted))
            return true;
    return false;
}

/* ---- COMMAND, INFO, and HELLO before a cluster: weir changes the answer ---- */

static bool is_gathered(const struct client *client, const struct call *call)
{
    return gather_is_due(client, (enum effect)call->effect) && (call->flags & CALL_MUTE) == 0;
}

/* HELLO may hold a password, so its bytes are not copied. */
static void gathered_sent(const struct sending *s)
{
    if (is_gathered(s->client, s->call))
        gather_begin(s->client, s->call->effect == EFFECT_COMMAND ? s->request->bytes : SLICE(""));
}

static void gathered_answered(const struct answer *a)
{
    if (is_gathered(a->client, a->call))
        gather_end(a->client, (enum effect)a->call->effect);
}

/* ---- HELLO, CLIENT SETNAME, SELECT: the next request waits for the answer ---- */

/* Returns the protocol for HELLO; 0: none. On a shared lane HELLO must not change the protocol. */
static uint8_t protocol_for(const struct lane *lane, const struct hello *hello)
{
    return lane->role == LANE_SHARED && hello->protocol != 0 ? lane->key.protocol : hello->protocol;
}

static bool prepare_hello(const struct sending *s)
{
    const struct hello *hello = s->request->hello;
    return session_ask(s->client, protocol_for(s->lane, hello), hello->has_name, hello->name);
}

static void hello_sent(const struct sending *s)
{
    s->lane->has_name |= client_has_own_lane(s->client) && s->request->hello->has_name;
    client_wait(s->client, WAIT_ANSWER);
    gathered_sent(s);
}

/*
 * Sends a HELLO that weir builds itself, without a login, so that HELLO does nothing that weir has
 * not read. A name is set on private lanes only. Inside MULTI a correct HELLO without a login, in
 * the client's protocol, is sent as it came.
 */
static bool send_hello(const struct sending *s)
{
    const struct hello *hello = s->request->hello;
    if (transaction_is_open(&s->client->transaction)) {
        lane_send(s->lane, &s->client->lane_user, s->request->bytes.at, s->request->bytes.len);
        return true;
    }
    const bool has_name = hello->has_name && client_has_own_lane(s->client);
    uint8_t protocol = protocol_for(s->lane, hello);
    char small[4 * EMIT_HEADER_MAX + 64];
    /*
     * on a shared lane malloc is not called: the lane already expects the bytes, so sending must
     * not fail
     */
    char *out = has_name ? malloc(sizeof small + hello->name.len) : small;
    if (out == NULL)
        return false;
    const struct slice words[] = {SLICE("HELLO"), protocol == 3 ? SLICE("3") : SLICE("2"),
                                  SLICE("SETNAME"), hello->name};
    size_t n = protocol == 0 ? 1 : has_name ? 4 : 2;
    lane_send(s->lane, &s->client->lane_user, out, emit_array(out, words, n));
    if (out != small)
        free(out);
    return true;
}

static bool prepare_name(const struct sending *s)
{
    return session_ask(s->client, 0, true, s->request->args[1]);
}

static void name_sent(const struct sending *s)
{
    s->lane->has_name |= client_has_own_lane(s->client);
    client_wait(s->client, WAIT_ANSWER);
}

/*
 * No client's name is set on a shared lane. Redis still decides whether the client may have a name.
 */
static bool send_name(const struct sending *s)
{
    static const char no_name[] = "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$0\r\n\r\n";
    if (!client_has_own_lane(s->client) && hello_is_name(s->request->args[1]))
        lane_send(s->lane, &s->client->lane_user, no_name, sizeof no_name - 1);
    else
        lane_send(s->lane, &s->client->lane_user, s->request->bytes.at, s->request->bytes.len);
    return true;
}

static void asked_answered(const struct answer *a)
{
    gathered_answered(a);
    client_resume(a->client, WAIT_ANSWER);
    if (a->is_error)
        return;
    if (session_take_asked(a->client))
        lane_choice_note_name(a->client);
    (void)binding_change(a->client);
}

static bool prepare_select(const struct sending *s)
{
    return session_ask(s->client, 0, false, SLICE(""));
}

static void select_sent(const struct sending *s)
{
    int64_t number;
    s->call->argument =
        num_parse(s->request->args[0], &number) && number >= 0 && number <= INT32_MAX
            ? (uint32_t)number
            : 0;
    client_wait(s->client, WAIT_ANSWER);
}

static void select_answered(const struct answer *a)
{
    client_resume(a->client, WAIT_ANSWER);
    if (a->is_error)
        return;
    if (session_select(a->client, a->call->argument))
        (void)binding_change(a->client);
    else
        client_close_starved(a->client);
}

/* ---- RESET: weir resets the client's lane before it answers the client (answer.c) ---- */

static void reset_answered(const struct answer *a)
{
    if (glimpse_starts(a->reply, SLICE("+RESET")))
        return;
    lane_choice_abandon(a->client);
    pins_end(a->client);
}

/* ---- transactions ---- */

static void multi_sent(const struct sending *s)
{
    s->client->extra->pause_ms = 0;
    session_drop_asked_library(s->client);
}

static void multi_answered(const struct answer *a)
{
    transaction_answered(&a->client->transaction, EFFECT_MULTI, !a->is_error);
}

static void exec_sent(const struct sending *s)
{
    s->call->argument = s->client->extra->pause_ms;
    if (s->client->transaction.admits)
        s->call->flags |= CALL_ADMITS;
    if (s->client->transaction.forges)
        lane_distrust(s->lane);
    if (session_has_asked_library(s->client))
        /* the answer decides which library weir must set on the lane */
        client_wait(s->client, WAIT_ANSWER);
}

/* Records that the node pauses writes, if CLIENT PAUSE ms WRITE has run. */
static void pause_answered(const struct answer *a)
{
    if (!a->is_error && a->call->argument > 0)
        node_pause(lane_node(a->client->lane_user.lane),
                   clock_ns() + a->call->argument * NS_PER_MS);
}

/*
 * EXEC answers an array if the queued commands have run, and a null array if a watched key has
 * changed.
 */
static void library_decided(const struct answer *a)
{
    if (!session_has_asked_library(a->client))
        return;
    if (glimpse_type(a->reply) == '*' && !glimpse_starts(a->reply, SLICE("*-1")))
        session_take_asked_library(a->client);
    client_resume(a->client, WAIT_ANSWER);
}

static void exec_answered(const struct answer *a)
{
    library_decided(a);
    pin_end(a->client, PIN_WATCH); /* any answer to EXEC ends the watches */
    pause_answered(a);
}

static void begun_answered(const struct answer *a)
{
    carried_begin(a->client, !a->is_error);
}

static void discard_answered(const struct answer *a)
{
    transaction_answered(&a->client->transaction, EFFECT_DISCARD, !a->is_error);
    if (!a->is_error)
        pin_end(a->client, PIN_WATCH);
}

static void watch_answered(const struct answer *a)
{
    if (a->is_error)
        return;
    pin_add(a->client, PIN_WATCH);
    carried_watch(a->client);
}

static void unwatch_answered(const struct answer *a)
{
    if (!a->is_error)
        pin_end(a->client, PIN_WATCH);
    if (!a->is_error && carry_of(a->client) != NULL)
        carry_of(a->client)->is_lost = false;
}

/* ---- CLIENT TRACKING, NO-EVICT, NO-TOUCH: on or off ---- */

static void switch_sent(const struct sending *s)
{
    s->call->argument = slice_is_word(s->request->args[1], SLICE("on"));
}

static void switch_answered(const struct answer *a)
{
    enum pin pin = a->call->effect == EFFECT_TRACKING   ? PIN_TRACKING
                   : a->call->effect == EFFECT_NO_EVICT ? PIN_NO_EVICT
                                                        : PIN_NO_TOUCH;
    if (a->is_error)
        return;
    if (a->call->argument != 0)
        pin_add(a->client, pin);
    else
        pin_end(a->client, pin);
}

#define NOBODYS_ID "9223372036854775807"

/*
 * True if word i of CLIENT TRACKING is an id. Syntax: CLIENT TRACKING on|off {REDIRECT id | PREFIX
 * prefix | word}.
 */
static bool stateful_is_id(const struct slice *words, uint32_t i)
{
    uint32_t at = 3;
    while (at < i) {
        bool is_redirect = slice_is_word(words[at], SLICE("redirect"));
        if (is_redirect && at + 1 == i)
            return true;
        at += is_redirect || slice_is_word(words[at], SLICE("prefix")) ? 2 : 1;
    }
    return false;
}

bool stateful_send_tracking(struct client *client, struct lane *lane, const struct request *request)
{
    const struct lane_key key = session_key(client, lane_node(lane));
    struct slice *words = malloc(request->argc * sizeof *words);
    char *out = malloc(request->bytes.len + request->argc * (EMIT_HEADER_MAX + sizeof NOBODYS_ID));
    struct argv_walk walk;
    bool is_good = words != NULL && out != NULL;
    argv_walk_init(&walk, request->bytes);
    for (uint32_t i = 0; is_good && i < request->argc && argv_next(&walk, &words[i]); i++) {
        int64_t id;
        if (stateful_is_id(words, i) && num_parse(words[i], &id) && id != 0 &&
            !owned_point(lane_node(lane)->owned, id, key.login))
            words[i] = SLICE(NOBODYS_ID);
    }
    if (is_good)
        lane_send(lane, &client->lane_user, out, emit_array(out, words, request->argc));
    free(words);
    free(out);
    return is_good;
}

static bool send_tracking(const struct sending *s)
{
    return stateful_send_tracking(s->client, s->lane, s->request);
}

/* ---- CLIENT PAUSE, CLIENT UNPAUSE ---- */

/* Returns the time of CLIENT PAUSE ms WRITE. 0 for ALL, which delays all commands on any lane. */
static uint32_t pause_ms(const struct request *request)
{
    int64_t ms;
    if (request->argc != 4 || !stateful_has_word(request, SLICE("write")) ||
        !num_parse(request->args[1], &ms) || ms < 0)
        return 0;
    return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

static void pause_sent(const struct sending *s)
{
    s->call->argument = pause_ms(s->request);
}

static void pause_queued(const struct sending *s)
{
    s->client->extra->pause_ms = pause_ms(s->request);
}

static void end_urgent(struct client *client)
{
    if (client_is_urgent(client))
        client_resume(client, WAIT_ANSWER);
}

static void unpause_answered(const struct answer *a)
{
    if (!a->is_error)
        node_pause(lane_node(a->client->lane_user.lane), 0);
    end_urgent(a->client);
}

/* ---- ACL LOAD, ACL SETUSER, CONFIG SET: the rights of connections without a login ---- */

bool stateful_admits(const struct request *request)
{
    return request->argc == 2 || request->is_large ||
           stateful_has_word(request, SLICE("default")) ||
           stateful_has_word(request, SLICE("requirepass"));
}

static void admit_sent(const struct sending *s)
{
    if (stateful_admits(s->request))
        s->call->flags |= CALL_ADMITS;
}

static void admit_queued(const struct sending *s)
{
    if (stateful_admits(s->request))
        s->client->transaction.admits = true;
}

/* ---- CLIENT GETNAME, CLIENT SETINFO, CLIENT REPLY: weir answers, or changes the answer ---- */

/*
 * A shared lane has no client's name. Redis decides whether the client may ask, and weir answers
 * the name.
 */
static void getname_sent(const struct sending *s)
{
    if (s->lane->role != LANE_SHARED || session_name(s->client).len == 0 ||
        (s->call->flags & CALL_MUTE) != 0)
        return;
    s->call->argument = 1;
    s->call->flags |= CALL_MUTE_UNLESS_ERROR;
    client_wait(s->client, WAIT_ANSWER);
}

static void answer_name(struct client *client)
{
    struct slice name = session_name(client);
    char header[EMIT_HEADER_MAX];
    client_answer_now(client, slice_of(header, emit_header(header, '$', (int64_t)name.len)));
    client_answer_now(client, name);
    client_answer_now(client, SLICE("\r\n"));
}

static void getname_answered(const struct answer *a)
{
    if (a->call->argument == 0)
        return;
    client_resume(a->client, WAIT_ANSWER);
    if (!a->is_error)
        answer_name(a->client);
}

static bool prepare_library(const struct sending *s)
{
    return setinfo_note(s->client, s->request);
}

static bool send_library(const struct sending *s)
{
    return setinfo_send(s->client, s->lane, s->request);
}

static void library_answered(const struct answer *a)
{
    if (a->is_error && a->call->argument != 0)
        session_forget_library(a->client);
}

static void reply_answered(const struct answer *a)
{
    if (!a->is_error)
        reply_mode_set(&a->client->reply_mode, (enum reply_word)a->call->argument);
    client_resume(a->client, WAIT_ANSWER);
}

/* ---- weir's own commands on a client's lane ---- */

static void login_answered(const struct answer *a)
{
    login_lane_answered(a->client, a->reply);
}

static void id_answered(const struct answer *a)
{
    lend_list(a->client->lane_user.lane);
}

/* ---- WAIT, and writes that WAIT can count from (wait_coverage.h) ---- */

static void wait_answered(const struct answer *a)
{
    coverage_wait_answered(a->client, a->call, a->reply);
}

static void write_answered(const struct answer *a)
{
    coverage_write_answered(a->client, a->reply);
}

/* ---- unknown commands ---- */

/* True if Redis does not know the command or refuses it, so that the command has done nothing. */
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

static void unknown_answered(const struct answer *a)
{
    if (client_is_urgent(a->client))
        end_urgent(a->client);
    else if (!is_harmless(a->reply))
        pin_add(a->client, PIN_UNKNOWN);
}

/* ---- the table ---- */

static const struct stateful rows[] = {
    [EFFECT_NONE] = {.answered = unknown_answered},
    [EFFECT_HELLO] = {.prepare = prepare_hello,
                      .sent = hello_sent,
                      .answered = asked_answered,
                      .pin = PIN_SESSION,
                      .send = send_hello},
    [EFFECT_NAME] = {.prepare = prepare_name,
                     .sent = name_sent,
                     .answered = asked_answered,
                     .pin = PIN_SESSION,
                     .send = send_name},
    [EFFECT_SELECT] = {.prepare = prepare_select,
                       .sent = select_sent,
                       .answered = select_answered,
                       .pin = PIN_DATABASE},
    [EFFECT_RESET] = {.answered = reset_answered},
    [EFFECT_MULTI] = {.sent = multi_sent, .answered = multi_answered},
    [EFFECT_EXEC] = {.sent = exec_sent, .answered = exec_answered},
    [EFFECT_DISCARD] = {.answered = discard_answered},
    [EFFECT_WATCH] = {.answered = watch_answered},
    [EFFECT_UNWATCH] = {.answered = unwatch_answered},
    [EFFECT_TRACKING] = {.sent = switch_sent,
                         .answered = switch_answered,
                         .pin = PIN_SESSION,
                         .send = send_tracking},
    [EFFECT_NO_EVICT] = {.sent = switch_sent, .answered = switch_answered, .pin = PIN_SESSION},
    [EFFECT_NO_TOUCH] = {.sent = switch_sent, .answered = switch_answered, .pin = PIN_SESSION},
    [EFFECT_PAUSE] = {.sent = pause_sent, .answered = pause_answered, .queued = pause_queued},
    [EFFECT_UNPAUSE] = {.answered = unpause_answered},
    [EFFECT_ADMIT] = {.sent = admit_sent, .queued = admit_queued},
    [EFFECT_COMMAND] = {.sent = gathered_sent, .answered = gathered_answered},
    [EFFECT_INFO] = {.sent = gathered_sent, .answered = gathered_answered},
    [EFFECT_GETNAME] = {.sent = getname_sent, .answered = getname_answered},
    [EFFECT_LIBRARY] = {.prepare = prepare_library,
                        .answered = library_answered,
                        .pin = PIN_SESSION,
                        .send = send_library},
    [EFFECT_REPLY] = {.answered = reply_answered},
    [EFFECT_WAIT] = {.answered = wait_answered},
    [EFFECT_WRITE] = {.answered = write_answered},
    [EFFECT_LOGIN] = {.answered = login_answered},
    [EFFECT_ID] = {.answered = id_answered},
    [EFFECT_BEGUN] = {.answered = begun_answered},
};

const struct stateful *stateful_row(enum effect effect)
{
    static const struct stateful nothing;
    return effect < sizeof rows / sizeof rows[0] ? &rows[effect] : &nothing;
}

/*
 * True if Redis demands a login from a client that does not receive the error. Redis accepted the
 * client on an earlier connection, which is closed. If the client stayed open, Redis would refuse
 * all its commands unnoticed. An error to weir's own RESET does not count, because before 7.0 Redis
 * demands a login for RESET too.
 */
static bool is_shut_out_unheard(const struct call *call, const struct glimpse *reply)
{
    return call->effect != EFFECT_RESET && (call->flags & CALL_MUTE_ERROR) != 0 &&
           glimpse_starts(reply, SLICE("-NOAUTH"));
}

void stateful_answered(struct client *client, const struct call *call, const struct glimpse *reply)
{
    const struct stateful *row = stateful_row((enum effect)call->effect);
    if (is_shut_out_unheard(call, reply)) {
        session_log_closed(client, LOG_SITE_CLIENT_CLOSED,
                           "its connection to Redis is lost, and a new one requires a password");
        client_leave_for(client, CLOSED_UPSTREAM);
    } else if (row->answered != NULL) {
        row->answered(&(struct answer){client, call, reply, glimpse_type(reply) == '-'});
    }
}
