/*
 * LIMIT on keys of its own, at a rate so slow that nothing comes back: what passes is exact, and so are what is refused
 * and how much remains.
 */
#include "tests/sim/ops.h"
#include "tests/sim/run.h"

#define MOST 5 /* in a hundred days */
#define COSTS 3

static const char *const words[OWN_LIMITS] = {"FUNNEL", "SLIDING"};

static unsigned which(const struct act *act)
{
    return act->a % OWN_LIMITS;
}

static uint32_t *used_of(struct client *client, const struct act *act)
{
    return &client->session.used[which(act)];
}

static void say_own_key(struct client *client, const struct act *act)
{
    say_text(client, "own:%u.%u:%s", client->number, client->life, words[which(act)]);
}

static uint32_t cost_of(const struct act *act)
{
    return 1 + act->b % COSTS;
}

static void say_own_limit(struct client *client, struct act *act)
{
    bool has_burst = which(act) == 0;
    say_begin(client, has_burst ? 8 : 6);
    say_word(client, SLICE("LIMIT"));
    say_text(client, "%s", words[which(act)]);
    say_own_key(client, act);
    say_text(client, "%u/100d", MOST);
    if (has_burst) {
        say_word(client, SLICE("BURST"));
        say_text(client, "%u", MOST);
    }
    say_word(client, SLICE("COST"));
    say_text(client, "%u", cost_of(act));
    expect(client, act);
}

/* Where something was lost nobody knows what has been charged. */
static const char *judge_own_limit(struct client *client, const struct act *act, const struct reply *reply)
{
    struct reply limited, remaining;
    uint32_t *used = used_of(client, act), cost = cost_of(act);
    if (!limit_field(reply, 0, 5, &limited) || limited.type != ':' || !limit_field(reply, 2, 5, &remaining))
        return "it is no decision";
    if (!run_is_whole() || client->session.losses != run.losses)
        return NULL;
    if (limited.number == 0)
        *used += cost;
    if (*used > MOST)
        return "more than its own limit lets pass";
    if (limited.number != 0 && *used + cost <= MOST)
        return "refused, and there is room";
    return reply_is_integer(&remaining, MOST - *used) ? NULL : "not what remains";
}

static void say_own_reset(struct client *client, struct act *act)
{
    if (!run.plan.gives_back)
        return;
    say_begin(client, 3);
    say_word(client, SLICE("LIMIT"));
    say_word(client, SLICE("RESET"));
    say_own_key(client, act);
    expect(client, act);
}

static const char *judge_own_reset(struct client *client, const struct act *act, const struct reply *reply)
{
    uint32_t *used = used_of(client, act);
    bool was_there = *used > 0;
    *used = 0;
    if (!run_is_whole() || client->session.losses != run.losses)
        return reply->type == ':' ? NULL : "it is no number";
    return reply_is_integer(reply, was_there) ? NULL : "not the one key";
}

const struct op own_limit_ops[] = {
    {"own_limit", 40, OP_BLOCKS, LIMIT_ANY, say_own_limit, judge_own_limit},
    {"own_reset", 4, OP_BLOCKS, LIMIT_ANY, say_own_reset, judge_own_reset},
    {0},
};
