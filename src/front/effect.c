#include "front/effect.h"

#include <stdlib.h>

#include "base/clock.h"
#include "front/answer.h"
#include "front/binding.h"
#include "front/catalog.h"
#include "front/holds.h"
#include "front/login.h"
#include "front/lane_choice.h"
#include "front/proof.h"
#include "front/session.h"
#include "upstream/lend.h"

/* What a transaction has made of it weir cannot tell: it would go on as somebody else than Redis takes it for. */
static void lose_track(struct client *client)
{
    session_log_closed(client, LOG_SITE_CLIENT_CLOSED, "a transaction does not tell what became of its session");
    lane_choice_abandon(client);
    client_leave_for(client, CLOSED_UPSTREAM);
}

/* False: out of memory, and it is closed. */
static bool select_database(struct client *client, uint32_t database)
{
    if (session_select(client, database))
        return true;
    client_close_starved(client);
    return false;
}

/* HELLO, CLIENT SETNAME or SELECT has been answered well: what it has asked for holds. */
static void end_asked(struct client *client, enum effect effect, uint32_t database)
{
    if (effect == EFFECT_SELECT && !select_database(client, database))
        return;
    if (effect != EFFECT_SELECT && session_take_asked(client))
        lane_choice_note_name(client);
    (void)binding_change(client);
}

/* In which database the client is now. False: it is leaving, for that is not known; or out of memory, and closed. */
static bool end_selects(struct client *client)
{
    const struct queued *queued = &client_extra(client)->queued;
    uint32_t database;
    if (queued->selects == NULL)
        return true;
    switch (members_last_ok(queued->selects, queued->n, &database)) {
    case MEMBERS_ONE:
        return select_database(client, database);
    case MEMBERS_NONE:
        return true;
    case MEMBERS_UNKNOWN:
        break;
    }
    lose_track(client);
    return false;
}

/* EXEC has been answered: in which protocol the client speaks now, in which database, and who it is. */
static void end_queue(struct client *client, bool is_carried_out)
{
    const struct queued *queued = &client_extra(client)->queued;
    bool is_waited_for = queued->login != NULL || queued_has_session(queued);
    bool is_told = is_carried_out && !lane_is_passthrough(client->rider.lane);
    if (is_told && !end_selects(client))
        return;
    if (is_told && !queued_settle(&client->extra->queued, lane_is_untrusted(client->rider.lane))) {
        lose_track(client);
        return;
    }
    bool has_hello = queued_has_hello(queued);
    if (is_carried_out && queued->is_astray)
        transaction_note_astray(&client->transaction);
    if (queued->login != NULL) {
        login_after_exec(client, is_carried_out);
        return;
    }
    client->rider.lane->is_unsure = false; /* what can be read of HELLO it does, and the rest nothing */
    if (has_hello && is_carried_out && session_ask(client, queued->protocol, queued->name != NULL, queued_name(queued)))
        end_asked(client, EFFECT_HELLO, 0);
    else if (has_hello && is_carried_out)
        client_close_starved(client);
    client_forget_queued(client);
    if (!is_waited_for)
        return;
    client_go_on(client);
}

/* EXEC has been answered, and if it was carried out, the tail follows. */
static void end_silence(struct client *client)
{
    client_go_on(client);
    if (!lane_is_passthrough(client->rider.lane))
        return;
    holds_be_raw(client);
    reply_mode_end_off(&client->reply_mode);
}

/* Redis does not know the command: it has done nothing. Else weir does not know what it did, or will do at EXEC. */
static void judge_unknown(struct client *client, const struct glimpse *reply)
{
    static const struct slice harmless[] = {
        {"-ERR unknown ", 13},
        {"-ERR Unknown subcommand or wrong", 32}, /* up to 6.2 */
        {"-NOAUTH", 7},
        {"-NOPERM", 7},
    };
    for (size_t i = 0; i < sizeof harmless / sizeof harmless[0]; i++)
        if (glimpse_starts(reply, harmless[i]))
            return;
    holds_pin(client);
}

static void end_urgent(struct client *client)
{
    if (!client->is_urgent)
        return;
    client_go_on(client);
}

static void note_pause(const struct client *client, const struct call *call, bool is_ok)
{
    if (is_ok && call->argument > 0 && (call->flags & CALL_TAIL) == 0)
        node_pause(lane_node(client->rider.lane), clock_ns() + call->argument * NS_PER_MS);
}

