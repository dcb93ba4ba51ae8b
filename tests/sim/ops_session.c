/*
 * What a client does with its connection: transactions, logins, protocols.
 */
#include <stdio.h>

#include "tests/sim/ops.h"
#include "tests/sim/run.h"

/* ---- transactions ---- */

static void say_one(struct client *client, const struct act *act, struct slice word)
{
    say_begin(client, 1);
    say_word(client, word);
    expect(client, act);
}

static void say_multi(struct client *client, struct act *act)
{
    say_one(client, act, SLICE("MULTI"));
    client->intent.in_multi = true;
    client->intent.n_queued = 0;
}

static const char *judge_multi(struct client *client, const struct act *act, const struct reply *reply)
{
    struct session *session = &client->session;
    (void)act;
    if (session->in_multi) {
        session->is_voided = session->is_voided || reply->type != '-';
        return reply->type == '-' ? NULL : "MULTI in MULTI";
    }
    session->in_multi = true;
    session->is_voided = false;
    session->n_queued = 0;
    return reply_is_ok(reply) ? NULL : "it is not OK";
}

static void say_exec(struct client *client, struct act *act)
{
    say_one(client, act, SLICE("EXEC"));
    client->intent.in_multi = false;
}

static const char *judge_queued(struct client *client, const struct reply *reply)
{
    struct session *session = &client->session;
    struct slice inside = reply->inside;
    struct reply element;
    if (reply->number != session->n_queued)
        return "not as many answers as were queued";
    for (unsigned i = 0; reply_next(&inside, &element); i++) {
        const struct act *act = &session->queued[i].act;
        const char *why = act->op->judge(client, act, &element);
        if (why != NULL)
            return why;
    }
    return NULL;
}

static const char *judge_exec(struct client *client, const struct act *act, const struct reply *reply)
{
    struct session *session = &client->session;
    bool was_in_multi = session->in_multi, was_voided = session->is_voided, was_touched = session->is_touched;
    bool was_watching = session->is_watching;
    (void)act;
    session->in_multi = session->is_voided = session->is_watching = session->is_touched = false;
    if (!was_in_multi)
        return reply_begins(reply, '-', SLICE("ERR EXEC without MULTI")) ? NULL : "EXEC without MULTI";
    if (was_voided)
        return reply_begins(reply, '-', SLICE("EXECABORT ")) ? NULL : "a voided transaction that ran";
    if (was_watching && reply->is_nil)
        return was_touched || session->losses != run.losses ? NULL : "nobody has touched what was watched";
    if (was_touched)
        return "what was watched has been touched";
    if (reply->type != '*' || reply->is_nil)
        return "it is no list of answers";
    return judge_queued(client, reply);
}

static void say_discard(struct client *client, struct act *act)
{
    say_one(client, act, SLICE("DISCARD"));
    client->intent.in_multi = false;
}

static const char *judge_discard(struct client *client, const struct act *act, const struct reply *reply)
{
    struct session *session = &client->session;
    bool was_in_multi = session->in_multi;
    (void)act;
    session->in_multi = session->is_voided = false;
    if (!was_in_multi)
        return reply_begins(reply, '-', SLICE("ERR DISCARD without MULTI")) ? NULL : "DISCARD without MULTI";
    session->is_watching = session->is_touched = false;
    return reply_is_ok(reply) ? NULL : "it is not OK";
}

/* ---- the rest ---- */

static void say_ping(struct client *client, struct act *act)
{
    say_begin(client, 2);
    say_word(client, SLICE("PING"));
    say_text(client, "p%u.%u", client->number, act->a);
    expect(client, act);
}

static const char *judge_ping(struct client *client, const struct act *act, const struct reply *reply)
{
    char text[40];
    struct reply word;
    int n = snprintf(text, sizeof text, "p%u.%u", client->number, act->a);
    if (client->session.n_subscribed > 0 && !client->session.is_resp3)
        return reply->type == '*' && reply_at(reply, 1, &word) && reply_is(&word, '$', slice_of(text, (size_t)n))
                   ? NULL
                   : "not a subscriber's answer";
    return reply_is(reply, '$', slice_of(text, (size_t)n)) ? NULL : "not what it said";
}

static void say_echo(struct client *client, struct act *act)
{
    act->a = ++client->numbers;
    say_begin(client, 2);
    say_word(client, SLICE("ECHO"));
    say_value(client, act->a);
    expect(client, act);
}

static const char *judge_echo(struct client *client, const struct act *act, const struct reply *reply)
{
    return is_value(client, act->a, reply) ? NULL : "not what it said";
}

const struct op session_ops[] = {
    {"multi", 0, OP_CONTROL | OP_MULTI, say_multi, judge_multi},
    {"exec", 0, OP_CONTROL | OP_MULTI, say_exec, judge_exec},
    {"discard", 0, OP_CONTROL | OP_MULTI, say_discard, judge_discard},
    {"ping", 30, OP_CONTROL | OP_QUEUES | OP_SUBSCRIBED, say_ping, judge_ping},
    {"echo", 30, OP_CONTROL | OP_QUEUES, say_echo, judge_echo},
    {0},
};
const struct op shared_ops[] = {{0}};
const struct op limit_ops[] = {{0}};
