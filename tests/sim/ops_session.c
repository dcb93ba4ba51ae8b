/* Session commands: user, protocol, database and name of the connection. */
#include <stdio.h>
#include <string.h>

#include "tests/sim/admin.h"
#include "tests/sim/ops.h"
#include "tests/sim/proof_laws.h"
#include "tests/sim/run.h"

static const char *ok(const struct reply *reply)
{
    return reply_is_ok(reply) ? NULL : "it is not OK";
}

static bool is_text(const struct reply *reply, struct slice text)
{
    return reply_is(reply, '$', text);
}

static void say_two(struct client *client, const struct act *act, struct slice one,
                    struct slice two)
{
    say_begin(client, 2);
    say_word(client, one);
    say_word(client, two);
    expect(client, act);
}

/* ---- replies that need no login ---- */

static void say_ping(struct client *client, struct act *act)
{
    char text[WORD_ROOM];
    say_two(client, act, SLICE("PING"), print(text, "p%u.%u", client->number, act->a));
}

static const char *judge_ping(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    char text[WORD_ROOM];
    struct reply word;
    struct slice said = print(text, "p%u.%u", client->number, act->a);
    if (is_subscriber(&client->session) && !client->session.is_resp3 && reply->type == '*')
        return reply_at(reply, 1, &word) && is_text(&word, said)
                   ? NULL
                   : "not what a subscriber is answered";
    return is_text(reply, said) ? NULL : "not what it said";
}

static void say_echo(struct client *client, struct act *act)
{
    act->a = ++client->numbers;
    say_begin(client, 2);
    say_word(client, SLICE("ECHO"));
    say_value(client, act->a);
    expect(client, act);
}

static const char *judge_echo(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    return is_value(client, act->a, reply) ? NULL : "not what it said";
}

/* ---- users ---- */

static unsigned user_of(const struct act *act)
{
    return 1 + act->a % (USERS - 1);
}

static bool is_wrong(const struct act *act)
{
    return act->b % 8 == 0;
}

static unsigned token_of(const struct client *client)
{
    return client->number % TOKENS;
}

static struct slice password(const struct client *client, const struct act *act,
                             char text[WORD_ROOM])
{
    return print(text, is_wrong(act) ? "no%u.%u" : "pw%u.%u", user_of(act), token_of(client));
}

static void say_auth(struct client *client, struct act *act)
{
    char user[WORD_ROOM], word[WORD_ROOM];
    say_begin(client, 3);
    say_word(client, SLICE("AUTH"));
    say_word(client, print(user, "u%u", user_of(act)));
    say_word(client, password(client, act, word));
    expect(client, act);
    client->intent.is_in |= !is_wrong(act);
}

/*
 * True if the login must fail, or may fail and did: an administrator has locked the user or taken
 * the password.
 */
static bool is_refused_login(const struct client *client, const struct act *act,
                             const struct reply *reply)
{
    unsigned user = user_of(act), token = token_of(client);
    bool may_be = admin_may_have_locked(user, act) || admin_may_have_taken(user, token, act);
    bool is_refused = reply_begins(reply, '-', SLICE("WRONGPASS ")) && may_be;
    return is_refused || is_wrong(act) || admin_has_locked(user, act) ||
           admin_has_taken(user, token, act);
}

static const char *judge_auth(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    struct session *session = &client->session;
    unsigned user = user_of(act);
    bool is_refused = is_refused_login(client, act, reply);
    if (is_refused)
        return reply_begins(reply, '-', SLICE("WRONGPASS ")) ? NULL : "a wrong password";
    session->user = user;
    session->is_in = session->is_named = true;
    return ok(reply);
}

/* Logs in with the password of Redis' default user. */
static void say_enter(struct client *client, struct act *act)
{
    struct slice right = run.passwords % 2 == 0 ? SLICE(PASSWORD) : SLICE(OTHER_PASSWORD);
    act->c = (uint32_t)run.passwords;
    say_two(client, act, SLICE("AUTH"), is_wrong(act) ? SLICE("not this one") : right);
    client->intent.is_in |= !is_wrong(act);
}