/*
 * Redis wants a password of it, and it does not hear that. Redis had let it in before, or it would hear: the connection
 * that it had there is gone, and it would lose command after command, or wait for CLIENT REPLY ON for ever.
 */
static bool is_shut_out_unheard(const struct call *call, const struct glimpse *reply)
{
    return (call->flags & CALL_MUTE_ERROR) != 0 && glimpse_starts(reply, SLICE("-NOAUTH"));
}

static void leave_unheard(struct client *client)
{
    session_log_closed(client, LOG_SITE_CLIENT_CLOSED,
                       "its connection to Redis is gone, and the next wants a password");
    client_leave_for(client, CLOSED_UPSTREAM);
}

void effect_apply(struct client *client, const struct call *call, const struct glimpse *reply)
{
    bool is_ok = glimpse_type(reply) != '-';
    if (is_shut_out_unheard(call, reply)) {
        leave_unheard(client);
        return;
    }
    switch (call->effect) {
    case EFFECT_NONE:
        if (client->is_urgent)
            end_urgent(client);
        else
            judge_unknown(client, reply);
        break;
    case EFFECT_PAUSE:
        note_pause(client, call, is_ok);
        break;
    case EFFECT_UNPAUSE:
        if (is_ok)
            node_pause(lane_node(client->rider.lane), 0);
        end_urgent(client);
        break;
    case EFFECT_LOGIN:
        login_lane_answered(client, reply);
        break;
    case EFFECT_ID:
        lend_list(client->rider.lane);
        break;
    case EFFECT_REPLY:
        if (is_ok)
            reply_mode_set(&client->reply_mode, (enum reply_word)call->argument);
        client_go_on(client);
        break;
    case EFFECT_COMMAND:
        catalog_answered(client);
        break;
    case EFFECT_MULTI:
        transaction_answered(&client->transaction, EFFECT_MULTI, is_ok);
        break;
    case EFFECT_EXEC:
        holds_set(client, HOLD_WATCH, false); /* however it ends */
        client->rider.lane->is_telling = false;
        note_pause(client, call, is_ok);
        end_queue(client, is_ok && glimpse_type(reply) == '*' && !glimpse_starts(reply, SLICE("*-")));
        if ((call->flags & CALL_TAIL) != 0)
            end_silence(client);
        break;
    case EFFECT_DISCARD:
        transaction_answered(&client->transaction, EFFECT_DISCARD, is_ok);
        if (is_ok) {
            client_forget_queued(client);
            client->rider.lane->is_unsure = false; /* no HELLO has been carried out */
        }
        holds_set(client, HOLD_WATCH, !is_ok && (client->holds & HOLD_WATCH) != 0);
        break;
    case EFFECT_WATCH:
        holds_set(client, HOLD_WATCH, is_ok || (client->holds & HOLD_WATCH) != 0);
        break;
    case EFFECT_UNWATCH:
        holds_set(client, HOLD_WATCH, !is_ok && (client->holds & HOLD_WATCH) != 0);
        break;
    case EFFECT_TRACKING:
        if (is_ok)
            holds_set(client, HOLD_TRACKING, call->argument != 0);
        break;
    case EFFECT_NO_EVICT:
        if (is_ok)
            holds_set(client, HOLD_NO_EVICT, call->argument != 0);
        break;
    case EFFECT_NO_TOUCH:
        if (is_ok)
            holds_set(client, HOLD_NO_TOUCH, call->argument != 0);
        break;
    case EFFECT_LIBRARY:
        if (!is_ok && call->argument != 0)
            session_forget_library(client);
        break;
    case EFFECT_WAIT:
    case EFFECT_WRITE:
        proof_answered(client, call, reply);
        break;
    case EFFECT_GETNAME:
        if (call->argument != 0)
            client_go_on(client);
        if (call->argument != 0 && is_ok)
            answer_name(client);
        break;
    case EFFECT_RESET: /* weir's own, in front of its answer to the client's: see answer.c */
        if (!glimpse_starts(reply, SLICE("+RESET")))
            lane_choice_abandon(client);
        break;
    case EFFECT_HELLO:
    case EFFECT_SELECT:
    case EFFECT_NAME:
        if (is_ok)
            end_asked(client, (enum effect)call->effect, call->argument);
        client_go_on(client);
        break;
    default:
        break;
    }
}
