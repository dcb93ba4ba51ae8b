/*
 * LIMIT on shared keys: what passes keeps each algorithm's law on Redis' clock, for all clients and
 * workers together.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/ops.h"
#include "tests/sim/regime.h"
#include "tests/sim/run.h"

#define MS UINT64_C(1000000)
#define HOLDERS_MAX 64
#define CLOCK_NS 2000 /* Redis counts microseconds */

/* One rate for each key, used by all clients. */
static const struct rate {
    uint32_t count, period_ms, burst;
} rates[LIMIT_KEYS] = {{3, 50, 2}, {20, 1000, 25}, {100, 10000, 60}};

enum family { FUNNEL, SLIDING, FIXED, FAMILIES };

static const char *const words[FAMILIES] = {"FUNNEL", "SLIDING", "FIXED"};

struct holder {
    char token[TOKEN_ROOM];
    uint64_t since_ns, until_ns; /* the permit was held for all the time in between */
};

static struct seen {
    uint64_t age; /* of Redis' data and clock: a new value resets all */
    struct seen_keys {
        struct window windows[FAMILIES][LIMIT_KEYS];
        struct holder holders[LIMIT_KEYS][HOLDERS_MAX];
        unsigned n_holders[LIMIT_KEYS];
    } of[USERS];
} seen;

unsigned limit_owner(const struct client *client)
{
    return run.plan.has_user_keys ? client->session.user : 0;
}

static struct seen_keys *keys_of(const struct client *client)
{
    return &seen.of[limit_owner(client)];
}

/*
 * Resets all laws after Redis has lost its data or its clock has jumped. False: the call may have
 * been decided before that.
 */
static bool is_of_this_age(const struct act *act)
{
    uint64_t age = run.losses + run.clock_steps;
    if (seen.age != age)
        memset(&seen, 0, sizeof seen);
    seen.age = age;
    return act->read_ns > run.changed_ns;
}

/* ---- rates ---- */

static enum family family_of(const struct act *act)
{
    return (enum family)(act->b % FAMILIES);
}

enum option { NO_OPTION, COST, WAIT, PEEK };

static enum option option_of(const struct act *act)
{
    static const enum option options[8] = {NO_OPTION, COST, WAIT, PEEK, WAIT, WAIT};
    return options[act->c % 8];
}

static void say_limit(struct client *client, struct act *act)
{
    const struct rate *rate = &rates[act->a % LIMIT_KEYS];
    enum family family = family_of(act);
    enum option option = option_of(act);
    bool has_burst = family == FUNNEL;
    say_begin(client, 4U + (has_burst ? 2U : 0U) +
                          (option == PEEK        ? 1U
                           : option != NO_OPTION ? 2U
                                                 : 0U));
    say_word(client, SLICE("LIMIT"));
    say_word(client, slice_str(words[family]));
    say_text(client, "%s:%u", words[family], act->a % LIMIT_KEYS);
    say_text(client, "%u/%ums", rate->count, rate->period_ms);
    if (has_burst) {
        say_word(client, SLICE("BURST"));
        say_text(client, "%u", rate->burst);
    }
    if (option == COST || option == WAIT) {
        say_word(client, option == COST ? SLICE("COST") : SLICE("WAIT"));
        say_text(client, "%u", option == COST ? 2U : act->c / 8 % 200);
    } else if (option == PEEK) {
        say_word(client, SLICE("PEEK"));
    }
    expect(client, act);
}

bool limit_field(const struct reply *reply, size_t i, size_t n, struct reply *out)
{
    bool is_map = reply->type == '%';
    if ((!is_map && reply->type != '*') || reply->number != (int64_t)(is_map ? 2 * n : n))
        return false;
    return reply_at(reply, is_map ? 2 * i + 1 : i, out);
}