static const char *judge_not_entered(const struct act *act, const struct reply *reply)
{
    if (reply->type != '-')
        return "a wrong password";
    if (admin_is_changing(act->read_ns) || admin_lets_in())
        return NULL;
    bool was_right = act->c != run.passwords; /* at the time of sending */
    bool is_said = reply_begins(reply, '-', SLICE("WRONGPASS "));
    return is_said && (was_right || is_wrong(act)) ? NULL : "not let in";
}

static const char *judge_enter(struct client *client, const struct act *act,
                               const struct reply *reply)
{
    bool is_refused = is_wrong(act) || reply->type == '-';
    if (is_refused)
        return judge_not_entered(act, reply);
    if (admin_lets_in() && !admin_is_changing(act->read_ns))
        return "a password that nobody wants";
    client->session.user = 0;
    client->session.is_in = client->session.is_named = true;
    return ok(reply);
}

static void say_whoami(struct client *client, struct act *act)
{
    say_two(client, act, SLICE("ACL"), SLICE("WHOAMI"));
}

static const char *judge_whoami(struct client *client, const struct act *act,
                                const struct reply *reply)
{
    char text[WORD_ROOM];
    unsigned user = client->session.user;
    (void)act;
    return is_text(reply, user == 0 ? SLICE("default") : print(text, "u%u", user))
               ? NULL
               : "somebody else";
}

/* ---- protocol ---- */

static void say_hello(struct client *client, struct act *act)
{
    char user[WORD_ROOM], word[WORD_ROOM];
    bool logs_in = act->c % 4 == 0;
    say_begin(client, logs_in ? 5 : 2);
    say_word(client, SLICE("HELLO"));
    say_word(client, act->c % 3 == 0 ? SLICE("3") : SLICE("2"));
    if (logs_in) {
        say_word(client, SLICE("AUTH"));
        say_word(client, print(user, "u%u", user_of(act)));
        say_word(client, password(client, act, word));
    }
    expect(client, act);
    client->intent.is_resp3 = act->c % 3 == 0;
    client->intent.is_in |= logs_in && !is_wrong(act);
}

static const char *judge_hello(struct client *client, const struct act *act,
                               const struct reply *reply)
{
    struct session *session = &client->session;
    bool logs_in = act->c % 4 == 0;
    bool is_refused = logs_in && is_refused_login(client, act, reply);
    if (logs_in)
        if (is_refused)
            return reply_begins(reply, '-', SLICE("WRONGPASS ")) ? NULL : "a wrong password";
    if (!logs_in && may_be_stranger(client, act) && reply_begins(reply, '-', SLICE("NOAUTH "))) {
        admin_note_refused(act);
        return NULL;
    }
    if (!session->is_in && !logs_in && !client_is_doubtful(client))
        return reply_begins(reply, '-', SLICE("NOAUTH ")) ? NULL : "it has not logged in";
    if (reply->type == '-')
        return "HELLO refused";
    session->is_resp3 = act->c % 3 == 0;
    /* while the password changes, HELLO of a client without a login may be refused */
    if (!logs_in && client_is_doubtful(client))
        session->is_resp3 &= reply->type == '%';
    session->is_in |= logs_in;
    session->is_named |= logs_in;
    if (logs_in)
        session->user = user_of(act);
    return reply->type == (session->is_resp3 ? '%' : '*') ? NULL : "not in its protocol";
}

static void say_reset(struct client *client, struct act *act)
{
    say_begin(client, 1);
    say_word(client, SLICE("RESET"));
    expect(client, act);
    client->intent = (struct intent){.is_in = admin_lets_in()};
}

