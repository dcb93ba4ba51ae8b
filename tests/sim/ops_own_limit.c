/*
 * LIMIT on the client's own keys, at a rate so slow that nothing is regained: what passes, what is
 * refused and what remains are exact.
 */
#include "tests/sim/ops.h"
#include "tests/sim/regime.h"
#include "tests/sim/run.h"

#define MOST 5 /* units in a hundred days */
#define COSTS 3

static const char *const words[OWN_LIMITS] = {"FUNNEL", "SLIDING"};

static unsigned which(const struct act *act)
{
    return act->a % OWN_LIMITS;
}

static uint32_t *used_of(struct client *client, const struct act *act)
{
    return &client->session.used[limit_owner(client)][which(act)];
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

/* After a loss of Redis' data or a fault the charge is unknown. */
static const char *judge_own_limit(struct client *client, const struct act *act,
                                   const struct reply *reply)
{
    struct reply limited, remaining;
    uint32_t *used = used_of(client, act), cost = cost_of(act);
    if (!limit_field(reply, 0, 5, &limited) || limited.type != ':' ||
        !limit_field(reply, 2, 5, &remaining))
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

static const char *judge_own_reset(struct client *client, const struct act *act,
                                   const struct reply *reply)
{
    uint32_t *used = used_of(client, act);
    bool was_there = *used > 0;
    *used = 0;
    if (!run_is_whole() || client->session.losses != run.losses)
        return reply->type == ':' ? NULL : "it is no number";
    return reply_is_integer(reply, was_there) ? NULL : "not the one key";
}

/* ---- many new keys at once, in one batch ---- */

#define MANY 40
#define AGAIN 3 /* every third key is used twice */

/* The key's number, and how often it was used before. */
static void say_one_of_many(struct client *client, struct act *act, uint32_t number, uint32_t asked)
{
    act->b = number;
    act->c = asked;
    say_begin(client, 4);
    say_word(client, SLICE("LIMIT"));
    say_text(client, "%s", words[which(act)]);
    say_text(client, "own:%u.%u:%u", client->number, client->life, number);
    say_text(client, "%u/100d", MOST);
    expect(client, act);
}

static void say_own_many(struct client *client, struct act *act)
{
    unsigned n = 1 + act->b % MANY;
    uint32_t first = client->numbers + 1;
    client->numbers += n;
    for (uint32_t i = 0; i < n; i++) {
        say_one_of_many(client, act, first + i, 0);
        if (i % AGAIN == AGAIN - 1)
            say_one_of_many(client, act, first + i, 1);
    }
}

/* A second call counts as the first if another limit has refused the first. */
static const char *judge_own_many(struct client *client, const struct act *act,
                                  const struct reply *reply)
{
    struct reply limited, limit, remaining;
    if (!limit_field(reply, 0, 5, &limited) || !limit_field(reply, 1, 5, &limit) ||
        !limit_field(reply, 2, 5, &remaining))
        return "it is no decision";
    if (!run_is_whole() || client->session.losses != run.losses)
        return NULL;
    if (!reply_is_integer(&limited, 0) || !reply_is_integer(&limit, MOST))
        return "a new key that is refused, or has another limit";
    bool is_first = reply_is_integer(&remaining, MOST - 1),
         is_second = reply_is_integer(&remaining, MOST - 2);
    return is_first || (act->c == 1 && is_second) ? NULL : "not what remains of a new key";
}

/* ---- several keys: the second is the first of the next call ---- */

static void say_two_keys(struct client *client, struct act *act, uint32_t number, uint32_t used)
{
    act->c = used;
    say_begin(client, 9);
    say_word(client, SLICE("LIMIT"));
    say_word(client, SLICE("ALL"));
    for (uint32_t i = 0; i < 2; i++) {
        if (i > 0)
            say_word(client, SLICE("AND"));
        say_text(client, "%s", words[which(act)]);
        say_text(client, "own:%u.%u:%u", client->number, client->life, number + i);
        say_text(client, "%u/100d", MOST);
    }
    expect(client, act);
}

/* The third call has the keys of the first call, and must not overtake the second. */
static void say_own_chain(struct client *client, struct act *act)
{
    uint32_t first = client->numbers + 1;
    client->numbers += 3;
    say_two_keys(client, act, first, 1);
    say_two_keys(client, act, first + 1, 2);
    say_two_keys(client, act, first, 3);
}

/* Another limit may have refused the earlier calls. */
static const char *judge_own_chain(struct client *client, const struct act *act,
                                   const struct reply *reply)
{
    struct reply limited, remaining, refused_by;
    if (!limit_field(reply, 0, 6, &limited) || !limit_field(reply, 2, 6, &remaining) ||
        !limit_field(reply, 5, 6, &refused_by))
        return "it is no decision";
    if (!run_is_whole() || client->session.losses != run.losses)
        return NULL;
    if (!reply_is_integer(&limited, 0) || !refused_by.is_nil)
        return "new keys that are refused";
    bool is_exact = !run.plan.has_limits && !run.plan.may_refuse && !run.plan.may_change_password;
    int64_t least = MOST - (int64_t)act->c, most = is_exact ? least : MOST - 1;
    return remaining.type == ':' && remaining.number >= least && remaining.number <= most
               ? NULL
               : "not what remains of them";
}

/* ---- a limit that weir counts while Redis is away ---- */

#define CLIENTS 32
#define AT_ONCE 16

/*
 * The limit mail has 4 in 200 ms. Redis admits exactly that. weir admits twice as many where two
 * windows meet.
 */
static const struct window_law both = {UINT64_C(200) * 1000000, 4 + 4, 4 + 2 * 4, false, 0};

static struct mails {
    unsigned life;
    uint64_t age;
    struct window passed[USERS];
} mails[CLIENTS];

static void say_own_mails(struct client *client, struct act *act)
{
    for (unsigned i = 0; i < AT_ONCE; i++) {
        say_begin(client, 4);
        say_word(client, SLICE("LIMIT"));
        say_word(client, SLICE("CHECK"));
        say_word(client, SLICE("mail"));
        say_text(client, "own:%u.%u:mail", client->number, client->life);
        expect(client, act);
    }
}

/* The law holds whether Redis or weir decides, and while Redis comes and goes. */
static const char *judge_own_mails(struct client *client, const struct act *act,
                                   const struct reply *reply)
{
    struct reply limited;
    struct mails *of = &mails[client->number % CLIENTS];
    uint64_t age = run.losses + run.clock_steps;
    if (!regime_may_say("[limit mail]"))
        return reply_begins(reply, '-', SLICE("ERR no limit is named 'mail'"))
                   ? NULL
                   : "a limit that there is not";
    if (!limit_field(reply, 0, 5, &limited) || limited.type != ':')
        return "it is no decision";
    if (of->life != client->life || of->age != age)
        *of = (struct mails){.life = client->life, .age = age};
    if (limited.number == 1 || act->read_ns <= run.changed_ns)
        return NULL;
    struct window *passed = &of->passed[limit_owner(client)];
    return window_admits(passed, &both, act->read_ns, world.now_ns)
               ? NULL
               : "more than Redis and weir may let pass";
}

const struct op own_limit_ops[] = {
    {"own_mails", 3, OP_BLOCKS, LIMIT_ANY, say_own_mails, judge_own_mails},
    {"own_limit", 40, OP_BLOCKS, LIMIT_ANY, say_own_limit, judge_own_limit},
    {"own_many", 3, OP_BLOCKS, LIMIT_ANY, say_own_many, judge_own_many},
    {"own_chain", 6, OP_BLOCKS, LIMIT_ANY, say_own_chain, judge_own_chain},
    {"own_reset", 4, OP_BLOCKS, LIMIT_ANY, say_own_reset, judge_own_reset},
    {0},
};
