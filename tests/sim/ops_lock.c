/*
 * WATCH of keys that other clients write: a transaction that runs must follow the value that its
 * client has read.
 */
#include "tests/sim/ops.h"
#include "tests/sim/run.h"

#define LOCKS 2

static void say_on_lock(struct client *client, const struct act *act, const char *word)
{
    char text[WORD_ROOM];
    say_begin(client, 2);
    say_word(client, slice_str(word));
    say_word(client, print(text, "w:%u", act->a % LOCKS));
    expect(client, act);
}

static void say_step(struct client *client, const struct act *act, const char *name)
{
    struct act step = *act;
    step.op = op_named(slice_str(name));
    step.op->say(client, &step);
}

/* GET between WATCH and MULTI: INCR in the transaction gives the value plus one, or EXEC fails. */
static void say_lock(struct client *client, struct act *act)
{
    say_step(client, act, "lock_watch");
    say_step(client, act, "lock_read");
    say_step(client, act, "multi");
    say_step(client, act, "lock_count");
    say_step(client, act, "exec");
}

static void say_lock_watch(struct client *client, struct act *act)
{
    say_on_lock(client, act, "WATCH");
}

static const char *judge_lock_watch(struct client *client, const struct act *act,
                                    const struct reply *reply)
{
    (void)act;
    client->session.is_watching = client->session.has_shared_watch = true;
    client->session.locked = -1;
    return reply_is_ok(reply) ? NULL : "it is not OK";
}

static void say_lock_read(struct client *client, struct act *act)
{
    say_on_lock(client, act, "GET");
}

static const char *judge_lock_read(struct client *client, const struct act *act,
                                   const struct reply *reply)
{
    int64_t number = 0;
    (void)act;
    if (reply->type != '$' && !reply->is_nil)
        return "it is no value";
    for (size_t i = 0; !reply->is_nil && i < reply->text.len; i++)
        number = 10 * number + (reply->text.at[i] - '0');
    client->session.locked = number;
    return NULL;
}

static void say_lock_count(struct client *client, struct act *act)
{
    say_on_lock(client, act, "INCR");
}

static const char *judge_lock_count(struct client *client, const struct act *act,
                                    const struct reply *reply)
{
    int64_t before = client->session.locked;
    (void)act;
    client->session.locked = -1;
    if (reply->type != ':')
        return "it is no number";
    bool is_known =
        client->session.is_executing && before >= 0 && client->session.losses == run.losses;
    return !is_known || reply->number == before + 1 ? NULL : "somebody has written in between";
}

const struct op lock_ops[] = {
    {"lock", 6, 0, LIMIT_ANY, say_lock, NULL},
    {"lock_watch", 0, OP_CONTROL, 0, say_lock_watch, judge_lock_watch},
    {"lock_read", 0, 0, LIMIT_ANY | LIMIT_READ | LIMIT_GET, say_lock_read, judge_lock_read},
    {"lock_count", 1, OP_QUEUES, LIMIT_ANY | LIMIT_WRITE, say_lock_count, judge_lock_count},
    {0},
};
