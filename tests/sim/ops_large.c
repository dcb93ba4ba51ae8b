/*
 * Requests and replies that are large, deeply nested, or of RESP3 types. Each must arrive whole,
 * even for slow readers.
 */
#include <string.h>

#include "base/mem.h"
#include "tests/sim/ops.h"
#include "tests/sim/run.h"

/* Bytes of a word: below and above what is sent in one piece, and above what a lane buffers. */
static const size_t sizes[] = {9000, 20000, 70000, 150000, 400000, 1100000, 3000000};
#define N_SIZES (sizeof sizes / sizeof sizes[0])

static size_t size_of(const struct act *act)
{
    return sizes[act->a % N_SIZES];
}

/* Every byte of the value. */
static char letter_of(const struct act *act)
{
    return (char)('a' + act->b % 26);
}

/* A client without a login is closed at the first large word, and may not get the error. */
static void fit(const struct client *client, struct act *act)
{
    if (!client->intent.is_in)
        act->a = 0;
}

static void say_large(struct client *client, const struct act *act)
{
    say_letters(client, letter_of(act), size_of(act));
}

static const char *judge_large(const struct reply *reply, size_t size, char letter)
{
    if (reply->type != '$' || reply->is_nil || reply->text.len != size)
        return "not as long as it must be";
    const char *text = reply->text.at;
    bool is_same = size == 0 || (text[0] == letter && memcmp(text, text + 1, size - 1) == 0);
    return is_same ? NULL : "not the letters that it must be";
}

static void say_large_echo(struct client *client, struct act *act)
{
    fit(client, act);
    say_begin(client, 2);
    say_word(client, SLICE("ECHO"));
    say_large(client, act);
    expect(client, act);
}

static const char *judge_large_echo(struct client *client, const struct act *act,
                                    const struct reply *reply)
{
    (void)client;
    return judge_large(reply, size_of(act), letter_of(act));
}

/* ---- a large value of the client's own ---- */

static void say_large_set(struct client *client, struct act *act)
{
    fit(client, act);
    say_begin(client, 3);
    say_word(client, SLICE("SET"));
    say_key(client, 'g', 0);
    say_large(client, act);
    expect(client, act);
}

static const char *judge_large_set(struct client *client, const struct act *act,
                                   const struct reply *reply)
{
    client->session.large[client->session.database] = (struct large){size_of(act), letter_of(act)};
    return reply_is_ok(reply) ? NULL : "it is not OK";
}

static void say_large_get(struct client *client, struct act *act)
{
    say_begin(client, 2);
    say_word(client, SLICE("GET"));
    say_key(client, 'g', 0);
    expect(client, act);
}

static const char *judge_large_get(struct client *client, const struct act *act,
                                   const struct reply *reply)
{
    struct large large = client->session.large[client->session.database];
    (void)act;
    if (client->session.losses != run.losses)
        return NULL;
    if (large.size == 0)
        return reply->is_nil ? NULL : "a value where there is none";
    return judge_large(reply, large.size, large.letter);
}

/* Many requests at once from a client that does not read: the replies must be buffered. */
static void say_large_gets(struct client *client, struct act *act)
{
    for (unsigned i = 0; i < 8; i++)
        say_large_get(client, act);
    client->reads_ns = world.now_ns + (1 + act->b % 8000) * UINT64_C(1000000);
}

/* ---- a large value that all clients share ---- */

static void say_huge_key(struct client *client)
{
    if (run.plan.has_huge)
        say_word(client, SLICE("huge"));
    else
        say_key(client, 'g', 0);
}

static void say_huge_set(struct client *client, struct act *act)
{
    fit(client, act);
    say_begin(client, 3);
    say_word(client, SLICE("SET"));
    say_huge_key(client);
    say_large(client, act);
    expect(client, act);
}

static const char *judge_huge_set(struct client *client, const struct act *act,
                                  const struct reply *reply)
{
    return run.plan.has_huge ? (reply_is_ok(reply) ? NULL : "it is not OK")
                             : judge_large_set(client, act, reply);
}

