/*
 * Scripts that take Redis' time: other requests wait, get BUSY after a while, and may kill the
 * script. Also scripts with forged replies, where later replies can still be judged.
 */
#include <string.h>

#include "tests/sim/admin.h"
#include "tests/sim/ops.h"
#include "tests/sim/run.h"

#define SLOW_MAX_US 3000000

/* ---- slow scripts ---- */

static uint32_t time_us(const struct act *act)
{
    static const uint32_t most[] = {1000, 20000, 200000, SLOW_MAX_US};
    return run.plan.has_slow ? 1 + act->c / 4 % most[act->c % 4] : 0;
}

static void say_slow(struct client *client, const struct act *act, const char *script)
{
    say_begin(client, 6);
    say_word(client, SLICE("EVAL"));
    say_word(client, slice_str(script));
    say_word(client, SLICE("1"));
    say_key(client, 'k', act->a);
    say_value(client, act->b);
    say_text(client, "%u", time_us(act));
    expect(client, act);
}

static void say_slow_echo(struct client *client, struct act *act)
{
    act->b = ++client->numbers;
    say_slow(client, act, "redis.take_us(tonumber(ARGV[2])) return ARGV[1]");
}

static bool is_killed(const struct act *act, const struct reply *reply)
{
    static const char killed[] = "Script killed by user";
    return reply->type == '-' &&
           memmem(reply->text.at, reply->text.len, killed, sizeof killed - 1) != NULL &&
           admin_may_have_killed(act);
}

static const char *judge_slow_echo(struct client *client, const struct act *act,
                                   const struct reply *reply)
{
    if (is_killed(act, reply))
        return NULL;
    return is_value(client, act->b, reply) ? NULL : "not what it said";
}

/* A script that has written cannot be killed. */
static void say_slow_set(struct client *client, struct act *act)
{
    act->b = ++client->numbers;
    say_slow(
        client, act,
        "redis.call('SET', KEYS[1], ARGV[1]) redis.take_us(tonumber(ARGV[2])) return {ok='OK'}");
}

static void say_kill(struct client *client, struct act *act)
{
    say_begin(client, 2);
    say_word(client, SLICE("SCRIPT"));
    say_word(client, SLICE("KILL"));
    expect(client, act);
}

static const char *judge_kill(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    (void)client;
    (void)act;
    bool is_answer = reply_is_ok(reply) || reply_begins(reply, '-', SLICE("NOTBUSY ")) ||
                     reply_begins(reply, '-', SLICE("UNKILLABLE "));
    return is_answer ? NULL : "neither killed nor why not";
}

/* ---- forged replies ---- */

static void say_forged(struct client *client, const struct act *act, const char *script)
{
    say_begin(client, 3);
    say_word(client, SLICE("EVAL"));
    say_word(client, slice_str(script));
    say_word(client, SLICE("0"));
    expect(client, act);
}

/*
 * Where the server lets a script forge, the second script seems answered while Redis still runs it.
 * weir must not trust the next reply on this lane: weir sends a nonce, and closes the lane.
 */
static void say_forge_ok(struct client *client, struct act *act)
{
    struct act select = {.op = op_named(SLICE("select_none"))};
    client->may_be_closed = true;
    say_forged(client, act, "return {ok='OK\\r\\n+OK'}");
    say_forged(client, act,
               act->a % 2 == 0 || !run.plan.has_slow ? "return {ok='OK'}"
                                                     : "redis.take_us(300000) return {ok='OK'}");
    select.op->say(client, &select);
}

static const char *judge_forge_ok(struct client *client, const struct act *act,
                                  const struct reply *reply)
{
    (void)client;
    if (is_killed(act, reply))
        return NULL;
    return reply_begins(reply, '+', SLICE("OK")) ? NULL : "it is not OK";
}

const struct op slow_ops[] = {
    {"slow_echo", 3, OP_QUEUES, LIMIT_ANY, say_slow_echo, judge_slow_echo},
    {"slow_set", 1, OP_QUEUES, LIMIT_ANY, say_slow_set, judge_set},
    {"script_kill", 2, OP_QUEUES, LIMIT_ANY, say_kill, judge_kill},
    {"forge_ok", 1, 0, LIMIT_ANY, say_forge_ok, judge_forge_ok},
    {0},
};