static const char *judge_reset(struct client *client, const struct act *act,
                               const struct reply *reply)
{
    struct session *session = &client->session;
    (void)act;
    session->is_resp3 = session->in_multi = session->is_voided = session->is_watching =
        session->is_touched = false;
    memset(session->watched, 0, sizeof session->watched);
    memset(session->is_subscribed, 0, sizeof session->is_subscribed);
    session->user = session->database = session->n_subscribed = session->n_sharded = 0;
    client_be_stranger(client);
    session->name = 0;
    session->is_tracking = session->may_be_invalidated = session->has_redirected = false;
    session->has_shared_watch = false;
    return reply_is(reply, '+', SLICE("RESET")) ? NULL : "it is not RESET";
}

/* ---- database, name, id ---- */

static void say_select(struct client *client, struct act *act)
{
    char text[WORD_ROOM];
    say_two(client, act, SLICE("SELECT"), print(text, "%u", act->a % DATABASES));
}

const char *judge_select(struct client *client, const struct act *act, const struct reply *reply)
{
    client->session.database = act->a % DATABASES;
    return ok(reply);
}

static void say_select_none(struct client *client, struct act *act)
{
    say_two(client, act, SLICE("SELECT"), SLICE("9999"));
}

const char *judge_select_none(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    (void)client;
    (void)act;
    return reply_begins(reply, '-', SLICE("ERR DB index is out of range"))
               ? NULL
               : "a database that there is not";
}

static void say_id(struct client *client, struct act *act)
{
    say_two(client, act, SLICE("CLIENT"), SLICE("ID"));
}

static const char *judge_id(struct client *client, const struct act *act, const struct reply *reply)
{
    int64_t before = client->session.id;
    (void)act;
    client->session.id = reply->number;
    if (reply->type != ':' || reply->number <= 0)
        return "it is no number";
    return before == 0 || before == reply->number ? NULL : "it had another before";
}

static void say_setname(struct client *client, struct act *act)
{
    act->a = ++client->numbers;
    say_begin(client, 3);
    say_word(client, SLICE("CLIENT"));
    say_word(client, SLICE("SETNAME"));
    say_text(client, "n%u.%u", client->number, act->a);
    expect(client, act);
}

static const char *judge_setname(struct client *client, const struct act *act,
                                 const struct reply *reply)
{
    client->session.name = act->a;
    return ok(reply);
}

static void say_getname(struct client *client, struct act *act)
{
    say_two(client, act, SLICE("CLIENT"), SLICE("GETNAME"));
}

static const char *judge_getname(struct client *client, const struct act *act,
                                 const struct reply *reply)
{
    char text[WORD_ROOM];
    (void)act;
    if (client->session.name == 0)
        return reply->is_nil ? NULL : "a name that it has not";
    return is_text(reply, print(text, "n%u.%u", client->number, client->session.name))
               ? NULL
               : "not its name";
}

const struct op session_ops[] = {
    {"ping", 30, OP_CONTROL | OP_QUEUES | OP_SUBSCRIBED, 0, say_ping, judge_ping},
    {"echo", 30, OP_CONTROL | OP_QUEUES, 0, say_echo, judge_echo},
    {"auth", 4, OP_CONTROL | OP_ENTERS, 0, say_auth, judge_auth},
    {"enter", 2, OP_CONTROL | OP_ENTERS, 0, say_enter, judge_enter},
    {"whoami", 10, OP_QUEUES, LIMIT_ANY, say_whoami, judge_whoami},
    {"hello", 3, OP_CONTROL | OP_ENTERS, 0, say_hello, judge_hello},
    {"reset", 2, OP_CONTROL | OP_ENTERS | OP_MULTI | OP_SUBSCRIBED, 0, say_reset, judge_reset},
    {"select", 4, OP_CONTROL | OP_QUEUES, 0, say_select, judge_select},
    {"select_none", 1, OP_CONTROL | OP_QUEUES, 0, say_select_none, judge_select_none},
    {"id", 2, OP_CONTROL | OP_QUEUES, 0, say_id, judge_id},
    {"setname", 3, OP_CONTROL | OP_QUEUES, 0, say_setname, judge_setname},
    {"getname", 5, OP_CONTROL | OP_QUEUES, 0, say_getname, judge_getname},
    {0},
};
