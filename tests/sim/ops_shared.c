/*
 * Commands on keys that all clients share: pairs of keys with equal values, a counter, and queues.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/num.h"
#include "tests/sim/ops.h"
#include "tests/sim/run.h"

#define PAIRS 3
#define QUEUES 2

/* State of all clients together. */
static struct shared {
    uint8_t *taken; /* for each item ever queued: how often it was taken out */
    uint32_t n_items, room;
} shared;

static bool is_outcome_unknown(const struct client *client)
{
    return client->session.losses != run.losses;
}

/* ---- two keys that are only written together ---- */

static void say_pair_keys(struct client *client, const struct act *act, bool with_value)
{
    char text[WORD_ROOM];
    for (unsigned i = 0; i < 2; i++) {
        say_word(client, print(text, "p:%u:%u", act->a % PAIRS, i));
        if (with_value)
            say_word(client, print(text, "=%u.%u.%u=", client->number, client->life, act->b));
    }
}

static void say_mset(struct client *client, struct act *act)
{
    act->b = ++client->numbers;
    say_begin(client, 5);
    say_word(client, SLICE("MSET"));
    say_pair_keys(client, act, true);
    expect(client, act);
}

static const char *judge_mset(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    (void)client;
    (void)act;
    return reply_is_ok(reply) ? NULL : "it is not OK";
}

static void say_pair(struct client *client, struct act *act)
{
    say_begin(client, 3);
    say_word(client, SLICE("MGET"));
    say_pair_keys(client, act, false);
    expect(client, act);
}

static const char *judge_pair(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    struct reply one, other;
    (void)client;
    (void)act;
    if (reply->type != '*' || reply->number != 2 || !reply_at(reply, 0, &one) ||
        !reply_at(reply, 1, &other))
        return "it is no pair";
    if (one.is_nil || other.is_nil)
        return one.is_nil && other.is_nil ? NULL : "half of a pair";
    if (!slice_eq(one.text, other.text))
        return "two halves of different pairs";
    return one.text.len > 2 && one.text.at[0] == '=' ? NULL : "no value of a pair";
}

/* ---- a counter ---- */

static void say_count(struct client *client, struct act *act)
{
    say_begin(client, 2);
    say_word(client, SLICE("INCR"));
    say_word(client, SLICE("s:count"));
    expect(client, act);
}

static const char *judge_count(struct client *client, const struct act *act,
                               const struct reply *reply)
{
    int64_t *last = &client->session.last_counts[client->session.database];
    int64_t before = *last;
    (void)act;
    *last = reply->number;
    if (reply->type != ':')
        return "it is no number";
    return reply->number > before || is_outcome_unknown(client) ? NULL : "it has counted back";
}

/* ---- a queue: each item comes out once ---- */

static void say_put(struct client *client, struct act *act)
{
    char text[WORD_ROOM];
    if (shared.n_items == shared.room) {
        shared.room = shared.room > 0 ? 2 * shared.room : 1024;
        shared.taken = mem_realloc(shared.taken, shared.room, 1);
    }
    act->b = shared.n_items++;
    shared.taken[act->b] = 0;
    say_begin(client, 3);
    say_word(client, SLICE("RPUSH"));
    say_word(client, print(text, "q:%u", act->a % QUEUES));
    say_word(client, print(text, "item:%u", act->b));
    expect(client, act);
}

static const char *judge_put(struct client *client, const struct act *act,
                             const struct reply *reply)
{
    (void)client;
    (void)act;
    return reply->type == ':' && reply->number > 0 ? NULL : "it is no length";
}

static void say_serve(struct client *client, struct act *act)
{
    static const char *const times[] = {"0.001", "0.02", "0.5", "3"};
    char text[WORD_ROOM];
    say_begin(client, 3);
    say_word(client, SLICE("BLPOP"));
    say_word(client, print(text, "q:%u", act->a % QUEUES));
    say_word(client, slice_str(times[act->b % 4]));
    expect(client, act);
}

static const char *judge_serve(struct client *client, const struct act *act,
                               const struct reply *reply)
{
    struct reply item;
    int64_t number;
    (void)client;
    (void)act;
    if (reply->is_nil)
        return NULL;
    if (reply->type != '*' || reply->number != 2 || !reply_at(reply, 1, &item) ||
        item.text.len <= 5 || memcmp(item.text.at, "item:", 5) != 0 ||
        !num_parse(slice_of(item.text.at + 5, item.text.len - 5), &number) ||
        number >= (int64_t)shared.n_items)
        return "it is no item";
    return shared.taken[number]++ == 0 ? NULL : "an item that was taken before";
}

void shared_fini(void)
{
    free(shared.taken);
    shared = (struct shared){0};
}

const struct op shared_ops[] = {
    {"mset", 40, OP_QUEUES, LIMIT_ANY | LIMIT_WRITE, say_mset, judge_mset},
    {"pair", 60, OP_QUEUES, LIMIT_ANY | LIMIT_READ, say_pair, judge_pair},
    {"count", 20, OP_QUEUES, LIMIT_ANY | LIMIT_WRITE, say_count, judge_count},
    {"put", 10, OP_QUEUES, LIMIT_ANY | LIMIT_WRITE, say_put, judge_put},
    {"serve", 5, OP_QUEUES | OP_BLOCKS, LIMIT_ANY | LIMIT_WRITE, say_serve, judge_serve},
    {0},
};
