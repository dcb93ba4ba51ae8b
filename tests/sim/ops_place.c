/*
 * Permits of LIMIT ACQUIRE that must be free. A client that waits for a permit gets it soon. A
 * client that disconnected before its grant has none.
 *
 * A round has two clients. The first client takes the only permit, and the second client waits for
 * the permit. When the second client is known to wait, the first releases the permit.
 */
#include "tests/sim/ops_place.h"

#include <stdio.h>
#include <string.h>

#include "tests/sim/admin.h"
#include "tests/sim/ops.h"
#include "tests/sim/regime.h"
#include "tests/sim/run.h"
#include "tests/sim/server.h"

#define CLIENTS_MAX 32
#define MS UINT64_C(1000000)
#define HOLD_MS 100000 /* longer than any client waits */
#define WAIT_MS 20000  /* longer than LATE_NS */
/* longest time for which a permit stays free while a client waits and no fault lasts */
#define LATE_NS (5 * 1000 * MS)
#define GONE_MS 3600000 /* longer than any run */
#define GONE_MAX 64
#define RECOVERY_NS (10 * 1000 * MS) /* time after a fault by which everything works again */
#define FDS_ENOUGH 1024

/* ---- rounds ---- */

enum round_stage { ROUND_OVER, ROUND_TAKING, ROUND_HELD, ROUND_LEAVING };

/* Indexed by the number of the client with the permit. */
static struct round {
    enum round_stage stage;
    unsigned life;
    uint32_t number;     /* counts the client's rounds */
    uint64_t losses;     /* run.losses when the round began */
    uint64_t until_ns;   /* the permit is held at least until then */
    bool has_waiter;     /* a client waits for the permit, and has no reply yet */
    unsigned waiter;     /* number of that client */
    uint64_t waiting_ns; /* when Redis was first asked for the waiter; 0: not yet */
    uint64_t free_ns;    /* latest time at which the permit became free; 0: held */
    bool is_upset;       /* a fault has struck in this round */
    char token[TOKEN_ROOM];
} rounds[CLIENTS_MAX];

static uint64_t upset_ns; /* a fault lasts until then */

enum part { PART_NONE, PART_TAKE, PART_WAIT, PART_LEAVE };

static struct round *round_of(const struct client *client)
{
    struct round *round = &rounds[client->number % CLIENTS_MAX];
    if (round->life != client->life)
        *round = (struct round){.life = client->life, .number = round->number + 1};
    return round;
}

/* True if weir's questions to Redis are answered, apart from faults. */
static bool is_served(void)
{
    return !memory_was_short() && run.plan.redis.maxclients == 0 &&
           run.plan.odds.fds >= FDS_ENOUGH && !regime_may_say("upstream-timeout = ") &&
           admin_lets_in() && !admin_is_changing(world.now_ns);
}

bool place_is_due(const struct client *client)
{
    const struct round *round = &rounds[client->number % CLIENTS_MAX];
    return round->life == client->life && round->stage == ROUND_HELD && round->waiting_ns != 0;
}

static void say_round(struct client *client, unsigned words, const char *word, unsigned whose)
{
    const struct round *round = &rounds[whose];
    say_begin(client, words);
    say_word(client, SLICE("LIMIT"));
    say_text(client, "%s", word);
    say_text(client, "round:%u.%u", whose, round->number);
}

static void say_take(struct client *client, unsigned whose, bool waits)
{
    say_round(client, waits ? 7 : 5, "ACQUIRE", whose);
    say_word(client, SLICE("1"));
    say_text(client, "%u", HOLD_MS);
    if (waits) {
        say_word(client, SLICE("WAIT"));
        say_text(client, "%u", WAIT_MS);
    }
}

/* A client with a permit that no other client waits for; UINT32_MAX: none. */
static unsigned client_to_wait_for(const struct client *client, uint32_t pick)
{
    for (unsigned i = 0; i < CLIENTS_MAX; i++) {
        unsigned whose = (pick + i) % CLIENTS_MAX;
        if (whose != client->number && rounds[whose].stage == ROUND_HELD &&
            !rounds[whose].has_waiter)
            return whose;
    }
    return UINT32_MAX;
}

static enum part part_of(const struct round *round, unsigned whose)
{
    if (round->stage == ROUND_HELD && round->waiting_ns != 0)
        return PART_LEAVE;
    if (round->stage == ROUND_OVER && !round->has_waiter)
        return PART_TAKE;
    return whose != UINT32_MAX ? PART_WAIT : PART_NONE;
}