/* A client that does not read a reply which blocks other clients may be closed. */
static void say_huge_get(struct client *client, struct act *act)
{
    client->may_be_closed |= run.plan.has_huge;
    say_begin(client, 2);
    say_word(client, SLICE("GET"));
    say_huge_key(client);
    expect(client, act);
}

/* The value must be that of one write, in full. */
static const char *judge_huge_get(struct client *client, const struct act *act,
                                  const struct reply *reply)
{
    if (!run.plan.has_huge)
        return judge_large_get(client, act, reply);
    if (reply->is_nil)
        return NULL;
    for (size_t i = 0; i < N_SIZES; i++)
        if (reply->type == '$' && reply->text.len == sizes[i])
            return judge_large(reply, sizes[i], reply->text.at[0]);
    return "not as long as anybody has written";
}

static void say_huge_gets(struct client *client, struct act *act)
{
    for (unsigned i = 0; i < 1 + act->a % 4; i++)
        say_huge_get(client, act);
    client->reads_ns = world.now_ns + (1 + act->b % 4000) * UINT64_C(1000000);
}

/* ---- nested replies, RESP3 types ---- */

static const struct {
    const char *script;
    char type_2, type_3; /* type of the reply in RESP2 and RESP3 */
} replies[] = {
    {"local t = {} local x = t for i = 1, 60 do x[1] = {} x = x[1] end return t", '*', '*'},
    {"local t = {} for i = 1, 3000 do t[i] = {i, 'x'} end return t", '*', '*'},
    {"return {map = {a = 1, b = {map = {c = 2}}}}", '*', '%'},
    {"return {set = {a = true, b = true}}", '*', '~'},
    {"return {double = 1.5}", '$', ','},
    {"redis.setresp(3) return true", ':', '#'},
    {"redis.setresp(3) return {1, false, {double = 2.5}, {map = {a = true}}}", '*', '*'},
    {"return false", '$', '_'},
    {"return ''", '$', '$'},
    {"return {}", '*', '*'},
};
#define N_REPLIES (sizeof replies / sizeof replies[0])

static void say_typed(struct client *client, struct act *act)
{
    say_begin(client, 3);
    say_word(client, SLICE("EVAL"));
    say_word(client, slice_str(replies[act->a % N_REPLIES].script));
    say_word(client, SLICE("0"));
    expect(client, act);
}

static const char *judge_typed(struct client *client, const struct act *act,
                               const struct reply *reply)
{
    char type = client->session.is_resp3 ? replies[act->a % N_REPLIES].type_3
                                         : replies[act->a % N_REPLIES].type_2;
    return reply->type == type ? NULL : "not of the type that it must be";
}

/*
 * A large request is decided at its head, at an unknown time before its end is read. Large ops
 * therefore have no classes.
 */
const struct op large_ops[] = {
    {"large_echo", 1, OP_CONTROL | OP_QUEUES, 0, say_large_echo, judge_large_echo},
    {"large_set", 1, OP_QUEUES, 0, say_large_set, judge_large_set},
    {"large_get", 2, OP_QUEUES, LIMIT_ANY | LIMIT_READ | LIMIT_GET, say_large_get, judge_large_get},
    {"large_gets", 1, 0, LIMIT_ANY | LIMIT_READ | LIMIT_GET, say_large_gets, judge_large_get},
    {"huge_set", 1, OP_QUEUES, 0, say_huge_set, judge_huge_set},
    {"huge_get", 3, OP_QUEUES, LIMIT_ANY | LIMIT_READ | LIMIT_GET, say_huge_get, judge_huge_get},
    {"huge_gets", 1, 0, LIMIT_ANY | LIMIT_READ | LIMIT_GET, say_huge_gets, judge_huge_get},
    {"typed", 5, OP_QUEUES, LIMIT_ANY, say_typed, judge_typed},
    {0},
};