static struct window_law law_of(const struct act *act)
{
    const struct rate *rate = &rates[act->a % LIMIT_KEYS];
    uint64_t period_ns = rate->period_ms * MS;
    if (family_of(act) == FUNNEL)
        return (struct window_law){period_ns, rate->count, rate->burst, true, 0};
    return (struct window_law){period_ns, rate->count,
                               family_of(act) == FIXED ? 2 * rate->count : rate->count, false, 0};
}

/*
 * With limit-when-down = allow weir answers yes while Redis is away. Then reset is 0, which a
 * charged call never has.
 */
static bool is_made_up(int64_t remaining, int64_t reset_ms)
{
    return remaining == 0 && reset_ms == 0 && regime_may_say("limit-when-down = allow");
}

static const char *judge_limit(struct client *client, const struct act *act,
                               const struct reply *reply)
{
    struct reply field[5];
    for (size_t i = 0; i < 5; i++)
        if (!limit_field(reply, i, 5, &field[i]) || field[i].type != ':')
            return "it is no decision";
    const struct window_law law = law_of(act);
    struct window *window = &keys_of(client)->windows[family_of(act)][act->a % LIMIT_KEYS];
    int64_t limited = field[0].number, most = family_of(act) == FUNNEL ? law.burst : law.count;
    if (limited != 0 && limited != 1)
        return "neither yes nor no";
    if (field[1].number != most || field[2].number < 0 || field[2].number > most ||
        field[4].number < 0)
        return "numbers that cannot be";
    if (!is_of_this_age(act) || limited != 0 || option_of(act) == PEEK ||
        is_made_up(field[2].number, field[4].number))
        return NULL;
    for (unsigned i = 0; i < (option_of(act) == COST ? 2U : 1U); i++)
        if (!window_admits(window, &law, act->read_ns - CLOCK_NS, world.now_ns))
            return "more than the rate lets pass";
    return NULL;
}

/* ---- permits ---- */

static uint32_t places(const struct act *act)
{
    return 1 + act->a % LIMIT_KEYS;
}

static uint64_t ttl_ms(const struct act *act)
{
    return 50 + act->b % 4000;
}

static void say_acquire(struct client *client, struct act *act)
{
    bool waits = act->c % 2 == 0;
    say_begin(client, waits ? 7 : 5);
    say_word(client, SLICE("LIMIT"));
    say_word(client, SLICE("ACQUIRE"));
    say_text(client, "places:%u", act->a % LIMIT_KEYS);
    say_text(client, "%u", places(act));
    say_text(client, "%u", (unsigned)ttl_ms(act));
    if (waits) {
        say_word(client, SLICE("WAIT"));
        say_text(client, "%u", act->c / 2 % 500);
    }
    expect(client, act);
}

/* Counts the holders that had a permit for all the time between these moments. */
static uint32_t count_holders(const struct seen_keys *keys, uint32_t key, uint64_t from_ns,
                              uint64_t to_ns)
{
    uint32_t n = 0;
    for (unsigned i = 0; i < keys->n_holders[key]; i++) {
        const struct holder *holder = &keys->holders[key][i];
        n += holder->since_ns <= from_ns && holder->until_ns > to_ns;
    }
    return n;
}

static void add_holder(struct seen_keys *keys, uint32_t key, struct slice token, uint64_t until_ns)
{
    unsigned *n = &keys->n_holders[key];
    for (unsigned i = *n; i-- > 0;)
        if (keys->holders[key][i].until_ns <= world.now_ns)
            keys->holders[key][i] = keys->holders[key][--*n];
    if (*n == HOLDERS_MAX || token.len >= TOKEN_ROOM)
        return;
    struct holder *holder = &keys->holders[key][(*n)++];
    *holder = (struct holder){.since_ns = world.now_ns, .until_ns = until_ns};
    memcpy(holder->token, token.at, token.len);
}

