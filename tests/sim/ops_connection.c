/* CLIENT with its subcommands, WAIT and QUIT. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/ops.h"
#include "tests/sim/run.h"

static const char *ok(const struct reply *reply)
{
    return reply_is_ok(reply) ? NULL : "it is not OK";
}

static void say_client(struct client *client, const struct act *act, const char *one,
                       const char *two, const char *three)
{
    say_begin(client, 2U + (two != NULL) + (three != NULL));
    say_word(client, SLICE("CLIENT"));
    say_word(client, slice_str(one));
    if (two != NULL)
        say_word(client, slice_str(two));
    if (three != NULL)
        say_word(client, slice_str(three));
    expect(client, act);
}

static const char *on_off(const struct act *act)
{
    return act->a % 2 == 0 ? "ON" : "OFF";
}

/* OK since `version`; an error in older servers. */
static const char *since(uint32_t version, const struct reply *reply)
{
    bool may_know = run.newest >= version, may_not = run.oldest < version;
    if (may_know && (!may_not || reply->type != '-'))
        return ok(reply);
    return reply_begins(reply, '-', SLICE("ERR ")) ? NULL : "a command that this server has not";
}

/* ---- settings of the connection ---- */

static void say_no_evict(struct client *client, struct act *act)
{
    say_client(client, act, "NO-EVICT", on_off(act), NULL);
}

static const char *judge_no_evict(struct client *client, const struct act *act,
                                  const struct reply *reply)
{
    (void)client;
    (void)act;
    return since(70000, reply);
}

static void say_no_touch(struct client *client, struct act *act)
{
    say_client(client, act, "NO-TOUCH", on_off(act), NULL);
}

static const char *judge_no_touch(struct client *client, const struct act *act,
                                  const struct reply *reply)
{
    (void)client;
    (void)act;
    return since(70200, reply);
}

static void say_setinfo(struct client *client, struct act *act)
{
    say_client(client, act, "SETINFO", act->a % 2 == 0 ? "LIB-NAME" : "lib-ver",
               act->b % 2 == 0 ? "sim" : "7");
}

static const char *judge_setinfo(struct client *client, const struct act *act,
                                 const struct reply *reply)
{
    (void)client;
    (void)act;
    return since(70200, reply);
}

static void say_caching(struct client *client, struct act *act)
{
    say_client(client, act, "CACHING", "YES", NULL);
}

static const char *judge_caching(struct client *client, const struct act *act,
                                 const struct reply *reply)
{
    (void)act;
    if (!client->session.is_tracking)
        return reply_begins(reply, '-', SLICE("ERR CLIENT CACHING can be called only when"))
                   ? NULL
                   : "it does not track";
    client->session.may_be_invalidated = true;
    return ok(reply);
}

/* ---- CLIENT INFO and LIST ---- */

/* Copies the word behind `name`, such as " name=", in a line. */
static bool field(struct slice line, const char *name, char out[WORD_ROOM])
{
    const char *at = memmem(line.at, line.len, name, strlen(name));
    size_t n = 0;
    if (at == NULL)
        return false;
    for (at += strlen(name);
         at < line.at + line.len && *at != ' ' && *at != '\n' && n + 1 < WORD_ROOM; at++)
        out[n++] = *at;
    out[n] = '\0';
    return true;
}

static bool is_field(struct slice line, const char *name, const char *value)
{
    char text[WORD_ROOM];
    return field(line, name, text) && strcmp(text, value) == 0;
}

