/* Transactions on the client's own keys: the queue runs as a whole or not at all. */
#include <string.h>

#include "tests/sim/admin.h"
#include "tests/sim/ops.h"
#include "tests/sim/run.h"

static void say_one(struct client *client, const struct act *act, struct slice word)
{
    say_begin(client, 1);
    say_word(client, word);
    expect(client, act);
}

/* A command that MULTI does not allow: newer servers void the transaction for it. */
static const char *judge_misplaced(struct session *session, const struct reply *reply)
{
    session->is_voided |=
        reply_begins(reply, '-', SLICE("ERR Command not allowed inside a transaction"));
    return reply->type == '-' ? NULL : "it may not stand in MULTI";
}

static void say_multi(struct client *client, struct act *act)
{
    say_one(client, act, SLICE("MULTI"));
    client->intent.in_multi = true;
    client->intent.n_queued = 0;
}

static const char *judge_multi(struct client *client, const struct act *act,
                               const struct reply *reply)
{
    struct session *session = &client->session;
    (void)act;
    if (session->in_multi)
        return judge_misplaced(session, reply);
    session->in_multi = true;
    session->is_voided = session->is_unbegun = false;
    session->n_queued = 0;
    return reply_is_ok(reply) ? NULL : "it is not OK";
}

static void unwatch(struct session *session)
{
    session->is_watching = session->is_touched = session->has_shared_watch = false;
    session->locked = -1;
    memset(session->watched, 0, sizeof session->watched);
}

static void say_exec(struct client *client, struct act *act)
{
    say_one(client, act, SLICE("EXEC"));
    client->intent.in_multi = false;
    client->intent.n_queued = 0;
}

void transaction_end(struct session *session)
{
    session->in_multi = session->is_voided = false;
    unwatch(session);
}

static const char *judge_queued(struct client *client, const struct reply *reply)
{
    struct session *session = &client->session;
    struct slice inside = reply->inside;
    struct reply element;
    if (reply->number != session->n_queued)
        return "not as many answers as were queued";
    const char *why = NULL;
    session->is_executing = true;
    for (unsigned i = 0; why == NULL && reply_next(&inside, &element); i++) {
        const struct act *act = &session->queued[i].act;
        why = admin_excuses(act, &element) ? NULL : act->op->judge(client, act, &element);
    }
    session->is_executing = false;
    return why;
}

static const char *judge_exec(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    struct session *session = &client->session;
    bool was_in_multi = session->in_multi, was_voided = session->is_voided,
         was_touched = session->is_touched;
    bool was_watching = session->is_watching, was_shared = session->has_shared_watch;
    (void)act;
    session->in_multi = session->is_voided = false;
    if (!was_in_multi)
        return reply_begins(reply, '-', SLICE("ERR EXEC without MULTI")) ? NULL
                                                                         : "EXEC without MULTI";
    unwatch(session);
    if (was_voided)
        return reply_begins(reply, '-', SLICE("EXECABORT ")) ? NULL
                                                             : "a voided transaction that ran";
    if (was_watching && reply->is_nil)
        return was_touched || was_shared || session->losses != run.losses
                   ? NULL
                   : "nobody has touched what was watched";
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
    client->intent.n_queued = 0;
}

static const char *judge_discard(struct client *client, const struct act *act,
                                 const struct reply *reply)
{
    struct session *session = &client->session;
    bool was_in_multi = session->in_multi;
    (void)act;
    session->in_multi = session->is_voided = false;
    if (!was_in_multi)
        return reply_begins(reply, '-', SLICE("ERR DISCARD without MULTI"))
                   ? NULL
                   : "DISCARD without MULTI";
    unwatch(session);
    return reply_is_ok(reply) ? NULL : "it is not OK";
}

static void say_watch(struct client *client, struct act *act)
{
    say_begin(client, 2);
    say_word(client, SLICE("WATCH"));
    say_key(client, 'k', act->a);
    expect(client, act);
}

static const char *judge_watch(struct client *client, const struct act *act,
                               const struct reply *reply)
{
    struct session *session = &client->session;
    if (session->in_multi)
        return judge_misplaced(session, reply);
    session->is_watching = true;
    session->watched[session->database] |= (uint8_t)(1U << act->a % OWN_KEYS);
    return reply_is_ok(reply) ? NULL : "it is not OK";
}

static void say_unwatch(struct client *client, struct act *act)
{
    say_one(client, act, SLICE("UNWATCH"));
}

static const char *judge_unwatch(struct client *client, const struct act *act,
                                 const struct reply *reply)
{
    (void)act;
    if (!client->session.is_executing)
        unwatch(&client->session);
    return reply_is_ok(reply) ? NULL : "it is not OK";
}

const struct op transaction_ops[] = {
    {"multi", 20, OP_CONTROL | OP_MULTI | OP_BEGINS, 0, say_multi, judge_multi},
    {"exec", 80, OP_CONTROL | OP_MULTI | OP_ENDS, 0, say_exec, judge_exec},
    {"discard", 10, OP_CONTROL | OP_MULTI | OP_ENDS, 0, say_discard, judge_discard},
    {"watch", 8, OP_CONTROL, 0, say_watch, judge_watch},
    {"unwatch", 2, OP_CONTROL, 0, say_unwatch, judge_unwatch},
    {0},
};