static const char *judge_acquire(struct client *client, const struct act *act,
                                 const struct reply *reply)
{
    struct reply limited, token;
    uint32_t key = act->a % LIMIT_KEYS;
    if (!limit_field(reply, 0, 5, &limited) || !limit_field(reply, 1, 5, &token) ||
        limited.type != ':')
        return "it is no decision";
    if (limited.number != 0)
        return token.is_nil ? NULL : "a place for somebody who is refused";
    if (token.is_nil || token.text.len == 0 || token.text.len >= TOKEN_ROOM)
        return "no token";
    bool is_known = is_of_this_age(act);
    if (is_known && count_holders(keys_of(client), key, act->read_ns, world.now_ns) >= places(act))
        return "more holders than places";
    if (is_known)
        add_holder(keys_of(client), key, token.text, act->read_ns + ttl_ms(act) * MS - CLOCK_NS);
    memcpy(client->session.tokens[key], token.text.at, token.text.len);
    client->session.tokens[key][token.text.len] = '\0';
    return NULL;
}

static void forget_holder(uint32_t key, const char *token)
{
    for (struct seen_keys *keys = seen.of; keys < seen.of + USERS; keys++)
        for (unsigned i = 0; i < keys->n_holders[key]; i++)
            if (strcmp(keys->holders[key][i].token, token) == 0)
                keys->holders[key][i].until_ns = 0;
}

static void say_release(struct client *client, struct act *act)
{
    uint32_t key = act->a % LIMIT_KEYS;
    char *token = client->session.tokens[key];
    say_begin(client, 4);
    say_word(client, SLICE("LIMIT"));
    say_word(client, SLICE("RELEASE"));
    say_text(client, "places:%u", key);
    say_text(client, "%s", token[0] != '\0' ? token : "none");
    expect(client, act);
    forget_holder(key, token);
    token[0] = '\0';
}

static const char *judge_release(struct client *client, const struct act *act,
                                 const struct reply *reply)
{
    (void)client;
    (void)act;
    return reply->type == ':' && (reply->number == 0 || reply->number == 1) ? NULL
                                                                            : "neither yes nor no";
}

/* ---- LIMIT STATUS ---- */

static void say_status(struct client *client, struct act *act)
{
    say_begin(client, 2);
    say_word(client, SLICE("LIMIT"));
    say_word(client, SLICE("STATUS"));
    expect(client, act);
}

/*
 * Finds the value with this name, in a map or in the array of a map in RESP2. False: there is no
 * such value.
 */
static bool find_field(const struct reply *map, struct slice name, struct reply *out)
{
    struct slice inside = map->inside;
    struct reply one;
    while (reply_next(&inside, &one) && reply_next(&inside, out))
        if (slice_eq(one.text, name))
            return true;
    return false;
}

/* True if no call of an inflight limit is under way, and for every other limit. */
static bool is_given_back(const struct reply *limit)
{
    struct reply what, rate, left;
    if (!find_field(limit, SLICE("what"), &what) || !slice_eq(what.text, SLICE("inflight")) ||
        !find_field(limit, SLICE("rate"), &rate) || !find_field(limit, SLICE("remaining"), &left))
        return true;
    return left.number == strtol(rate.text.at, NULL, 10);
}

static const char *judge_status(struct client *client, const struct act *act,
                                const struct reply *reply)
{
    struct reply limits, limit;
    (void)act;
    if (reply->type != (client->session.is_resp3 ? '%' : '*') ||
        !find_field(reply, SLICE("limits"), &limits))
        return "it is no status";
    struct slice inside = limits.inside;
    while (run.is_calm && reply_next(&inside, &limit))
        if (!is_given_back(&limit))
            return "calls count that are not under way";
    return NULL;
}

const struct op limit_ops[] = {
    {"limit", 30, OP_BLOCKS, LIMIT_ANY, say_limit, judge_limit},
    {"acquire", 6, OP_BLOCKS, LIMIT_ANY, say_acquire, judge_acquire},
    {"release", 5, 0, LIMIT_ANY, say_release, judge_release},
    {"status", 2, OP_CONTROL, 0, say_status, judge_status},
    {0},
};
