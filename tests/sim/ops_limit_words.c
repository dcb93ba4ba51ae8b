/*
 * LIMIT in words that mean nothing: the error says which.
 */
#include <string.h>

#include "tests/sim/ops.h"
#include "tests/sim/regime.h"
#include "tests/sim/run.h"

#define WORDS_MAX 24

/* What is said, its words apart by blanks; how the error begins. */
static const struct wrong {
    const char *words, *error;
} wrong[] = {
    {"LIMIT FUNL k 1/s", "ERR unknown subcommand 'FUNL'. Try LIMIT HELP."},
    {"LIMIT FUNNEL k", "ERR wrong number of arguments for 'limit|funnel' command"},
    {"LIMIT FUNNEL k 5", "ERR \"5\" is not a rate: write COUNT/PERIOD"},
    {"LIMIT FUNNEL k 1/s PEKE", "ERR syntax error, unknown option 'PEKE' (did you mean PEEK?)"},
    {"LIMIT FUNNEL k 0./s", "ERR \"0.\" is not a count"},
    {"LIMIT FUNNEL k 1/1s 1/2s 1/3s 1/4s 1/5s 1/6s 1/7s 1/8s 1/9s", "ERR too many rates: at most 8"},
    {"LIMIT FUNNEL k 1/d BURST 105", "ERR a burst of 105 at this rate takes more than 104 days to drain"},
    {"LIMIT FUNNEL k 1/s BURST 0", "ERR value is not an integer or out of range"},
    {"LIMIT FUNNEL k 1/s COST -1", "ERR value is not an integer or out of range"},
    {"LIMIT FUNNEL k 1/s WAIT -1", "ERR timeout is negative"},
    {"LIMIT FUNNEL k 1/s WAIT x", "ERR timeout is not an integer or out of range"},
    {"LIMIT FUNNEL k 1/s WAIT 86400001", "ERR timeout is out of range: at most a day"},
    {"LIMIT FUNNEL k 1/s PEEK FORCE", "ERR at most one of WAIT, PEEK, FORCE, PARTIAL, BORROW and CREDIT"},
    {"LIMIT FUNNEL k 1/s FORCE COUNT ALL", "ERR COUNT ALL goes with none of"},
    {"LIMIT FUNNEL k 1/s CREDIT 1 COST 2", "ERR CREDIT has a number of its own: give no COST"},
    {"LIMIT FUNNEL k 1/s APPROX", "ERR syntax error, APPROX is no option of 'limit|funnel'"},
    {"LIMIT FUNNEL k 1/s AS LIST", "ERR syntax error, AS takes ARRAY or MAP, not 'LIST'"},
    {"LIMIT FUNNEL k 5/day", "ERR day, week and month are for FIXED, not funnel"},
    {"LIMIT FUNNEL k 1/d FORCE COST 200", "ERR this COST at this rate takes more than 104 days to drain"},
    {"LIMIT SLIDING k 1/s BORROW", "ERR BORROW is for FUNNEL and BUCKET"},
    {"LIMIT SLIDING k 1/s FROM FIRST", "ERR FROM FIRST is for FIXED"},
    {"LIMIT SLIDING k 10001/s", "ERR an exact sliding window counts at most 10000 units"},
    {"LIMIT SLIDING k 1/s COST 10001", "ERR COST of an exact sliding window is at most 10000"},
    {"LIMIT SLIDING k 1/s CREDIT 1001", "ERR CREDIT of an exact sliding window is at most 1000 at once"},
    {"LIMIT SLIDING k 1/s PENALTY 0s", "ERR a penalty of 0 is none"},
    {"LIMIT SLIDING k 1/s PENALTY 1h..1m", "ERR the longest penalty is shorter than the first"},
    {"LIMIT SLIDING k 1/s PENALTY 1m FORCE", "ERR PENALTY goes with neither FORCE nor CREDIT"},
    {"LIMIT FIXED k 5/1month", "ERR \"5/1month\": a period of the calendar has no number"},
    {"LIMIT FIXED k 5/month FROM FIRST", "ERR FROM FIRST has no calendar"},
    {"LIMIT BUCKET k 1/s WARMUP 5s", "ERR WARMUP is for BUCKET with BORROW"},
    {"LIMIT BUCKET k 1/s 2/m BORROW WARMUP 5s", "ERR WARMUP takes one rate"},
    {"LIMIT ALL FUNL k 1/s", "ERR 'FUNL' is neither FUNNEL nor BUCKET nor SLIDING nor FIXED"},
    {"LIMIT ALL FUNNEL k 1/s AND FUNNEL k 2/s", "ERR a key stands twice in one call"},
    {"LIMIT ALL FUNNEL k 1/s AND FUNNEL l 2/s PARTIAL", "ERR PARTIAL is for one key"},
    {"LIMIT ALL FUNNEL k 1/s AND", "ERR "},
    {"LIMIT CHECK singup ann", "ERR no limit is named 'singup'"},
    {"LIMIT ACQUIRE k 0 100", "ERR value is not an integer or out of range"},
    {"LIMIT ACQUIRE k 1 0", "ERR invalid expire time in 'limit|acquire' command"},
    {"LIMIT BAN FUNL k 1h", "ERR unknown algorithm 'FUNL'"},
    {"LIMIT BAN THROTTLE k 1h", "ERR keys of THROTTLE are redis-cell's and have no penalty"},
    {"LIMIT BAN FUNNEL k 5", "ERR \"5\" is not a time"},
    {"CL.THROTTLE k 1 2", "ERR wrong number of arguments for 'cl.throttle' command"},
    {"CL.THROTTLE k 1 0 1", "ERR zero rates are not supported"},
    {"CL.THROTTLE k 1 x 1", "ERR value is not an integer or out of range"},
    /* only where nobody is an operator */
    {"LIMIT SET default all 1/s", "NOPERM this command is for operators"},
    {"LIMIT RELOAD", "NOPERM this command is for operators"},
    {"LIMIT LIST", "NOPERM this command is for operators"},
};
#define N_WRONG (sizeof wrong / sizeof wrong[0])

#define N_ORDERS 3 /* at the end */

static const struct wrong *row_of(const struct act *act)
{
    return &wrong[act->a % (run.plan.operators == OPERATORS_NONE ? N_WRONG : N_WRONG - N_ORDERS)];
}

static void say_wrong(struct client *client, struct act *act)
{
    struct slice words[WORDS_MAX];
    unsigned n = 0;
    for (const char *at = row_of(act)->words; n < WORDS_MAX; at++) {
        size_t len = strcspn(at, " ");
        words[n++] = slice_of(at, len);
        at += len;
        if (*at == '\0')
            break;
    }
    say_begin(client, n);
    for (unsigned i = 0; i < n; i++)
        say_word(client, words[i]);
    expect(client, act);
}

static const char *judge_wrong(struct client *client, const struct act *act, const struct reply *reply)
{
    const char *error = row_of(act)->error;
    client->session.is_voided |= client->session.in_multi;
    if (client->session.in_multi && reply_begins(reply, '-', SLICE("ERR LIMIT is not allowed in transactions")))
        return NULL;
    bool is_off = strncmp(row_of(act)->words, "CL.", 3) == 0 && regime_may_say("cl-throttle = off");
    if (is_off && reply_begins(reply, '-', SLICE("ERR unknown command")))
        return NULL;
    return reply_begins(reply, '-', slice_str(error)) ? NULL : "not the error that says what is wrong";
}

const struct op limit_word_ops[] = {
    {"limit_wrong", 6, OP_MULTI, 0, say_wrong, judge_wrong},
    {0},
};