/* Judges the client's own line. */
static const char *judge_line(const struct session *session, unsigned number, struct slice line)
{
    char text[WORD_ROOM];
    print(text, "u%u", session->user);
    if (!is_field(line, " user=", session->user == 0 ? "default" : text))
        return "another user";
    print(text, "%u", session->database);
    if (!is_field(line, " db=", text))
        return "another database";
    print(text, "n%u.%u", number, session->name);
    if (!is_field(line, " name=", session->name == 0 ? "" : text))
        return "another name";
    if (session->n_subscribed == 0 &&
        (!is_field(line, " sub=", "0") || !is_field(line, " psub=", "0")))
        return "it has not subscribed";
    if (run.oldest >= 70000 && !is_field(line, " resp=", session->is_resp3 ? "3" : "2"))
        return "another protocol";
    print(text, "%" PRId64, session->id);
    return session->id == 0 || is_field(line, "id=", text) ? NULL : "another number";
}

static struct slice text_of(const struct reply *reply)
{
    bool is_verbatim = reply->type == '=' && reply->text.len >= 4;
    return is_verbatim ? slice_of(reply->text.at + 4, reply->text.len - 4) : reply->text;
}

static void say_info(struct client *client, struct act *act)
{
    say_client(client, act, "INFO", NULL, NULL);
}

static const char *judge_info(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    char text[WORD_ROOM];
    (void)act;
    if (reply->type != (client->session.is_resp3 ? '=' : '$') || reply->is_nil ||
        !field(text_of(reply), "id=", text))
        return "it is no line";
    const char *why = judge_line(&client->session, client->number, text_of(reply));
    client->session.id = strtoll(text, NULL, 10);
    return why;
}

/*
 * Lists the client's last known id, which may be another connection's by now, or all connections.
 */
static void say_list(struct client *client, struct act *act)
{
    bool is_by_id = client->session.id > 0 && act->a % 2 == 0;
    act->b = is_by_id ? (uint32_t)client->session.id : 0;
    say_begin(client, is_by_id ? 4 : 2);
    say_word(client, SLICE("CLIENT"));
    say_word(client, SLICE("LIST"));
    if (is_by_id) {
        say_word(client, SLICE("ID"));
        say_text(client, "%" PRId64, client->session.id);
    }
    expect(client, act);
}

/*
 * All connections in the list are weir's, and of their users the list shows only names. The
 * client's own line must be in the list, if the client knows its id.
 */
static const char *judge_list(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    struct session *session = &client->session;
    struct slice all = text_of(reply);
    char mark[WORD_ROOM];
    if (reply->type != (session->is_resp3 ? '=' : '$') || reply->is_nil)
        return "it is no list";
    if (session->id == 0 || (act->b != 0 && act->b != (uint32_t)session->id))
        return NULL;
    print(mark, "id=%" PRId64 " ", session->id);
    for (const char *at = all.at, *end = all.at + all.len; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop != NULL ? stop : end;
        struct slice line = slice_of(at, (size_t)(stop - at));
        if (line.len > strlen(mark) && memcmp(line.at, mark, strlen(mark)) == 0)
            return judge_line(session, client->number, line);
        at = stop + 1;
    }
    return "it is not in the list";
}

/* ---- CLIENT KILL and UNBLOCK ---- */

static const char *const nobody[][2] = {{"ID", "2000000000"}, {"ADDR", "10.9.9.9:1"},
                                        {"TYPE", "replica"},  {"LADDR", "10.9.9.9:6379"},
                                        {"TYPE", "pubsub"},   {"ID", NULL}};
#define N_NOBODY (sizeof nobody / sizeof nobody[0])

/* In a run without faults the filter matches no connection. */
static void say_kill(struct client *client, struct act *act)
{
    act->b = run.is_faultless ? act->b % (N_NOBODY - 2) : act->b % N_NOBODY;
    const struct client *victim = client_picked(act->c);
    const char *const *filter = nobody[act->b];
    bool is_someone = filter[1] == NULL && victim != NULL && victim->session.id > 0;
    say_begin(client, 6);
    say_word(client, SLICE("CLIENT"));
    say_word(client, SLICE("KILL"));
    say_word(client, slice_str(filter[0]));
    if (is_someone)
        say_text(client, "%" PRId64, victim->session.id);
    else
        say_word(client, slice_str(filter[1] != NULL ? filter[1] : nobody[0][1]));
    say_word(client, SLICE("SKIPME"));
    say_word(client, act->a % 2 == 0 ? SLICE("yes") : SLICE("no"));
    expect(client, act);
}

