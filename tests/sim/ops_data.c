/* Commands on keys of the client's own: the client knows their content exactly. */
#include <inttypes.h>
#include <stdio.h>

#include "tests/sim/ops.h"
#include "tests/sim/run.h"

static struct own *own_of(struct client *client)
{
    return &client->session.own[client->session.database];
}

/*
 * Notes a write to the client's own value. A transaction that watches the value fails, unless the
 * write is the transaction's own.
 */
static void touch(struct client *client, uint32_t key)
{
    struct session *session = &client->session;
    if (!session->is_executing && (session->watched[session->database] >> key % OWN_KEYS & 1) != 0)
        session->is_touched = true;
}

/* True if Redis has lost data since this connection began: the content is unknown. */
static bool is_outcome_unknown(const struct client *client)
{
    return client->session.losses != run.losses;
}

static bool is_nil(const struct reply *reply)
{
    return reply->is_nil && reply->type != '*';
}

static const char *as_value(const struct client *client, uint32_t number, const struct reply *reply)
{
    if (is_outcome_unknown(client))
        return NULL;
    if (number == 0)
        return is_nil(reply) ? NULL : "a value where there is none";
    return is_value(client, number, reply) ? NULL : "not the value that is there";
}

static const char *as_integer(const struct client *client, int64_t number,
                              const struct reply *reply)
{
    if (is_outcome_unknown(client))
        return reply->type == ':' ? NULL : "no integer";
    return reply_is_integer(reply, number) ? NULL : "not the number that it must be";
}

/* ---- strings ---- */

static void say_set(struct client *client, struct act *act)
{
    act->b = ++client->numbers;
    say_begin(client, 3);
    say_word(client, SLICE("SET"));
    say_key(client, 'k', act->a);
    say_value(client, act->b);
    expect(client, act);
}

const char *judge_set(struct client *client, const struct act *act, const struct reply *reply)
{
    own_of(client)->values[act->a % OWN_KEYS] = act->b;
    touch(client, act->a);
    client->session.has_set |= reply_is_ok(reply);
    return reply_is_ok(reply) ? NULL : "it is not OK";
}

static void say_get(struct client *client, struct act *act)
{
    say_begin(client, 2);
    say_word(client, SLICE("GET"));
    say_key(client, 'k', act->a);
    expect(client, act);
}

const char *judge_get(struct client *client, const struct act *act, const struct reply *reply)
{
    return as_value(client, own_of(client)->values[act->a % OWN_KEYS], reply);
}

static void say_getset(struct client *client, struct act *act)
{
    act->b = ++client->numbers;
    say_begin(client, 4);
    say_word(client, SLICE("SET"));
    say_key(client, 'k', act->a);
    say_value(client, act->b);
    say_word(client, SLICE("GET"));
    expect(client, act);
}

static const char *judge_getset(struct client *client, const struct act *act,
                                const struct reply *reply)
{
    uint32_t before = own_of(client)->values[act->a % OWN_KEYS];
    own_of(client)->values[act->a % OWN_KEYS] = act->b;
    touch(client, act->a);
    return as_value(client, before, reply);
}

static void say_del(struct client *client, struct act *act)
{
    say_begin(client, 2);
    say_word(client, SLICE("DEL"));
    say_key(client, 'k', act->a);
    expect(client, act);
}

static const char *judge_del(struct client *client, const struct act *act,
                             const struct reply *reply)
{
    uint32_t *value = &own_of(client)->values[act->a % OWN_KEYS];
    bool was_there = *value != 0;
    if (reply->number > 0) /* the key may have been lost before */
        touch(client, act->a);
    *value = 0;
    return as_integer(client, was_there, reply);
}

static void say_mget(struct client *client, struct act *act)
{
    act->b = 1 + act->b % 3;
    say_begin(client, 1 + act->b);
    say_word(client, SLICE("MGET"));
    for (uint32_t i = 0; i < act->b; i++)
        say_key(client, 'k', act->a + i);
    expect(client, act);
}

static const char *judge_mget(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    if (reply->type != '*' || reply->number != (int64_t)act->b)
        return "not as many as asked for";
    struct reply element;
    struct slice inside = reply->inside;
    for (uint32_t i = 0; reply_next(&inside, &element); i++) {
        const char *why =
            as_value(client, own_of(client)->values[(act->a + i) % OWN_KEYS], &element);
        if (why != NULL)
            return why;
    }
    return NULL;
}