static void say_part(struct client *client, struct act *act)
{
    struct round *round = round_of(client);
    unsigned whose = client_to_wait_for(client, act->a);
    act->a = client->number;
    act->b = part_of(round, whose);
    if (act->b == PART_TAKE) {
        *round = (struct round){ROUND_TAKING, client->life, round->number + 1, run.losses,
                                .is_upset = world.now_ns < upset_ns};
        say_take(client, client->number, false);
    } else if (act->b == PART_WAIT) {
        act->a = whose;
        rounds[whose].has_waiter = true;
        rounds[whose].waiter = client->number;
        say_take(client, whose, true);
    } else if (act->b == PART_LEAVE) {
        round->stage = ROUND_LEAVING;
        say_round(client, 4, "RELEASE", client->number);
        say_text(client, "%s", round->token);
    } else {
        return;
    }
    act->c = rounds[act->a].number;
    expect(client, act);
}

/* True if only the holder itself can have ended the round. */
static bool is_sure(const struct round *round)
{
    return is_served() && !round->is_upset && round->losses == run.losses &&
           world.now_ns < round->until_ns;
}

static const char *judge_take(struct round *round, uint64_t read_ns, bool is_limited,
                              struct slice token)
{
    round->stage = ROUND_OVER;
    if (is_limited)
        return is_served() && !round->is_upset ? "a place that nobody has had is taken" : NULL;
    if (token.len == 0 || token.len >= TOKEN_ROOM)
        return "no token";
    round->stage = ROUND_HELD;
    round->until_ns = read_ns + HOLD_MS * MS - 2 * MS; /* Redis counts ms */
    memcpy(round->token, token.at, token.len);
    round->token[token.len] = '\0';
    return NULL;
}

/*
 * The latest time at which weir can have sent the reply. A client may leave replies unread for
 * long.
 */
static uint64_t told_ns(const struct client *client)
{
    return client->conn != NULL ? client->conn->to_host.last_ns : world.now_ns;
}

static const char *judge_waiter(const struct client *client, struct round *round, bool is_limited)
{
    bool is_held = round->stage == ROUND_HELD && is_sure(round);
    uint64_t free_ns = round->free_ns;
    round->has_waiter = false;
    round->waiting_ns = round->free_ns = 0;
    if (!is_limited && is_held)
        return "a place that somebody has";
    return free_ns != 0 && is_served() && !round->is_upset && !run.plan.has_slow &&
                   told_ns(client) > free_ns + LATE_NS
               ? "a place stands free, and who waits is not told"
               : NULL;
}

static const char *judge_leave(struct round *round, const struct reply *reply)
{
    round->stage = ROUND_OVER;
    if (reply->type != ':')
        return "it is no number";
    if (is_sure(round) && reply->number != 1)
        return "it had the place";
    if (round->has_waiter && reply->number == 1)
        round->free_ns = world.now_ns;
    return NULL;
}

static const char *judge_part(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    struct round *round = &rounds[act->a % CLIENTS_MAX];
    struct reply limited, token;
    bool is_known = round->number == act->c;
    if (act->b == PART_LEAVE)
        return is_known ? judge_leave(round, reply) : NULL;
    if (!limit_field(reply, 0, 5, &limited) || !limit_field(reply, 1, 5, &token) ||
        limited.type != ':')
        return "it is no decision";
    if (!is_known)
        return NULL;
    return act->b == PART_TAKE ? judge_take(round, act->read_ns, limited.number != 0, token.text)
                               : judge_waiter(client, round, limited.number != 0);
}

/* ---- clients that disconnect ---- */

/* A client that has asked for a permit and disconnected at once. */
static struct gone {
    struct bell left;  /* rung when weir has closed the connection, too */
    struct bell *then; /* the bell that was set before; NULL: none */
    unsigned number, life;
    uint64_t left_ns;        /* when weir closed the connection; 0: not yet */
    bool is_heard;           /* Redis was asked for this permit, */
    struct answer_at answer; /* with the answer at this position, */
    bool was_told;           /* and weir had the answer before it noticed the disconnect */
    uint64_t losses;
    bool is_upset;
} all_gone[GONE_MAX];
static unsigned n_gone, n_inherited;

static void on_left(struct bell *bell)
{
    struct gone *gone = container_of(bell, struct gone, left);
    gone->left_ns = world.now_ns;
    gone->was_told = gone->is_heard && server_is_read(&gone->answer);
    if (gone->then != NULL)
        gone->then->ring(gone->then);
}

/*
 * Waits for all other replies first, so that Redis is asked at the time when weir notices the
 * disconnect.
 */
static void say_and_go(struct client *client, struct act *act)
{
    if (n_gone == GONE_MAX)
        return;
    all_gone[n_gone++] = (struct gone){.left.ring = on_left,
                                       .number = client->number,
                                       .life = client->life,
                                       .losses = run.losses,
                                       .is_upset = world.now_ns < upset_ns};
    say_begin(client, 5);
    say_word(client, SLICE("LIMIT"));
    say_word(client, SLICE("ACQUIRE"));
    say_text(client, "gone:%u.%u", client->number, client->life);
    say_word(client, SLICE("1"));
    say_text(client, "%u", GONE_MS);
    expect(client, act);
    client->intent.is_off = true;
}