static const char *judge_kill(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    (void)client;
    if (reply->type != ':' || reply->number < 0)
        return "it is no number";
    return act->b < N_NOBODY - 2 && reply->number != 0 ? "it has ended somebody that there is not"
                                                       : NULL;
}

static void say_unblock(struct client *client, struct act *act)
{
    say_client(client, act, "UNBLOCK", "2000000000", act->a % 2 == 0 ? "ERROR" : NULL);
}

static const char *judge_unblock(struct client *client, const struct act *act,
                                 const struct reply *reply)
{
    (void)client;
    (void)act;
    return reply_is_integer(reply, 0) ? NULL : "nobody has that number";
}

/* ---- CLIENT PAUSE ---- */

static void say_pause(struct client *client, struct act *act)
{
    char ms[WORD_ROOM];
    /* in pure runs a client with a lane for its pause gets READONLY */
    print(ms, "%u", run.plan.is_pure ? 0 : 1 + act->a % 30);
    say_client(client, act, "PAUSE", ms,
               act->b % 3 == 0   ? NULL
               : act->b % 3 == 1 ? "WRITE"
                                 : "ALL");
}

static void say_unpause(struct client *client, struct act *act)
{
    say_client(client, act, "UNPAUSE", NULL, NULL);
}

static const char *judge_ok(struct client *client, const struct act *act, const struct reply *reply)
{
    (void)client;
    (void)act;
    return ok(reply);
}

/* A replica of this Redis never advances, and has nothing of what clients write. */
static void say_wait(struct client *client, struct act *act)
{
    say_begin(client, 3);
    say_word(client, SLICE("WAIT"));
    say_word(client, act->a % 2 == 0 ? SLICE("0") : SLICE("1"));
    say_text(client, "%u", 1 + act->b % 50);
    expect(client, act);
}

static const char *judge_wait(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    bool may_count =
        run.plan.redis.has_replica && (client->session.is_executing || !client->session.has_set);
    (void)act;
    if (reply_is_integer(reply, 0))
        return NULL;
    return may_count && reply_is_integer(reply, 1)
               ? NULL
               : "a replica that has not got what its client wrote";
}

static void say_quit(struct client *client, struct act *act)
{
    say_begin(client, 1);
    say_word(client, SLICE("QUIT"));
    expect(client, act);
    client->intent.is_leaving = true;
}

const struct op connection_ops[] = {
    {"no_evict", 1, OP_CONTROL, 0, say_no_evict, judge_no_evict},
    {"no_touch", 1, OP_CONTROL, 0, say_no_touch, judge_no_touch},
    {"setinfo", 2, OP_CONTROL, 0, say_setinfo, judge_setinfo},
    {"caching", 2, OP_CONTROL, 0, say_caching, judge_caching},
    {"info", 2, OP_CONTROL | OP_QUEUES, 0, say_info, judge_info},
    {"list", 2, OP_QUEUES, LIMIT_ANY, say_list, judge_list},
    {"kill", 2, OP_QUEUES, LIMIT_ANY, say_kill, judge_kill},
    {"unblock", 1, OP_QUEUES, LIMIT_ANY, say_unblock, judge_unblock},
    {"pause_all", 1, OP_QUEUES, LIMIT_ANY, say_pause, judge_ok},
    {"unpause", 3, OP_CONTROL, 0, say_unpause, judge_ok},
    {"wait", 3, OP_QUEUES | OP_BLOCKS, LIMIT_ANY, say_wait, judge_wait},
    {"quit", 1, OP_CONTROL | OP_SUBSCRIBED | OP_MULTI | OP_LEAVES, 0, say_quit, judge_ok},
    {0},
};