/* ---- counters ---- */

static void say_incr(struct client *client, struct act *act)
{
    act->b %= 100;
    say_begin(client, act->b == 0 ? 2 : 3);
    say_word(client, act->b == 0 ? SLICE("INCR") : SLICE("INCRBY"));
    say_key(client, 'n', act->a);
    if (act->b != 0)
        say_text(client, "%u", act->b);
    expect(client, act);
}

static const char *judge_incr(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    int64_t *counter = &own_of(client)->counters[act->a % OWN_KEYS];
    *counter += act->b == 0 ? 1 : act->b;
    return as_integer(client, *counter, reply);
}

/* ---- lists ---- */

static struct own_list *list_of(struct client *client, const struct act *act)
{
    return &own_of(client)->lists[act->a % OWN_KEYS];
}

static void say_push(struct client *client, struct act *act)
{
    act->b = ++client->numbers;
    say_begin(client, 3);
    say_word(client, SLICE("RPUSH"));
    say_key(client, 'l', act->a);
    say_value(client, act->b);
    expect(client, act);
}

static const char *judge_push(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    struct own_list *list = list_of(client, act);
    if (list->n == LIST_MAX)
        /* longer lists are not modelled, see judge_pop */
        return as_integer(client, reply->number, reply);
    list->items[list->n++] = act->b;
    return as_integer(client, list->n, reply);
}

static uint32_t shift(struct own_list *list)
{
    uint32_t first = list->n > 0 ? list->items[0] : 0;
    for (unsigned i = 1; i < list->n; i++)
        list->items[i - 1] = list->items[i];
    list->n -= list->n > 0;
    return first;
}

static void say_pop(struct client *client, struct act *act)
{
    say_begin(client, 2);
    say_word(client, SLICE("LPOP"));
    say_key(client, 'l', act->a);
    expect(client, act);
}

static const char *judge_pop(struct client *client, const struct act *act,
                             const struct reply *reply)
{
    return as_value(client, shift(list_of(client, act)), reply);
}

/* Blocks on an empty list: no other client adds to it. */
static void say_blpop(struct client *client, struct act *act)
{
    static const char *const times[] = {"0.001", "0.05", "0.3", "2"};
    say_begin(client, 3);
    say_word(client, SLICE("BLPOP"));
    say_key(client, 'l', act->a);
    say_text(client, "%s", times[act->b % 4]);
    expect(client, act);
}

static const char *judge_blpop(struct client *client, const struct act *act,
                               const struct reply *reply)
{
    struct reply value;
    uint32_t number = shift(list_of(client, act));
    if (is_outcome_unknown(client))
        return NULL;
    if (number == 0)
        return reply->is_nil ? NULL : "a value where there is none";
    if (reply->type != '*' || reply->number != 2 || !reply_at(reply, 1, &value))
        return "it is no key with its value";
    return as_value(client, number, &value);
}

const struct op data_ops[] = {
    {"set", 200, OP_QUEUES, LIMIT_ANY | LIMIT_WRITE | LIMIT_SET, say_set, judge_set},
    {"get", 300, OP_QUEUES, LIMIT_ANY | LIMIT_READ | LIMIT_GET, say_get, judge_get},
    {"getset", 20, OP_QUEUES, LIMIT_ANY | LIMIT_WRITE | LIMIT_SET, say_getset, judge_getset},
    {"del", 40, OP_QUEUES, LIMIT_ANY | LIMIT_WRITE, say_del, judge_del},
    {"mget", 60, OP_QUEUES, LIMIT_ANY | LIMIT_READ, say_mget, judge_mget},
    {"incr", 100, OP_QUEUES, LIMIT_ANY | LIMIT_WRITE, say_incr, judge_incr},
    {"push", 30, OP_QUEUES, LIMIT_ANY | LIMIT_WRITE, say_push, judge_push},
    {"pop", 40, OP_QUEUES, LIMIT_ANY | LIMIT_WRITE, say_pop, judge_pop},
    {"blpop", 4, OP_QUEUES | OP_BLOCKS, LIMIT_ANY | LIMIT_WRITE, say_blpop, judge_blpop},
    {0},
};
