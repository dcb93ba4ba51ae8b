/* Scripts, and requests with CLIENT REPLY: each needs a private lane for a while. */
#include <string.h>

#include "tests/sim/ops.h"
#include "tests/sim/run.h"

#define FORGER_RESTS_NS UINT64_C(2000000000)

/* ---- scripts on the client's own keys ---- */

static void say_script(struct client *client, const struct act *act, const char *script,
                       bool has_value)
{
    say_begin(client, has_value ? 5 : 4);
    say_word(client, SLICE("EVAL"));
    say_word(client, slice_str(script));
    say_word(client, SLICE("1"));
    say_key(client, 'k', act->a);
    if (has_value)
        say_value(client, act->b);
    expect(client, act);
}

static void say_eval_get(struct client *client, struct act *act)
{
    say_script(client, act, "return redis.call('GET', KEYS[1])", false);
}

static void say_eval_set(struct client *client, struct act *act)
{
    act->b = ++client->numbers;
    say_script(client, act, "return redis.call('SET', KEYS[1], ARGV[1])", true);
}

static void say_eval_echo(struct client *client, struct act *act)
{
    act->b = ++client->numbers;
    say_script(client, act, "return ARGV[1]", true);
}

static const char *judge_eval_echo(struct client *client, const struct act *act,
                                   const struct reply *reply)
{
    return is_value(client, act->b, reply) ? NULL : "not what it said";
}

static void say_eval_error(struct client *client, struct act *act)
{
    say_begin(client, 3);
    say_word(client, SLICE("EVAL"));
    say_word(client, SLICE("return redis.error_reply('MINE ' .. 6 * 7)"));
    say_word(client, SLICE("0"));
    expect(client, act);
}

static const char *judge_eval_error(struct client *client, const struct act *act,
                                    const struct reply *reply)
{
    (void)client;
    (void)act;
    return reply_begins(reply, '-', SLICE("MINE 42")) ? NULL : "not its own error";
}

/* A reply that looks like a message is still a reply. */
static void say_eval_message(struct client *client, struct act *act)
{
    act->b = ++client->numbers;
    say_script(client, act, "return {'message', ARGV[1], 'x'}", true);
}

static const char *judge_eval_message(struct client *client, const struct act *act,
                                      const struct reply *reply)
{
    struct reply value;
    if (reply->type != '*' || reply->number != 3 || !reply_at(reply, 1, &value))
        return "not the three that it said";
    return is_value(client, act->b, &value) ? NULL : "not what it said";
}

static void say_forging(struct client *client, const char *script)
{
    say_begin(client, 3);
    say_word(client, SLICE("EVAL"));
    say_word(client, slice_str(script));
    say_word(client, SLICE("0"));
}

static const char *const forgeries[] = {
    "return {ok='OK\\r\\n$3\\r\\nfoo'}",
    "return {err='ERR x\\r\\n+OK\\r\\n+OK'}",
    "return redis.error_reply('a\\r\\n*3\\r\\n')",
};

static void say_own_get(struct client *client, const struct act *act)
{
    say_begin(client, 2);
    say_word(client, SLICE("GET"));
    say_key(client, 'k', act->a);
}

/*
 * As many replies as requests arrive before the second script has replied. The second script seems
 * answered while Redis still runs it. Its forged reply would then answer weir's own RESET, before
 * the lane goes to its next owner. Until then the forger sends nothing.
 */
static void forge_reset(struct client *client, const struct act *act)
{
    static const char *const resets[] = {
        "return {ok='RESET\\r\\n+OK'}",
        "return {ok='RESET\\r\\n+OK\\r\\n+OK'}",
        "redis.take_us(1500000) return {ok='RESET\\r\\n+OK'}",
        "redis.take_us(300000) return {ok='RESET\\r\\n+OK'}",
        "redis.take_us(200000) return {ok='RESET\\r\\n+OK\\r\\n+OK'}",
        "redis.take_us(900000) return {ok='RESET\\r\\n+OK'}",
    };
    uint32_t n_more = act->a % 2;
    say_forging(client, forgeries[n_more]);
    say_forging(client,
                resets[act->c % (run.plan.has_slow ? sizeof resets / sizeof resets[0] : 2)]);
    if (n_more > 0)
        say_own_get(client, act);
    client->acts_ns = world.now_ns + FORGER_RESTS_NS;
    clients_follow(client); /* the lane may be lent to one of these clients */
}

/* Forges more than one reply where the server lets it: no other client may get those replies. */
static void forge(struct client *client, struct act *act)
{
    if (act->b % 3 == 2) {
        forge_reset(client, act);
    } else {
        say_forging(client, forgeries[act->a % (sizeof forgeries / sizeof forgeries[0])]);
        if (act->b % 3 == 1) {
            say_begin(client, 3);
            say_word(client, SLICE("BLPOP"));
            say_key(client, 'b', act->c);
            say_word(client, SLICE("0.02"));
        }
        if (act->c % 2 == 0) /* GET needs no private lane, so another client may get the lane */
            say_own_get(client, act);
    }
    client->is_lost = true;
    client->n_expected = 0;
}

/* ---- CLIENT REPLY ---- */

static void say_reply(struct client *client, struct slice mode)
{
    say_begin(client, 3);
    say_word(client, SLICE("CLIENT"));
    say_word(client, SLICE("REPLY"));
    say_word(client, mode);
}

static void say_unheard(struct client *client, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        say_begin(client, 1);
        say_word(client, SLICE("PING"));
    }
}

/*
 * Only CLIENT REPLY ON is answered, unless Redis is away. While Redis is away requests before
 * CLIENT REPLY ON may be answered, and the replies are unknown.
 */
static void be_silent(struct client *client, struct act *act)
{
    client->session.has_been_silent = true;
    say_reply(client, SLICE("OFF"));
    say_unheard(client, act->a % 5);
    say_reply(client, SLICE("ON"));
    expect(client, act);
}

static void skip(struct client *client, struct act *act)
{
    client->session.has_been_silent = true;
    say_reply(client, SLICE("SKIP"));
    say_unheard(client, 1);
    say_begin(client, 1);
    say_word(client, SLICE("PING"));
    expect(client, act);
}

static const char *judge_silent(struct client *client, const struct act *act,
                                const struct reply *reply)
{
    (void)client;
    (void)act;
    return reply_is_ok(reply) ? NULL : "it is not OK";
}

static const char *judge_skip(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    (void)client;
    (void)act;
    return reply_is(reply, '+', SLICE("PONG")) ? NULL : "it is not PONG";
}

const struct op script_ops[] = {
    {"eval_get", 15, OP_QUEUES, LIMIT_ANY, say_eval_get, judge_get},
    {"eval_set", 15, OP_QUEUES, LIMIT_ANY, say_eval_set, judge_set},
    {"eval_echo", 10, OP_QUEUES, LIMIT_ANY, say_eval_echo, judge_eval_echo},
    {"eval_message", 5, OP_QUEUES, LIMIT_ANY, say_eval_message, judge_eval_message},
    {"eval_error", 5, OP_QUEUES, LIMIT_ANY, say_eval_error, judge_eval_error},
    {"forge", 3, 0, 0, forge, NULL},
    {"silent", 3, OP_CONTROL | OP_SILENT, 0, be_silent, judge_silent},
    {"skip", 3, OP_CONTROL | OP_SILENT, 0, skip, judge_skip},
    {0},
};
