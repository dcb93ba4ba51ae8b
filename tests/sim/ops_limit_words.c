/* LIMIT with wrong words: the error names what is wrong. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/ops.h"
#include "tests/sim/regime.h"
#include "tests/sim/run.h"

#define WORDS_MAX 72
#define LETTERS_MAX 2000

/* The request, with blanks between words, and the start of the error. @N stands for N letters. */
static const struct wrong {
    const char *words, *error;
} wrong[] = {
    {"LIMIT FUNL k 1/s", "ERR unknown subcommand 'FUNL'"},
    {"LIMIT FUNNEL k", "ERR wrong number of arguments for 'limit|funnel' command"},
    {"LIMIT FUNNEL k 5", "ERR \"5\" is not a rate: write COUNT/PERIOD"},
    {"LIMIT FUNNEL k 1/s PEKE", "ERR syntax error, unknown option 'PEKE' (did you mean PEEK?)"},
    {"LIMIT FUNNEL k 0./s", "ERR \"0.\" is not a count"},
    {"LIMIT FUNNEL k 1/1s 1/2s 1/3s 1/4s 1/5s 1/6s 1/7s 1/8s 1/9s",
     "ERR too many rates: at most 8"},
    {"LIMIT FUNNEL k 1/d BURST 105",
     "ERR a burst of 105 at this rate takes more than 104 days to drain"},
    {"LIMIT FUNNEL k 1/s BURST 0", "ERR value is not an integer or out of range"},
    {"LIMIT FUNNEL k 1/s COST -1", "ERR value is not an integer or out of range"},
    {"LIMIT FUNNEL k 1/s WAIT -1", "ERR timeout is negative"},
    {"LIMIT FUNNEL k 1/s WAIT x", "ERR timeout is not an integer or out of range"},
    {"LIMIT FUNNEL k 1/s WAIT 86400001", "ERR timeout is out of range: at most a day"},
    {"LIMIT FUNNEL k 1/s PEEK FORCE",
     "ERR at most one of WAIT, PEEK, FORCE, PARTIAL, BORROW and CREDIT"},
    {"LIMIT FUNNEL k 1/s FORCE COUNT ALL", "ERR COUNT ALL goes with none of"},
    {"LIMIT FUNNEL k 1/s CREDIT 1 COST 2", "ERR CREDIT has its own number: leave COST out"},
    {"LIMIT FUNNEL k 1/s APPROX", "ERR syntax error, APPROX is not an option of 'limit|funnel'"},
    {"LIMIT FUNNEL k 1/s AS LIST", "ERR syntax error, AS takes ARRAY or MAP, not 'LIST'"},
    {"LIMIT FUNNEL k 5/day", "ERR day, week and month are for FIXED, not funnel"},
    {"LIMIT FUNNEL k 1/d FORCE COST 200",
     "ERR this COST at this rate takes more than 104 days to drain"},
    {"LIMIT SLIDING k 1/s BORROW", "ERR BORROW is for FUNNEL and BUCKET"},
    {"LIMIT SLIDING k 1/s FROM FIRST", "ERR FROM FIRST is for FIXED"},
    {"LIMIT SLIDING k 10001/s", "ERR an exact sliding window counts at most 10000 units"},
    {"LIMIT SLIDING k 1/s COST 10001", "ERR COST of an exact sliding window is at most 10000"},
    {"LIMIT SLIDING k 1/s CREDIT 1001", "ERR CREDIT of an exact sliding window is at most 1000"},
    {"LIMIT SLIDING k 1/s PENALTY 0s", "ERR a penalty of 0 has no effect"},
    {"LIMIT SLIDING k 1/s PENALTY 1h..1m", "ERR the longest penalty is shorter than the first"},
    {"LIMIT SLIDING k 1/s PENALTY 1m FORCE", "ERR PENALTY goes with neither FORCE nor CREDIT"},
    {"LIMIT FIXED k 5/1month", "ERR \"5/1month\": a period of the calendar has no number"},
    {"LIMIT FIXED k 5/month FROM FIRST", "ERR FROM FIRST excludes day, week and month"},
    {"LIMIT BUCKET k 1/s WARMUP 5s", "ERR WARMUP is for BUCKET with BORROW"},
    {"LIMIT BUCKET k 1/s 2/m BORROW WARMUP 5s", "ERR WARMUP takes one rate"},
    {"LIMIT ALL FUNL k 1/s", "ERR 'FUNL' is neither FUNNEL nor BUCKET nor SLIDING nor FIXED"},
    {"LIMIT ALL FUNNEL k 1/s AND FUNNEL k 2/s", "ERR a key is given twice"},
    {"LIMIT ALL FUNNEL k 1/s AND FUNNEL l 2/s PARTIAL", "ERR PARTIAL is for one key"},
    {"LIMIT ALL FUNNEL k 1/s AND", "ERR "},
    {"LIMIT CHECK singup ann", "ERR no limit is named 'singup'"},
    {"LIMIT ACQUIRE k 0 100", "ERR value is not an integer or out of range"},
    {"LIMIT ACQUIRE k 1 0", "ERR invalid expire time in 'limit|acquire' command"},
    {"LIMIT BAN FUNL k 1h", "ERR unknown algorithm 'FUNL'"},
    {"LIMIT BAN THROTTLE k 1h", "ERR THROTTLE has no penalties: use another algorithm"},
    {"LIMIT BAN FUNNEL k 5", "ERR \"5\" is not a time"},
    {"CL.THROTTLE k 1 2", "ERR wrong number of arguments for 'cl.throttle' command"},
    {"CL.THROTTLE k 1 0 1", "ERR zero rates are not supported"},
    {"CL.THROTTLE k 1 x 1", "ERR value is not an integer or out of range"},
    {"LIMIT FUNNEL @1025 1/s", "ERR the key is too long: at most 1024 bytes"},
    {"LIMIT FUNNEL k COST 2", "ERR syntax error, a rate is missing"},
    {"LIMIT FUNNEL k BURST 3", "ERR syntax error, BURST comes after its rate"},
    {"LIMIT FUNNEL k 1/s BURST 3 BURST 4", "ERR syntax error, BURST is given twice"},
    {"LIMIT FUNNEL k 1/s BURST", "ERR syntax error, BURST is the last word: its value is missing"},
    {"LIMIT FUNNEL k 1/s BURST x", "ERR value is not an integer or out of range"},
    {"LIMIT FUNNEL k 1/s COST x", "ERR value is not an integer or out of range"},
    {"LIMIT FUNNEL k 1/s COST 9007199254740992", "ERR value is not an integer or out of range"},
    {"LIMIT FUNNEL k 1/s zzzzzzzzzzzz", "ERR syntax error, unknown option 'zzzzzzzzzzzz'"},
    {"LIMIT FUNNEL k 1/s COUNT SOME", "ERR syntax error, COUNT takes ALL, not 'SOME'"},
    {"LIMIT FIXED k 1/s FROM LAST", "ERR syntax error, FROM takes FIRST, not 'LAST'"},
    {"LIMIT FIXED k 1/s BURST 2", "ERR syntax error, BURST is not an option of 'limit|fixed'"},
    {"LIMIT FIXED k 9007199254740992/s", "ERR the count is too large"},
    {"LIMIT BUCKET k 1/s BORROW WARMUP x", "ERR \"x\" is not a time"},
    {"LIMIT BUCKET k 1/s BORROW WARMUP 0s", "ERR WARMUP is longer than 0 and at most an hour"},
    {"LIMIT BUCKET k 1/s BORROW WARMUP 61m", "ERR WARMUP is longer than 0 and at most an hour"},
    {"LIMIT BUCKET k 1/s BORROW WARMUP 5s PENALTY 1s", "ERR PENALTY does not go with WARMUP"},
    {"LIMIT SLIDING k 1/s PENALTY x", "ERR \"x\" is not a time"},
    {"LIMIT SLIDING k 1/s PENALTY 1s..x", "ERR \"x\" is not a time"},
    {"LIMIT SLIDING k 1/s PENALTY 1s.2s", "ERR \"1s.2s\" is not a time"},
    {"LIMIT ALL FUNNEL k", "ERR wrong number of arguments for 'limit|all' command"},
    {"LIMIT ALL FUNNEL @1025 1/s", "ERR the key is too long: at most 1024 bytes"},
    {"LIMIT ALL FUNNEL k COST 2", "ERR syntax error, a rate is missing"},
    {"LIMIT ALL FUNNEL k 1/s COST 2 AND FUNNEL l 1/s COST 3 WAIT 1 WAIT 2",
     "ERR syntax error, WAIT is given twice"},
    {"LIMIT ALL FUNNEL k 1/s WAIT 1 AND FUNNEL l 1/s WAIT 2",
     "ERR syntax error, WAIT is given twice"},
    {"LIMIT ALL FUNNEL k 1/s APPROX", "ERR syntax error, APPROX is not an option of 'funnel'"},
    {"LIMIT ALL APPROX k 1/s", "ERR 'APPROX' is neither FUNNEL nor BUCKET nor SLIDING nor FIXED"},
    {"LIMIT ALL BUCKET k 1/s BORROW WARMUP 5s", "ERR WARMUP is for one key"},
    {"LIMIT ALL FUNNEL k 1/s AND FUNNEL l 1/s FROM FIRST", "ERR FROM FIRST is for FIXED"},
    {"LIMIT ALL FIXED k 1/s AND SLIDING l 1/s BORROW", "ERR BORROW is for FUNNEL and BUCKET"},
    {"LIMIT ALL FUNNEL a 1/s 2/s 3/s 4/s 5/s 6/s 7/s 8/s AND FUNNEL b 1/s 2/s 3/s 4/s 5/s 6/s 7/s 8/s AND FUNNEL c 1/s",
     "ERR too many rates: at most 16 in one call"},
    {"LIMIT ALL FUNNEL a 1/s AND FUNNEL b 1/s AND FUNNEL c 1/s AND FUNNEL d 1/s AND FUNNEL e 1/s AND FUNNEL f 1/s AND "
     "FUNNEL g 1/s AND FUNNEL h 1/s AND FUNNEL i 1/s",
     "ERR too many keys: at most 8"},
    {"LIMIT ALL SLIDING k 5/s AND SLIDING l 5/s CREDIT 1000", "ERR the call is too large"},
    {"LIMIT CHECK x k AND y", "ERR wrong number of arguments for 'limit|check' command"},
    {"LIMIT CHECK x @1025", "ERR the key is too long: at most 1024 bytes"},
    {"LIMIT CHECK x k BURST 2", "ERR syntax error, BURST is not an option of 'limit|check'"},
    {"LIMIT CHECK x k AND y l PARTIAL", "ERR PARTIAL is for one key"},
    {"LIMIT CHECK singup ann AND singup bob", "ERR no limit is named 'singup'"},
    {"LIMIT CHECK @100 ann", "ERR no limit is named 'xxx"},
    {"LIMIT ACQUIRE @1025 1 100", "ERR the key is too long: at most 1024 bytes"},
    {"LIMIT ACQUIRE k 1 x", "ERR value is not an integer or out of range"},
    {"LIMIT ACQUIRE k 1 9007199254740992", "ERR invalid expire time in 'limit|acquire' command"},
    {"LIMIT ACQUIRE k 10001 100", "ERR value is not an integer or out of range"},
    {"LIMIT ACQUIRE k 1 100 PEEK", "ERR syntax error, PEEK is not an option of 'limit|acquire'"},
    {"LIMIT RENEW k t", "ERR wrong number of arguments for 'limit|renew' command"},
    {"LIMIT RENEW k t 1 2", "ERR wrong number of arguments for 'limit|renew' command"},
    {"LIMIT RENEW k t 0", "ERR invalid expire time in 'limit|renew' command"},
    {"LIMIT RELEASE k t u", "ERR wrong number of arguments for 'limit|release' command"},
    {"LIMIT BAN FUNNEL k", "ERR wrong number of arguments for 'limit|ban' command"},
    {"LIMIT BAN FUNNEL @1025 1s", "ERR the key is too long: at most 1024 bytes"},
    {"LIMIT BAN CHECK singup k 1s", "ERR no limit is named 'singup'"},
    {"LIMIT UNBAN FUNNEL k 1s", "ERR wrong number of arguments for 'limit|unban' command"},
    {"LIMIT RESET @1025", "ERR the key is too long: at most 1024 bytes"},
    {"LIMIT RESET k @1025", "ERR the key is too long: at most 1024 bytes"},
    {"LIMIT RESET 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 "
     "37 38 "
     "39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64 65",
     "ERR too many keys: at most 64"},
    {"CL.THROTTLE k 1 2 3 4 5", "ERR wrong number of arguments for 'cl.throttle' command"},
    {"CL.THROTTLE k 1 1 0", "ERR zero rates are not supported"},
    {"CL.THROTTLE k 1 2000000000 1", "ERR zero rates are not supported"},
    {"CL.THROTTLE k -2 1 1", "ERR value is not an integer or out of range"},
    {"CL.THROTTLE k 1 -1 1", "ERR value is not an integer or out of range"},
    {"CL.THROTTLE k 1 1 -1", "ERR value is not an integer or out of range"},
    {"CL.THROTTLE k + 1 1", "ERR value is not an integer or out of range"},
    {"CL.THROTTLE k -9223372036854775809 1 1", "ERR value is not an integer or out of range"},
    {"CL.THROTTLE k 92233720368547758070 1 1", "ERR value is not an integer or out of range"},
    {"CL.THROTTLE k +1 1 9223372036854775807",
     "ERR value is out of range: at this rate draining takes more than 104 "
     "days"},
    {"CL.THROTTLE k 9223372036854775806 1 1",
     "ERR value is out of range: at this rate draining takes more than 104 "
     "days"},
    {"CL.THROTTLE k 1 1 1 9223372036854775807",
     "ERR value is out of range: at this rate draining takes more than 104 "
     "days"},
    {"CL.THROTTLE @1025 1 1 1", "ERR the key is too long: at most 1024 bytes"},
    /* only in runs without operators */
    {"LIMIT SET default all 1/s", "NOPERM this command is for operators"},
    {"LIMIT RELOAD", "NOPERM this command is for operators"},
    {"LIMIT LIST", "NOPERM this command is for operators"},
};
#define N_WRONG (sizeof wrong / sizeof wrong[0])

