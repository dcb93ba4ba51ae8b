/* Commands that block on lists of the client's own. Only the client itself puts elements there. */
#include "tests/sim/ops.h"
#include "tests/sim/run.h"

static struct own_list *list_of(struct client *client, uint32_t key)
{
    return &client->session.own[client->session.database].lists[key % OWN_KEYS];
}

static bool is_outcome_unknown(const struct client *client)
{
    return client->session.losses != run.losses;
}

static void say_time(struct client *client, const struct act *act)
{
    static const char *const times[] = {"0.001", "0.05", "0.3", "1"};
    say_text(client, "%s", times[act->c % 4]);
}

static uint32_t take(struct own_list *list, bool is_left)
{
    uint32_t item = list->n == 0 ? 0 : list->items[is_left ? 0 : list->n - 1];
    for (unsigned i = 1; is_left && i < list->n; i++)
        list->items[i - 1] = list->items[i];
    list->n -= list->n > 0;
    return item;
}

static void give(struct own_list *list, uint32_t item, bool is_left)
{
    if (list->n == LIST_MAX)
        return; /* see judge_push */
    for (unsigned i = list->n; is_left && i > 0; i--)
        list->items[i] = list->items[i - 1];
    list->items[is_left ? 0 : list->n] = item;
    list->n++;
}

static const char *as_value(const struct client *client, uint32_t number, const struct reply *reply)
{
    if (is_outcome_unknown(client))
        return NULL;
    if (number == 0)
        return reply->is_nil ? NULL : "a value where there is none";
    return is_value(client, number, reply) ? NULL : "not the value that is there";
}

static void say_brpop(struct client *client, struct act *act)
{
    say_begin(client, 3);
    say_word(client, SLICE("BRPOP"));
    say_key(client, 'l', act->a);
    say_time(client, act);
    expect(client, act);
}

static const char *judge_brpop(struct client *client, const struct act *act,
                               const struct reply *reply)
{
    struct reply value;
    uint32_t number = take(list_of(client, act->a), false);
    if (is_outcome_unknown(client) || number == 0)
        return as_value(client, number, reply);
    if (reply->type != '*' || reply->number != 2 || !reply_at(reply, 1, &value))
        return "it is no key with its value";
    return as_value(client, number, &value);
}

static bool takes_left(const struct act *act)
{
    return act->c / 4 % 2 == 0;
}

static bool gives_left(const struct act *act)
{
    return act->c / 8 % 2 == 0;
}

/* On an empty list BLMOVE waits until its time-out. */
static void say_move(struct client *client, const struct act *act, bool blocks)
{
    say_begin(client, blocks ? 6 : 5);
    say_word(client, blocks ? SLICE("BLMOVE") : SLICE("LMOVE"));
    say_key(client, 'l', act->a);
    say_key(client, 'l', act->b);
    say_word(client, takes_left(act) ? SLICE("LEFT") : SLICE("right"));
    say_word(client, gives_left(act) ? SLICE("left") : SLICE("RIGHT"));
    if (blocks)
        say_time(client, act);
    expect(client, act);
}

static void say_blmove(struct client *client, struct act *act)
{
    say_move(client, act, true);
}

static void say_lmove(struct client *client, struct act *act)
{
    say_move(client, act, false);
}

static const char *judge_move(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    uint32_t number = take(list_of(client, act->a), takes_left(act));
    if (number != 0)
        give(list_of(client, act->b), number, gives_left(act));
    return as_value(client, number, reply);
}

const struct op blocking_ops[] = {
    {"brpop", 4, OP_QUEUES | OP_BLOCKS, LIMIT_ANY | LIMIT_WRITE, say_brpop, judge_brpop},
    {"blmove", 4, OP_QUEUES | OP_BLOCKS, LIMIT_ANY | LIMIT_WRITE, say_blmove, judge_move},
    {"lmove", 4, OP_QUEUES, LIMIT_ANY | LIMIT_WRITE, say_lmove, judge_move},
    {0},
};