static const char *judge_and_go(struct client *client, const struct act *act,
                                const struct reply *reply)
{
    struct reply limited;
    (void)client;
    (void)act;
    return limit_field(reply, 0, 5, &limited) && reply_is_integer(&limited, 0)
               ? NULL
               : "nobody else asks for its place";
}

void place_gone(struct client *client)
{
    for (unsigned i = 0; i < CLIENTS_MAX; i++)
        if (rounds[i].has_waiter && rounds[i].waiter == client->number) {
            rounds[i].has_waiter = false;
            /* Redis was asked for this waiter or for the next waiter */
            rounds[i].is_upset = true;
        }
    for (unsigned i = 0; i < n_gone; i++) {
        struct gone *gone = &all_gone[i];
        if (gone->number != client->number || gone->life != client->life || client->n_expected == 0)
            continue;
        gone->then = client->conn->left;
        client->conn->left = &gone->left;
    }
}

/* True if weir had noticed the disconnect before the grant, and must have released the permit. */
static bool must_be_free(const struct gone *gone)
{
    /* with slow scripts Redis may answer the release with -BUSY */
    bool is_sure = is_served() && !run.plan.has_slow;
    return gone->left_ns != 0 && gone->is_heard && !gone->was_told && gone->losses == run.losses &&
           !gone->is_upset && is_sure;
}

bool place_inherit(struct client *client)
{
    while (n_inherited < n_gone && !must_be_free(&all_gone[n_inherited]))
        n_inherited++;
    if (n_inherited == n_gone)
        return false;
    const struct gone *gone = &all_gone[n_inherited++];
    struct act act = {.op = op_named(SLICE("place_heir"))};
    say_begin(client, 5);
    say_word(client, SLICE("LIMIT"));
    say_word(client, SLICE("ACQUIRE"));
    say_text(client, "gone:%u.%u", gone->number, gone->life);
    say_word(client, SLICE("1"));
    say_word(client, SLICE("1000"));
    expect(client, &act);
    return true;
}

static const char *judge_heir(struct client *client, const struct act *act,
                              const struct reply *reply)
{
    struct reply limited;
    (void)client;
    (void)act;
    if (!limit_field(reply, 0, 5, &limited) || limited.type != ':')
        return "it is no decision";
    return limited.number == 0 || !is_served() ? NULL
                                               : "somebody who had gone before has the place";
}

/* ---- events ---- */

void place_upset(uint64_t ns)
{
    uint64_t over_ns = world.now_ns + ns + RECOVERY_NS;
    upset_ns = over_ns > upset_ns ? over_ns : upset_ns;
    for (unsigned i = 0; i < CLIENTS_MAX; i++)
        rounds[i].is_upset = true;
    for (unsigned i = 0; i < n_gone; i++)
        all_gone[i].is_upset |=
            all_gone[i].left_ns == 0 || world.now_ns < all_gone[i].left_ns + RECOVERY_NS;
}

void place_served(void)
{
    for (unsigned i = 0; i < CLIENTS_MAX; i++)
        if (rounds[i].free_ns != 0)
            rounds[i].free_ns = world.now_ns;
}

static bool read_name(struct slice key, const char *mark, unsigned *a, unsigned *b)
{
    char text[64];
    const char *at = memmem(key.at, key.len, mark, strlen(mark));
    if (at == NULL)
        return false;
    struct slice rest = slice_of(at + strlen(mark), key.len - (size_t)(at - key.at) - strlen(mark));
    snprintf(text, sizeof text, "%.*s", (int)rest.len, rest.at);
    return sscanf(text, "%u.%u", a, b) == 2;
}

static void hear_gone(struct gone *gone, unsigned number, unsigned life)
{
    if (gone->number != number || gone->life != life || gone->is_heard)
        return;
    gone->is_heard = true;
    gone->answer = server_answering();
}

void place_heard(struct slice key)
{
    unsigned number, which;
    if (read_name(key, ":round:", &number, &which) && number < CLIENTS_MAX) {
        struct round *round = &rounds[number];
        if (round->number == which && round->stage == ROUND_HELD && round->has_waiter &&
            round->waiting_ns == 0)
            round->waiting_ns = world.now_ns;
    } else if (read_name(key, ":gone:", &number, &which)) {
        for (unsigned i = 0; i < n_gone; i++)
            hear_gone(&all_gone[i], number, which);
    }
}

const struct op place_ops[] = {
    {"place_round", 10, OP_BLOCKS | OP_COMMON, LIMIT_ANY, say_part, judge_part},
    {"place_and_go", 4, OP_BLOCKS | OP_COMMON, LIMIT_ANY, say_and_go, judge_and_go},
    {"place_heir", 0, OP_BLOCKS | OP_COMMON, LIMIT_ANY, NULL, judge_heir},
    {0},
};