#define N_ORDERS 3 /* the last rows of `wrong` */

static const struct wrong *row_of(const struct act *act)
{
    return &wrong[act->a % (run.plan.operators == OPERATORS_NONE ? N_WRONG : N_WRONG - N_ORDERS)];
}

static struct slice word_of(const char *at, size_t len)
{
    static char letters[LETTERS_MAX];
    size_t n = at[0] == '@' ? strtoul(at + 1, NULL, 10) : 0;
    memset(letters, 'x', n);
    return n > 0 ? slice_of(letters, n) : slice_of(at, len);
}

static void say_wrong(struct client *client, struct act *act)
{
    struct slice words[WORDS_MAX];
    unsigned n = 0;
    for (const char *at = row_of(act)->words; n < WORDS_MAX; at++) {
        size_t len = strcspn(at, " ");
        words[n++] = word_of(at, len);
        at += len;
        if (*at == '\0')
            break;
    }
    say_begin(client, n);
    for (unsigned i = 0; i < n; i++)
        say_word(client, words[i]);
    expect(client, act);
}

static const char *judge_wrong(struct client *client, const struct act *act,
                               const struct reply *reply)
{
    const char *error = row_of(act)->error;
    client->session.is_voided |= client->session.in_multi;
    if (client->session.in_multi &&
        reply_begins(reply, '-', SLICE("ERR LIMIT is not allowed in transactions")))
        return NULL;
    bool is_off = strncmp(row_of(act)->words, "CL.", 3) == 0 && regime_may_say("cl-throttle = off");
    if (is_off && reply_begins(reply, '-', SLICE("ERR unknown command")))
        return NULL;
    return reply_begins(reply, '-', slice_str(error)) ? NULL
                                                      : "not the error that says what is wrong";
}

const struct op limit_word_ops[] = {
    {"limit_wrong", 8, OP_MULTI, 0, say_wrong, judge_wrong},
    {0},
};
