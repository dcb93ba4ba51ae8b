/*
 * LIMIT CHECK with a limit that operators move to other algorithms. A key keeps its count, or
 * starts anew. Only PEEK may get an error for a key of another algorithm.
 */
#include <string.h>

#include "tests/sim/ops.h"
#include "tests/sim/run.h"

/* Counts of the limit named `spare`. plan.c and ops_operator.c must have these counts too. */
static const int64_t counts[] = {5, 7, 8};
#define N_COUNTS (sizeof counts / sizeof counts[0])
static const char *const lines[] = {"sliding 5/1d", "fixed 7/1d", "approx 8/1d", "funnel 5/1d",
                                    "bucket 7/1d"};
#define N_LINES (sizeof lines / sizeof lines[0])
#define FIELDS 5

static void say_check(struct client *client, const char *limit, const char *more)
{
    if (more != NULL)
        say_word(client, slice_str(more));
    else {
        say_word(client, SLICE("LIMIT"));
        say_word(client, SLICE("CHECK"));
    }
    say_text(client, "%s", limit);
    say_text(client, "own:%u.%u:spare", client->number, client->life);
}

static bool is_look(const struct act *act)
{
    return act->a % 4 == 0;
}

static void say_renewed(struct client *client, struct act *act)
{
    say_begin(client, is_look(act) ? 5 : 4);
    say_check(client, "spare", NULL);
    if (is_look(act))
        say_word(client, SLICE("PEEK"));
    expect(client, act);
}

static bool is_count(int64_t number)
{
    for (size_t i = 0; i < N_COUNTS; i++)
        if (counts[i] == number)
            return true;
    return false;
}

static const char *judge_numbers(const struct act *act, const int64_t numbers[FIELDS],
                                 uint32_t *used)
{
    uint32_t charge = is_look(act) ? 0 : 1, now = (uint32_t)(numbers[1] - numbers[2]);
    if (!is_count(numbers[1]) || numbers[2] < 0 || numbers[2] > numbers[1])
        return "not one of the limit's rates";
    if (numbers[0] == 1)
        return numbers[2] == 0 ? NULL : "refused, and there is room";
    if (now < charge)
        return "it passed, and is not charged";
    bool is_known = *used > 0 && numbers[2] > 0; /* in shadow mode more passes than the count */
    bool is_wrong = is_known && now != *used - 1 + charge && now != charge;
    /* PEEK keeps the state of the former algorithm, and does not see it */
    if (!is_look(act) || now > 0)
        *used = numbers[2] > 0 ? now + 1 : 0;
    return is_wrong ? "neither what was counted nor a new key" : NULL;
}

static const char *judge_renewed(struct client *client, const struct act *act,
                                 const struct reply *reply)
{
    struct reply field;
    int64_t numbers[FIELDS];
    uint32_t *used = &client->session.spare_used[limit_owner(client)];
    if (run.plan.operators == OPERATORS_NONE)
        return reply_begins(reply, '-', SLICE("ERR no limit is named 'spare'"))
                   ? NULL
                   : "a limit that there is not";
    for (size_t i = 0; i < FIELDS; i++) {
        if (!limit_field(reply, i, FIELDS, &field) || field.type != ':')
            return "it is no decision";
        numbers[i] = field.number;
    }
    if (run.is_faultless && client->session.losses == run.losses)
        return judge_numbers(act, numbers, used);
    *used = 0;
    return NULL;
}

/* Asks the limit together with a limit that keeps its algorithm. */
static void say_renewed_two(struct client *client, struct act *act)
{
    bool is_first = act->a % 2 == 0;
    say_begin(client, 7 + (act->b % 4 == 0));
    say_check(client, is_first ? "spare" : "gate0", NULL);
    say_check(client, is_first ? "gate0" : "spare", "AND");
    if (act->b % 4 == 0)
        say_word(client, SLICE("PEEK"));
    expect(client, act);
}

/* One call does not show what each of several keys holds. */
static const char *judge_renewed_two(struct client *client, const struct act *act,
                                     const struct reply *reply)
{
    struct reply limited, limit;
    client->session.spare_used[limit_owner(client)] = 0;
    if (run.plan.operators == OPERATORS_NONE)
        return reply_begins(reply, '-', SLICE("ERR no limit is named '"))
                   ? NULL
                   : "a limit that there is not";
    if (act->b % 4 == 0 && reply_begins(reply, '-', SLICE("WRONGTYPE ")))
        return NULL;
    if (!limit_field(reply, 0, FIELDS + 1, &limited) || !limit_field(reply, 1, FIELDS + 1, &limit))
        return "it is no decision";
    return limited.type == ':' && limit.type == ':' && limit.number > 0 ? NULL
                                                                        : "it is no decision";
}

/* ---- another algorithm ---- */

static void say_another(struct client *client, struct act *act)
{
    const char *line = lines[act->a % N_LINES], *rate = strchr(line, ' ');
    say_begin(client, 6);
    say_word(client, SLICE("LIMIT"));
    say_word(client, SLICE("SET"));
    say_word(client, SLICE("LIMIT"));
    say_word(client, SLICE("spare"));
    say_word(client, slice_of(line, (size_t)(rate - line)));
    say_word(client, slice_str(rate + 1));
    expect(client, act);
}

static const char *judge_another(struct client *client, const struct act *act,
                                 const struct reply *reply)
{
    bool is_operator = run.plan.operators == OPERATORS_ALL ||
                       (run.plan.operators == OPERATORS_USER && client->session.user == OPERATOR);
    (void)act;
    if (!is_operator)
        return reply_begins(reply, '-', SLICE("NOPERM ")) ? NULL : "not for it";
    return reply_is_ok(reply) ? NULL : "it is not OK";
}

const struct op renewed_ops[] = {
    {"another", 2, OP_BLOCKS, 0, say_another, judge_another},
    {"renewed", 6, OP_BLOCKS, LIMIT_ANY, say_renewed, judge_renewed},
    {"renewed_two", 2, OP_BLOCKS, LIMIT_ANY, say_renewed_two, judge_renewed_two},
    {0},
};
