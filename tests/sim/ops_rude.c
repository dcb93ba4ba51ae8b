/*
 * Things that a client does without a request: disconnecting, half-closing, not reading, and
 * sending bytes that are no request.
 */
#include <string.h>

#include "tests/sim/ops.h"
#include "tests/sim/run.h"
#include "tests/sim/trace.h"

#define NAP_MAX_US 3000000

static void hang_up(struct client *client, struct act *act)
{
    client_hang_up(client, act->a % 3 == 0);
}

/* A half-close: all requests are still answered. */
static void shut(struct client *client, struct act *act)
{
    (void)act;
    client->intent.is_leaving = true;
}

/* The half-close ends BLPOP. Neither BLPOP nor the requests behind it need be answered. */
static void wait_and_shut(struct client *client, struct act *act)
{
    struct act wait = *act, get = *act;
    wait.op = op_named(SLICE("blpop"));
    get.op = op_named(SLICE("get"));
    wait.op->say(client, &wait);
    for (unsigned i = 0; i < act->c % 4; i++)
        get.op->say(client, &get);
    client->intent.is_leaving = true;
}

static void nap(struct client *client, struct act *act)
{
    client->reads_ns = world.now_ns + (1 + act->a % NAP_MAX_US) * UINT64_C(1000);
}

static void say_garbage(struct client *client, struct act *act)
{
    static const char *const texts[] = {
        "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100\r\nhalf",
        "*3\r\n$3\r\nSET\r\n$536870912\r\n",
        "*1048577\r\n",
        "*2\r\n$3\r\nGET\r\n:1\r\n",
        "*2\r\n$3\r\nGET\r\n$-1\r\n",
        "GET\r\n\"\r\n",
        "*1\r\n$4\r\nPIN",
        "$3\r\nGET\r\n",
        "*99999999999999999999\r\n",
        "*1\r\n$9223372036854775807\r\n",
        "\r\n\r\n\n\n*0\r\n*-1\r\nPING extra words here\r\nPING\r\n",
        "*1\r\n$4\r\nQUIT\r\n*1\r\n$4\r\nPING\r\n",
        "*1\r\n$7\r\nMONITOR\r\n",
        "*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nx\r\n*1\r\n$4\r\nPIN",
        "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$3\r\nOFF\r\n*1\r\n$4\r\nPING\r\n",
        "*2\r\n$4\r\nAUTH\r\n$3\r\nbad\r\n*5\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$1\r\nx\r\n$1\r\ny\r\n",
        "*3\r\n$4\r\nEVAL\r\n$20\r\nreturn redis.call('x\r\n$1\r\n0\r\n",
        "GET / HTTP/1.1\r\nHost: weir\r\n\r\n",
    };
    const char *text = texts[act->a % (sizeof texts / sizeof texts[0])];
    say_raw(client, text, strlen(text));
    client->is_lost = true;
    client->n_expected = 0;
    client->sees_all |= strstr(text, "MONITOR") != NULL;
    client->intent.is_leaving = act->b % 2 == 0;
}

static void say_noise(struct client *client, struct act *act)
{
    char noise[256];
    size_t n = 1 + act->b % sizeof noise;
    uint64_t state = act->a;
    for (size_t i = 0; i < n; i++)
        noise[i] = "*$\r\n0123456789-:SETGETMULTI \0\xff"[dice_below(&state, 30)];
    say_raw(client, noise, n);
    client->is_lost = true;
    client->n_expected = 0;
}

const struct op rude_ops[] = {
    {"hang_up", 2, OP_QUEUES | OP_SUBSCRIBED, 0, hang_up, NULL},
    {"shut", 1, OP_QUEUES | OP_SUBSCRIBED, 0, shut, NULL},
    {"wait_and_shut", 3, 0, 0, wait_and_shut, NULL},
    {"nap", 1, OP_QUEUES | OP_SUBSCRIBED, 0, nap, NULL},
    {"garbage", 1, OP_QUEUES | OP_SUBSCRIBED, 0, say_garbage, NULL},
    {"noise", 1, OP_QUEUES | OP_SUBSCRIBED, 0, say_noise, NULL},
    {0},
};
