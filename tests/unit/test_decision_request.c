/*
 * Tests of the words of LIMIT commands: the parsed request, the errors, and the words sent to a
 * script.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "decision_kit.h"
#include "dice.h"
#include "limit/command/own.h"
#include "quota/question.h"

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])
#define MS INT64_C(1000000)
#define S INT64_C(1000000000)

static const char integer_error[] = "ERR value is not an integer or out of range";
static const char zero_error[] = "ERR zero rates are not supported";
static const char syntax_error[] = "ERR syntax error, "; /* followed by the error in detail */
static const char modes_error[] =
    "ERR at most one of WAIT, PEEK, FORCE, PARTIAL, BORROW and CREDIT";

static void assert_error(const char *line, const char *expected)
{
    struct decision_request ask;
    if (kit_parse(&ask, line))
        fail_msg("%s is taken", line);
    if (expected == syntax_error ? strncmp(kit_why, expected, strlen(expected)) != 0
                                 : strcmp(kit_why, expected) != 0)
        fail_msg("%s: \"%s\" is not \"%s\"", line, kit_why, expected);
}

static void assert_rate(const struct decision_request *ask, unsigned i, int64_t limit, int64_t step)
{
    assert_true(i < ask->rule.n_rates);
    assert_int_equal(ask->rule.rates[i].limit, limit);
    assert_int_equal(ask->rule.rates[i].step, step);
}

static void assert_slice(struct slice slice, const char *expected)
{
    if (!slice_eq(slice, slice_str(expected)))
        fail_msg("%.*s is not %s", (int)slice.len, slice.at, expected);
}

/* ---- accepted commands ---- */

static void funnels(void **state)
{
    (void)state;
    struct decision_request ask = kit_request("LIMIT FUNNEL k 10/s");
    assert_int_equal(ask.rule.kind, QUOTA_FUNNEL);
    assert_slice(ask.key, "k");
    assert_int_equal(ask.rule.n_rates, 1);
    assert_rate(&ask, 0, 10, S / 10);
    assert_int_equal(ask.cost, 1);
    assert_int_equal(ask.wait_ns, 0);
    assert_false(ask.is_peek);
    assert_false(ask.is_cell);

    ask = kit_request("limit bucket k 10/s burst 20 cost 3 3/s wait 250 BURST 2k");
    assert_int_equal(ask.rule.kind, QUOTA_BUCKET);
    assert_int_equal(ask.rule.n_rates, 2);
    assert_rate(&ask, 0, 20, S / 10);
    assert_rate(&ask, 1, 2000, 333333334); /* rounded up */
    assert_int_equal(ask.cost, 3);
    assert_int_equal(ask.wait_ns, 250 * MS);

    ask = kit_request("LIMIT FUNNEL peek Peek Cost 2 1/s 2/s 3/s 4/s 5/s 6/s 7/s 8/s");
    assert_slice(ask.key, "peek");
    assert_true(ask.is_peek);
    assert_int_equal(ask.rule.n_rates, 8);
    ask = kit_request("LIMIT FUNNEL '' 1/s WAIT 86400000");
    assert_slice(ask.key, "");
    assert_int_equal(ask.wait_ns, 86400 * S);
    ask = kit_request("LIMIT FUNNEL k 1/s COST 9007199254740991");
    assert_int_equal(ask.cost, QUOTA_MOST - 1);
}

static void windows(void **state)
{
    (void)state;
    struct decision_request ask = kit_request("LIMIT SLIDING k 5/60s 100/d");
    assert_int_equal(ask.rule.kind, QUOTA_SLIDING);
    assert_rate(&ask, 0, 5, 60000000);
    assert_rate(&ask, 1, 100, INT64_C(86400000000));
    ask = kit_request("LIMIT SLIDING k 10k/s COST 10000");
    assert_int_equal(ask.cost, QUOTA_LOG_MAX);
    ask = kit_request("LIMIT SLIDING k APPROX 2m/s PEEK COST 10001");
    assert_int_equal(ask.rule.kind, QUOTA_APPROX);
    assert_rate(&ask, 0, 2000000, 1000000);
    ask = kit_request("LIMIT FIXED k 3g/365d WAIT 0");
    assert_int_equal(ask.rule.kind, QUOTA_FIXED);
    assert_rate(&ask, 0, INT64_C(3000000000), INT64_C(31536000000000));
}

/* Modes other than a decision by room for the whole cost. */
static void modes(void **state)
{
    (void)state;
    struct decision_request ask = kit_request("LIMIT FUNNEL k force 1/s cost 5");
    assert_int_equal(ask.mode, QUOTA_FORCE);
    assert_int_equal(ask.cost, 5);
    assert_true(quota_is_sure(&ask));
    struct quota_gcra gcra = question_gcra(&ask, 0);
    assert_true(gcra.inc == 5 * S && gcra.room == S);
    ask = kit_request("LIMIT BUCKET k 2/s BURST 3 Borrow COST 50");
    gcra = question_gcra(&ask, 0);
    assert_true(gcra.inc == 25 * S && gcra.room == S + 25 * S && gcra.burst == 3 * S / 2);
    ask = kit_request("LIMIT SLIDING k 2/s CREDIT 7");
    assert_int_equal(quota_charge(&ask), -7);
    ask = kit_request("LIMIT FUNNEL k 1/d CREDIT 9007199254740991");
    assert_true(question_gcra(&ask, 0).inc == 1 - QUOTA_MOST);
    ask = kit_request("LIMIT SLIDING k 2/s COST 7 PARTIAL");
    assert_int_equal(quota_charge(&ask), 1);
    ask = kit_request("LIMIT FIXED k 2/s From First count ALL PEEK");
    assert_true(ask.is_first && ask.counts_all && ask.is_peek);
    ask = kit_request("LIMIT FIXED k 2/s CREDIT 0");
    assert_true(ask.is_peek && quota_is_sure(&ask));
    static const struct {
        const char *line, *error;
    } rows[] = {
        {"LIMIT FUNNEL k 1/s FORCE PARTIAL", modes_error},
        {"LIMIT FUNNEL k 1/s CREDIT 1 WAIT 1", modes_error},
        {"LIMIT CHECK n k BORROW PEEK", modes_error},
        {"LIMIT FUNNEL k 1/s FORCE FORCE", syntax_error},
        {"LIMIT FUNNEL k 1/s CREDIT", syntax_error},
        {"LIMIT FUNNEL k 1/s CREDIT -1", integer_error},
        {"LIMIT FUNNEL k 1/s COUNT", syntax_error},
        {"LIMIT FUNNEL k 1/s COUNT SOME", syntax_error},
        {"LIMIT FIXED k 1/s FROM LAST", syntax_error},
        {"LIMIT ACQUIRE k 1 1 FORCE", syntax_error},
        {"LIMIT FUNNEL k 1/s COUNT ALL WAIT 1",
         "ERR COUNT ALL goes with none of WAIT, FORCE, PARTIAL, BORROW and CREDIT"},
        {"LIMIT FUNNEL k 1/s COST 1 CREDIT 1", "ERR CREDIT has its own number: leave COST out"},
        {"LIMIT FIXED k 1/s BORROW", "ERR BORROW is for FUNNEL and BUCKET"},
        {"LIMIT SLIDING k 1/s FROM FIRST", "ERR FROM FIRST is for FIXED"},
        {"LIMIT SLIDING k 1/s CREDIT 1001",
         "ERR CREDIT of an exact sliding window is at most 1000"},
        {"LIMIT FUNNEL k 1/d FORCE COST 104",
         "ERR this COST at this rate takes more than 104 days to drain"},
        {"LIMIT BUCKET k 1/d BORROW COST 104",
         "ERR this COST at this rate takes more than 104 days to drain"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_error(rows[i].line, rows[i].error);
}

/* Penalties by a limit, and by hand. */
static void penalties(void **state)
{
    (void)state;
    static const struct {
        const char *words;
        int64_t first_ms, longest_ms;
    } taken[] = {
        {"PENALTY 1h", 3600000, 3600000},
        {"penalty ms", 1, 1},
        {"PENALTY 1m..1h", 60000, 3600000},
        {"PENALTY 1s..1s WAIT 5", 1000, 1000},
        {"COUNT ALL PENALTY s..d", 1000, 86400000},
        {"PENALTY 36500d PARTIAL COST 3", INT64_C(3153600000000), INT64_C(3153600000000)},
    };
    for (size_t i = 0; i < COUNT_OF(taken); i++) {
        char line[128];
        snprintf(line, sizeof line, "LIMIT FUNNEL k %s 5/s", taken[i].words);
        struct decision_request ask = kit_request(line);
        assert_int_equal(ask.penalty.first_ms, taken[i].first_ms);
        assert_int_equal(ask.penalty.longest_ms, taken[i].longest_ms);
    }
    assert_int_equal(kit_request("LIMIT CHECK n k PENALTY 2s").penalty.first_ms, 2000);
    struct decision_request ban = kit_request("LIMIT BAN approx k 1m");
    assert_int_equal(ban.rule.kind, QUOTA_BAN);
    assert_int_equal(ban.max, 'a');
    assert_int_equal(ban.ttl_ms, 60000);
    assert_true(ban.name.at == NULL);
    ban = kit_request("LIMIT UNBAN CHECK signup k");
    assert_int_equal(ban.rule.kind, QUOTA_UNBAN);
    assert_true(slice_eq(ban.name, SLICE("signup")) && slice_eq(ban.key, SLICE("k")));
    const struct quota_rule rule = {.kind = QUOTA_SLIDING, .n_rates = 1};
    assert_true(decision_request_resolve(&ban, NULL, &rule, kit_why, sizeof kit_why));
    assert_true(ban.rule.kind == QUOTA_UNBAN && ban.rule.n_rates == 0 && ban.max == 'z');

    static const char together[] =
        "ERR PENALTY goes with neither FORCE nor CREDIT, which are never limited";
    assert_error("LIMIT FUNNEL k 1/s PENALTY 1h FORCE", together);
    assert_error("LIMIT CHECK n k CREDIT 1 PENALTY 1h", together);
    assert_error("LIMIT FIXED k 1/s PENALTY", syntax_error);
    assert_error("LIMIT FIXED k 1/s PENALTY 1h PENALTY 1h", syntax_error);
    assert_error("LIMIT FIXED k 1/s PENALTY 0",
                 "ERR a penalty of 0 has no effect: give at least 1ms");
    assert_error("LIMIT FIXED k 1/s PENALTY 1h..1m",
                 "ERR the longest penalty is shorter than the first: write 1m..1h");
    assert_error("LIMIT FIXED k 1/s PENALTY 1m..",
                 "ERR \"\" is not a time: write ms, s, m, h or d, or a number of them (60s)");
    assert_error("LIMIT FIXED k 1/s PENALTY 5",
                 "ERR \"5\" is not a time: write ms, s, m, h or d, or a number of them (60s)");
    assert_error("LIMIT FIXED k 1/s PENALTY 36600d", "ERR \"36600d\" is longer than 100 years");
    assert_error("LIMIT ACQUIRE k 1 1 PENALTY 1h", syntax_error);
    assert_error("LIMIT THROTTLE k 1 1 1 1 PENALTY 1h",
                 "ERR wrong number of arguments for 'limit|throttle' command");
    assert_error("LIMIT BAN THROTTLE k 1h", "ERR THROTTLE has no penalties: use another algorithm");
    assert_error(
        "LIMIT BAN FUNNY k 1h",
        "ERR unknown algorithm 'FUNNY': write FUNNEL, BUCKET, SLIDING, APPROX, FIXED, or CHECK and a name");
    assert_error("LIMIT BAN FIXED k", "ERR wrong number of arguments for 'limit|ban' command");
    assert_error("LIMIT BAN FIXED k 1h 1h",
                 "ERR wrong number of arguments for 'limit|ban' command");
    assert_error("LIMIT UNBAN FIXED k 1h",
                 "ERR wrong number of arguments for 'limit|unban' command");
    assert_error("LIMIT UNBAN CHECK n", "ERR wrong number of arguments for 'limit|unban' command");
    assert_error("LIMIT BAN FIXED k 0", "ERR a penalty of 0 has no effect: give at least 1ms");
}

/* The form of the reply: once, in any case, anywhere among the options. */
static void shapes(void **state)
{
    (void)state;
    assert_int_equal(kit_request("LIMIT FUNNEL k 1/s").shape, QUOTA_AS_SPOKEN);
    assert_int_equal(kit_request("LIMIT FUNNEL k as Array 1/s").shape, QUOTA_AS_ARRAY);
    assert_int_equal(kit_request("LIMIT SLIDING k 1/s APPROX AS MAP WAIT 5").shape, QUOTA_AS_MAP);
    assert_int_equal(kit_request("LIMIT CHECK n k AS MAP").shape, QUOTA_AS_MAP);
    assert_int_equal(kit_request("LIMIT ACQUIRE k 1 1 AS ARRAY WAIT 1").shape, QUOTA_AS_ARRAY);
    assert_error("LIMIT FIXED k 1/s AS", syntax_error);
    assert_error("LIMIT FIXED k 1/s AS SET", syntax_error);
    assert_error("LIMIT FIXED k 1/s AS MAP AS MAP", syntax_error);
    assert_error("LIMIT RENEW k t 1 AS MAP",
                 "ERR wrong number of arguments for 'limit|renew' command");
}

/* The error names the wrong word. */
static void mistakes(void **state)
{
    (void)state;
    static const struct {
        const char *line, *error;
    } rows[] = {
        {"LIMIT FIXED k 1/s AS LIST", "ERR syntax error, AS takes ARRAY or MAP, not 'LIST'"},
        {"LIMIT FIXED k 1/s COUNT SOME", "ERR syntax error, COUNT takes ALL, not 'SOME'"},
        {"LIMIT FIXED k 1/s FROM last", "ERR syntax error, FROM takes FIRST, not 'last'"},
        {"LIMIT FIXED k 1/s cost", "ERR syntax error, COST is the last word: its value is missing"},
        {"LIMIT FIXED k 1/s PEEK cost 2 peek", "ERR syntax error, PEEK is given twice"},
        {"LIMIT FUNNEL k burst 2 1/s", "ERR syntax error, BURST comes after its rate"},
        {"LIMIT FUNNEL k 1/s PEKE", "ERR syntax error, unknown option 'PEKE' (did you mean PEEK?)"},
        {"LIMIT FUNNEL k 1/s NOW", "ERR syntax error, unknown option 'NOW'"},
        {"LIMIT FUNNEL k 1/s APROX", "ERR syntax error, unknown option 'APROX'"},
        {"LIMIT FUNNEL k 1/s APPROX",
         "ERR syntax error, APPROX is not an option of 'limit|funnel'"},
        {"LIMIT ACQUIRE k 1 1 cost 2",
         "ERR syntax error, COST is not an option of 'limit|acquire'"},
        {"LIMIT FUNNEL k PEEK",
         "ERR syntax error, a rate is missing: write COUNT/PERIOD, like 1000/s or 5/60s"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_error(rows[i].line, rows[i].error);
}

static void redis_cells(void **state)
{
    (void)state;
    struct decision_request ask = kit_request("CL.Throttle k 15 30 60");
    assert_int_equal(ask.rule.kind, QUOTA_THROTTLE);
    assert_true(ask.is_cell);
    assert_rate(&ask, 0, 16, 2 * S);
    assert_int_equal(ask.cost, 1);
    ask = kit_request("LIMIT THROTTLE k +2 007 +60 -3");
    assert_false(ask.is_cell);
    assert_rate(&ask, 0, 3, INT64_C(8571428571)); /* rounded down */
    assert_int_equal(ask.cost, -3);
    ask = kit_request("cl.throttle k -1 1 1 0");
    assert_rate(&ask, 0, 0, S);
    assert_int_equal(ask.cost, 0);
    assert_true(ask.is_peek);
    ask = kit_request("cl.throttle k 0 1000000000 1");
    assert_rate(&ask, 0, 1, 1);
    ask = kit_request(
        "cl.throttle k 0 9223372036854775807 9223372036854775807 -00000000000000000000000000001");
    assert_rate(&ask, 0, 1, S);
    assert_int_equal(ask.cost, -1);
}

static void the_rest(void **state)
{
    (void)state;
    struct decision_request ask = kit_request("LIMIT CHECK signup u1 cost 2 wait 5");
    assert_int_equal(ask.rule.kind, QUOTA_CHECK);
    assert_slice(ask.name, "signup");
    assert_slice(ask.key, "u1");
    assert_int_equal(ask.cost, 2);
    struct quota_rule rule = {0};
    assert_true(
        quota_limit_parse(SLICE("sliding"), SLICE("5/60s, 100/d"), &rule, kit_why, sizeof kit_why));
    assert_true(decision_request_resolve(&ask, NULL, &rule, kit_why, sizeof kit_why));
    assert_int_equal(ask.rule.kind, QUOTA_SLIDING);
    assert_rate(&ask, 1, 100, INT64_C(86400000000));
    assert_int_equal(ask.cost, 2);
    ask = kit_request("LIMIT CHECK signup u1 COST 10001");
    assert_false(decision_request_resolve(&ask, NULL, &rule, kit_why, sizeof kit_why));
    assert_string_equal(
        kit_why, "ERR COST of an exact sliding window is at most 10000: use APPROX for more");
    rule.kind = QUOTA_APPROX;
    assert_true(decision_request_resolve(&ask, NULL, &rule, kit_why, sizeof kit_why));

    ask = kit_request("LIMIT ACQUIRE k 3 5000 Wait 100");
    assert_int_equal(ask.rule.kind, QUOTA_ACQUIRE);
    assert_int_equal(ask.max, 3);
    assert_int_equal(ask.ttl_ms, 5000);
    assert_int_equal(ask.wait_ns, 100 * MS);
    ask = kit_request("LIMIT ACQUIRE k 10000 3155760000000");
    assert_int_equal(ask.max, QUOTA_HOLDERS_MAX);
    ask = kit_request("LIMIT RENEW k tok 7000");
    assert_slice(ask.token, "tok");
    assert_int_equal(ask.ttl_ms, 7000);
    ask = kit_request("LIMIT RELEASE k tok");
    assert_int_equal(ask.rule.kind, QUOTA_RELEASE);
    assert_slice(ask.token, "tok");

    ask = kit_request("LIMIT RESET a b c");
    assert_slice(ask.key, "a");
    struct slice key;
    const char *const expected[] = {"a", "b", "c"};
    for (unsigned i = 0; i < 3; i++) {
        assert_true(argv_next(&ask.keys, &key));
        assert_slice(key, expected[i]);
    }
    assert_false(argv_next(&ask.keys, &key));
}

/* ---- refused commands ---- */

static void errors(void **state)
{
    (void)state;
    static const char draining[] =
        "ERR a burst of 1000 at this rate takes more than 104 days to drain: give a smaller burst";
    static const struct {
        const char *line, *error;
    } rows[] = {
        {"LIMIT FUNNEL", "ERR wrong number of arguments for 'limit|funnel' command"},
        {"LIMIT FUNNEL k", "ERR wrong number of arguments for 'limit|funnel' command"},
        {"LIMIT FUNNEL k x", "ERR \"x\" is not a rate: write COUNT/PERIOD, like 1000/s or 5/60s"},
        {"LIMIT FUNNEL k 10", "ERR \"10\" is not a rate: write COUNT/PERIOD, like 1000/s or 5/60s"},
        {"LIMIT FUNNEL k 0/s", "ERR a rate of 0 never lets anything pass: give at least 1"},
        {"LIMIT FUNNEL k 1/0", "ERR \"1/0\": the period must be longer than 0"},
        {"LIMIT FUNNEL k -1/s",
         "ERR \"-1\" is not a count: write a whole number, or one with k, m or g (10k)"},
        {"LIMIT FUNNEL k 1kb/s",
         "ERR \"1kb\": kb, mb and gb count bytes; commands are counted in k, m and g"},
        {"LIMIT FUNNEL k 99999999999999999999/s",
         "ERR \"99999999999999999999\" is not a count: it is too large or starts with 0"},
        {"LIMIT FUNNEL k 1/w",
         "ERR \"w\" is not a time: write ms, s, m, h or d, or a number of them (60s)"},
        {"LIMIT FUNNEL k 1/d BURST 1000", draining},
        {"LIMIT FUNNEL k 1/d BURST 9223372036854775807",
         "ERR a burst of 9223372036854775807 at this rate takes more than 104 days to drain: give a smaller burst"},
        {"LIMIT FUNNEL k 1000/105d", draining},
        {"LIMIT FUNNEL k 9223372036854775807/s BURST 9007199254740991",
         "ERR a burst of 9007199254740991 at this rate takes more than 104 days to drain: give a smaller burst"},
        {"LIMIT FUNNEL k 1/s 1/s 1/s 1/s 1/s 1/s 1/s 1/s 1/s", "ERR too many rates: at most 8"},
        {"LIMIT FUNNEL k 1/s BURST 0", integer_error},
        {"LIMIT FUNNEL k 1/s BURST -1", integer_error},
        {"LIMIT FUNNEL k 1/s BURST x", integer_error},
        {"LIMIT FUNNEL k 1/s BURST", syntax_error},
        {"LIMIT FUNNEL k BURST 1 1/s", syntax_error},
        {"LIMIT FUNNEL k 1/s BURST 1 BURST 1", syntax_error},
        {"LIMIT FUNNEL k PEEK", syntax_error},
        {"LIMIT FUNNEL k 1/s COST", syntax_error},
        {"LIMIT FUNNEL k 1/s COST -1", integer_error},
        {"LIMIT FUNNEL k 1/s COST 1.5", integer_error},
        {"LIMIT FUNNEL k 1/s COST ''", integer_error},
        {"LIMIT FUNNEL k 1/s COST 9007199254740992", integer_error},
        {"LIMIT FUNNEL k 1/s COST 9223372036854775808", integer_error},
        {"LIMIT FUNNEL k 1/s COST 1 COST 1", syntax_error},
        {"LIMIT FUNNEL k 1/s WAIT -1", "ERR timeout is negative"},
        {"LIMIT FUNNEL k 1/s WAIT x", "ERR timeout is not an integer or out of range"},
        {"LIMIT FUNNEL k 1/s WAIT 86400001", "ERR timeout is out of range: at most a day"},
        {"LIMIT FUNNEL k 1/s WAIT 1 PEEK", modes_error},
        {"LIMIT FUNNEL k 1/s PEEK WAIT 0", modes_error},
        {"LIMIT FUNNEL k 1/s PEEK PEEK", syntax_error},
        {"LIMIT FUNNEL k 1/s APPROX", syntax_error},
        {"LIMIT FUNNEL k 1/s what", syntax_error},
        {"LIMIT FUNNEL k 1/s ''", syntax_error},
        {"LIMIT SLIDING k 1/s BURST 2", syntax_error},
        {"LIMIT SLIDING k 1/s APPROX APPROX", syntax_error},
        {"LIMIT SLIDING k 10001/s",
         "ERR an exact sliding window counts at most 10000 units: use APPROX for more"},
        {"LIMIT SLIDING k 5/s 10001/100d",
         "ERR an exact sliding window counts at most 10000 units: use APPROX for more"},
        {"LIMIT SLIDING k 5/s COST 10001",
         "ERR COST of an exact sliding window is at most 10000: use APPROX for more"},
        {"LIMIT FIXED k 1/s APPROX", syntax_error},
        {"LIMIT FIXED k 9007199254740992/s", "ERR the count is too large"},
        {"LIMIT FIXED k 1/36526d", "ERR \"36526d\" is longer than 100 years"},
        {"LIMIT CHECK n", "ERR wrong number of arguments for 'limit|check' command"},
        {"LIMIT CHECK n k 1/s", syntax_error},
        {"LIMIT CHECK n k BURST 1", syntax_error},
        {"LIMIT ACQUIRE k 1", "ERR wrong number of arguments for 'limit|acquire' command"},
        {"LIMIT ACQUIRE k 0 1", integer_error},
        {"LIMIT ACQUIRE k x 1", integer_error},
        {"LIMIT ACQUIRE k 10001 1", integer_error},
        {"LIMIT ACQUIRE k 9007199254740992 1", integer_error},
        {"LIMIT ACQUIRE k 1 0", "ERR invalid expire time in 'limit|acquire' command"},
        {"LIMIT ACQUIRE k 1 -1", "ERR invalid expire time in 'limit|acquire' command"},
        {"LIMIT ACQUIRE k 1 x", integer_error},
        {"LIMIT ACQUIRE k 1 3155760000001", "ERR invalid expire time in 'limit|acquire' command"},
        {"LIMIT ACQUIRE k 1 1 PEEK", syntax_error},
        {"LIMIT ACQUIRE k 1 1 WAIT", syntax_error},
        {"LIMIT RENEW k t", "ERR wrong number of arguments for 'limit|renew' command"},
        {"LIMIT RENEW k t 0", "ERR invalid expire time in 'limit|renew' command"},
        {"LIMIT RENEW k t 1 1", "ERR wrong number of arguments for 'limit|renew' command"},
        {"LIMIT RELEASE k", "ERR wrong number of arguments for 'limit|release' command"},
        {"LIMIT RELEASE k t x", "ERR wrong number of arguments for 'limit|release' command"},
        {"LIMIT RESET", "ERR wrong number of arguments for 'limit|reset' command"},
        {"LIMIT WHAT k", "ERR unknown command 'limit|WHAT'"},
        {"LIMIT THROTTLE k 1 2", "ERR wrong number of arguments for 'limit|throttle' command"},
        {"CL.THROTTLE", "ERR wrong number of arguments for 'cl.throttle' command"},
        {"CL.THROTTLE k 1 2", "ERR wrong number of arguments for 'cl.throttle' command"},
        {"CL.THROTTLE k 1 2 3 4 5", "ERR wrong number of arguments for 'cl.throttle' command"},
        {"CL.THROTTLE k 1 0 1", zero_error},
        {"CL.THROTTLE k 1 1 0", zero_error},
        {"CL.THROTTLE k 1 0 -1", zero_error},
        {"CL.THROTTLE k 1 1000000001 1", zero_error},
        {"CL.THROTTLE k 1 -1 1", integer_error},
        {"CL.THROTTLE k 1 1 -1", integer_error},
        {"CL.THROTTLE k -2 1 1", integer_error},
        {"CL.THROTTLE k 1 1 1.5", integer_error},
        {"CL.THROTTLE k 1 1 1 ''", integer_error},
        {"CL.THROTTLE k 1 1 +", integer_error},
        {"CL.THROTTLE k 1 1 -", integer_error},
        {"CL.THROTTLE k 1 1 1e3", integer_error},
        {"CL.THROTTLE k 9223372036854775808 1 1", integer_error},
        {"CL.THROTTLE k x 0 0", integer_error},
        {"CL.THROTTLE k 9223372036854775807 1 1",
         "ERR value is out of range: at this rate draining takes more than 104 days"},
        {"CL.THROTTLE k 200000000 1 86400",
         "ERR value is out of range: at this rate draining takes more than 104 "
         "days"},
        {"CL.THROTTLE k 1 1 86400 200000000",
         "ERR value is out of range: at this rate draining takes more than 104 "
         "days"},
        {"CL.THROTTLE k 1 1 86400 -200000000",
         "ERR value is out of range: at this rate draining takes more than 104 "
         "days"},
        {"CL.THROTTLE k 1 1 9223372036854775807 0",
         "ERR value is out of range: at this rate draining takes more than 104 days"},
        {"CL.THROTTLE k 1 1 1 -9223372036854775808",
         "ERR value is out of range: at this rate draining takes more than 104 days"},
        {"CL.THROTTLE k -1 1 9223372036854775807 0",
         "ERR value is out of range: at this rate draining takes more than 104 days"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_error(rows[i].line, rows[i].error);
}

/* Random words: accepted, or refused with an error. Never a number that Lua cannot represent. */
static void random_words(void **state)
{
    (void)state;
    static const char *const words[] = {
        "k",
        "1/s",
        "10/60s BURST 3",
        "BURST",
        "COST",
        "WAIT",
        "PEEK",
        "APPROX",
        "FORCE",
        "PARTIAL",
        "BORROW",
        "CREDIT",
        "COUNT ALL",
        "FROM FIRST",
        "PENALTY",
        "1m..1h",
        "0",
        "1",
        "-1",
        "5",
        "9007199254740991",
        "9223372036854775807",
        "-9223372036854775808",
        "1g/ms",
        "1/100d",
        "x",
        "''",
        "86400000",
        "31536000",
        "104/104d",
        "5/day",
        "WARMUP 1h",
        "WARMUP 1ms",
        "5/month",
        "9007199254740991/week",
    };
    static const char *const commands[] = {
        "LIMIT FUNNEL k",    "LIMIT BUCKET k",    "LIMIT SLIDING k", "LIMIT FIXED k",
        "LIMIT THROTTLE k",  "CL.THROTTLE k",     "LIMIT CHECK n k", "LIMIT ACQUIRE k",
        "LIMIT RENEW k",     "LIMIT RELEASE k",   "LIMIT RESET",     "LIMIT FUNNEL k 3/s",
        "LIMIT BAN FIXED k", "LIMIT BAN CHECK n", "LIMIT UNBAN",
    };
    unsigned n_taken = 0;
    for (uint64_t seed = 0; seed < 200000; seed++) {
        uint64_t dice_state = seed;
        char line[512];
        size_t len = (size_t)snprintf(line, sizeof line, "%s",
                                      commands[dice_below(&dice_state, COUNT_OF(commands))]);
        for (uint64_t left = dice_below(&dice_state, 7); left > 0; left--)
            len += (size_t)snprintf(line + len, sizeof line - len, " %s",
                                    words[dice_below(&dice_state, COUNT_OF(words))]);
        struct decision_request ask;
        if (!kit_parse(&ask, line)) {
            if (strncmp(kit_why, "ERR ", 4) != 0)
                fail_msg("%s: %s", line, kit_why);
            continue;
        }
        n_taken++;
        char out[QUOTA_WORDS_ROOM];
        unsigned n_words;
        if (quota_algorithm(ask.rule.kind)->script == SCRIPT_COUNT)
            continue;
        assert_true(question_words(&ask, 15, SLICE(""), out, &n_words) < sizeof out);
        for (unsigned i = 0; quota_is_funnel(ask.rule.kind) && i < ask.rule.n_rates; i++) {
            struct quota_gcra gcra = question_gcra(&ask, i);
            assert_true(gcra.inc < QUOTA_MOST && gcra.inc > -QUOTA_MOST);
            assert_true(gcra.room < QUOTA_MOST && gcra.burst < QUOTA_MOST);
            assert_true(gcra.room >= gcra.burst || ask.cost == 0);
            assert_true(gcra.burst >= 0);
            assert_true(gcra.inc <= gcra.burst || gcra.room == gcra.burst ||
                        ask.mode == QUOTA_BORROW);
        }
    }
    assert_true(n_taken > 10000);
}

/*
 * Keys are bounded in every command, also the second key of a RESET. The number of keys is bounded
 * too.
 */
static void keys_are_bounded(void **state)
{
    static const char *const commands[] = {
        "LIMIT FUNNEL %s 1/s", "LIMIT BUCKET %s 1/s",     "LIMIT SLIDING %s 1/s",
        "LIMIT FIXED %s 1/s",  "LIMIT THROTTLE %s 1 1 1", "CL.THROTTLE %s 1 1 1",
        "LIMIT CHECK n %s",    "LIMIT ACQUIRE %s 1 1",    "LIMIT RENEW %s t 1",
        "LIMIT RELEASE %s t",  "LIMIT RESET %s",          "LIMIT RESET a %s",
    };
    char key[QUOTA_KEY_MAX + 2];
    char line[KIT_ROOM];
    struct decision_request ask;
    (void)state;
    memset(key, 'k', sizeof key);
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        for (size_t n = QUOTA_KEY_MAX; n <= QUOTA_KEY_MAX + 1; n++) {
            char *end = stpncpy(line, commands[i], strcspn(commands[i], "%"));
            memcpy(end, key, n);
            strcpy(end + n, strchr(commands[i], '%') + 2);
            assert_int_equal(kit_parse(&ask, line), n == QUOTA_KEY_MAX);
            if (n > QUOTA_KEY_MAX)
                assert_string_equal(kit_why, "ERR the key is too long: at most 1024 bytes");
        }
    strcpy(line, "LIMIT RESET");
    for (unsigned i = 0; i < 61; i++)
        strcat(line, " k");
    assert_true(kit_parse(&ask, line));
    assert_int_equal(ask.keys.left, 61);
}

static void too_many_keys(void **state)
{
    char request[1024];
    struct slice words[QUOTA_KEYS_MAX + 3] = {SLICE("LIMIT"), SLICE("RESET")};
    struct decision_request ask;
    (void)state;
    for (size_t i = 2; i < COUNT_OF(words); i++)
        words[i] = SLICE("k");
    for (size_t n = COUNT_OF(words) - 1; n <= COUNT_OF(words); n++) {
        struct slice whole = slice_of(request, emit_array(request, words, n));
        assert_int_equal(decision_request_parse(&ask, kit_parts, SLICE("limit|reset"), whole,
                                                kit_why, sizeof kit_why),
                         n < COUNT_OF(words));
    }
    assert_string_equal(kit_why, "ERR too many keys: at most 64");
}

/* No call takes more work than a batch may. More rates and longer logs take more work. */
static void work_is_bounded(void **state)
{
    static const char *const rows[] = {
        "LIMIT FUNNEL k 1/s",
        "LIMIT FUNNEL k 1/s 2/m",
        "LIMIT SLIDING k 5/s",
        "LIMIT SLIDING k 500/s",
        "LIMIT SLIDING k 10k/s",
        "LIMIT SLIDING k 10k/s 10k/m 10k/h 10k/d 10k/2d 10k/3d 10k/4d 10k/5d",
    };
    unsigned last = 0;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct decision_request ask = kit_request(rows[i]);
        unsigned work_us = question_work_us(&ask);
        assert_true(work_us > last && work_us <= 1000);
        last = work_us;
    }
    assert_true(last > 200);
}

/* Every row of own.def with keys is parsed here, with the number of words of its arity. */
static void arities_agree(void **state)
{
    (void)state;
    unsigned n = 0;
    for (size_t i = 0; i < own_count(); i++) {
        const struct own *own = own_row(i);
        if (own->first_key == 0)
            continue;
        int least = own->arity < 0 ? -own->arity : own->arity;
        for (int argc = least - 1; argc <= least + (own->arity > 0); argc++) {
            struct slice words[16];
            char request[512];
            struct decision_request ask;
            for (int j = 0; j < argc; j++)
                words[j] = SLICE("1");
            size_t len = emit_array(request, words, (size_t)argc);
            bool is_taken = decision_request_parse(&ask, kit_parts, slice_str(own->name),
                                                   slice_of(request, len), kit_why, sizeof kit_why);
            bool is_arity = !is_taken && strstr(kit_why, "wrong number of arguments") != NULL;
            if (is_arity != (argc != least))
                fail_msg("%s with %d words: %s", own->name, argc, is_taken ? "taken" : kit_why);
        }
        n++;
    }
    assert_int_equal(n, 14);
}

/* The options of a row are those in HELP and COMMAND DOCS. */
static void options_agree(void **state)
{
    static const struct {
        enum quota_option bit;
        const char *words;
    } options[] = {
        {OPTION_BURST, "[BURST n:"},      {OPTION_COST, "[COST n:"},
        {OPTION_WAIT, "[WAIT ms:"},       {OPTION_PEEK, "[PEEK]"},
        {OPTION_APPROX, "[APPROX]"},      {OPTION_PENALTY, "[PENALTY time:"},
        {OPTION_WARMUP, "[WARMUP time:"},
    };
    unsigned n = 0;
    (void)state;
    for (uint8_t kind = 0; kind < QUOTA_KINDS; kind++) {
        const struct quota_algorithm *algorithm = quota_algorithm(kind);
        char name[64];
        snprintf(name, sizeof name, "limit|%s", algorithm->name);
        const struct own *own = own_find(slice_str(name));
        if (own == NULL)
            continue;
        n++;
        for (size_t i = 0; i < COUNT_OF(options); i++)
            if (((algorithm->options & options[i].bit) != 0) !=
                (strstr(own->arguments, options[i].words) != NULL))
                fail_msg("%s and %s", own->name, options[i].words);
    }
    assert_int_equal(n, 13);
}

/* ---- the words of a script ---- */

static void assert_asked(const struct decision_request *ask, unsigned database,
                         const char *expected)
{
    char request[QUOTA_WORDS_ROOM + EMIT_HEADER_MAX];
    char out[QUOTA_WORDS_ROOM];
    char text[QUOTA_WORDS_ROOM] = "";
    unsigned n_words;
    size_t len = question_words(ask, database, SLICE("limit:free"), out, &n_words);
    size_t head = emit_header(request, '*', n_words);
    memcpy(request + head, out, len);
    struct argv_walk walk;
    struct slice word;
    size_t at = 0;
    argv_walk_init(&walk, slice_of(request, head + len));
    while (argv_next(&walk, &word))
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%.*s", at > 0 ? "," : "",
                               (int)word.len, word.at);
    assert_true(walk.at == walk.end);
    assert_string_equal(text, expected);
}

static void assert_words(const char *line, unsigned database, const char *expected)
{
    struct decision_request ask = kit_request(line);
    assert_asked(&ask, database, expected);
}

/* The words for an operator's setting `is_unprefixed`. */
static void assert_raw_words(const char *line, unsigned database, const char *expected)
{
    struct decision_request ask = kit_request(line);
    ask.is_unprefixed = true;
    assert_asked(&ask, database, expected);
}

static void questions(void **state)
{
    (void)state;
    assert_words("LIMIT FUNNEL k 10/s BURST 20 COST 3", 7,
                 "0,,0,f,1,100000000,300000000,2000000000,2000000000");
    assert_words("LIMIT FUNNEL k 10/s WAIT 500", 7,
                 "0,,0,f,1,100000000,100000000,1500000000,1000000000");
    assert_words(
        "LIMIT BUCKET k 10/s 1/m PEEK", 7,
        "0,,1,b,2,100000000,100000000,1000000000,1000000000,60000000000,60000000000,60000000000,60000000000");
    /* more than the burst never passes, also not after a wait */
    assert_words("LIMIT FUNNEL k 10/s COST 11 WAIT 60000", 0,
                 "0,,0,f,1,100000000,1000000001,1000000000,1000000000");
    assert_words("LIMIT FUNNEL k 10/s COST 9007199254740991", 0,
                 "0,,0,f,1,100000000,1000000001,1000000000,1000000000");
    /* the longest wait that fits */
    assert_words("LIMIT FUNNEL k 1/d BURST 104 WAIT 86400000", 0,
                 "0,,0,f,1,86400000000000,86400000000000,9007199254740991,8985600000000000");
    assert_words("LIMIT THROTTLE k 4 1 1 2", 7,
                 "0,,0,,1,1000000000,2000000000,5000000000,5000000000");
    assert_words("CL.THROTTLE k 4 1 1 2", 7, "0,,0,,1,1000000000,2000000000,5000000000,5000000000");
    assert_raw_words("CL.THROTTLE k 4 1 1 -1", 7,
                     "7,,0,,1,1000000000,-1000000000,5000000000,5000000000");
    assert_raw_words("CL.THROTTLE k 4 1 1 0", 7, "7,,1,,1,1000000000,0,5000000000,5000000000");
    assert_words("LIMIT SLIDING k 5/60s 100/d COST 2 WAIT 9", 7,
                 "0,,0,2,2,5,60000000,100,86400000000");
    assert_words("LIMIT SLIDING k 5/60s APPROX PEEK", 7, "0,,1,1,1,5,60000000");
    assert_words("LIMIT FIXED k 5/60s", 7, "0,,0,1,1,5,60000000");
    assert_words("LIMIT BUCKET k 10/s BURST 3 COST 4 BORROW WARMUP 5s", 7,
                 "0,,0,100000000,400000000,200000000,5000000000");
    assert_words("LIMIT BUCKET k WARMUP 5s 10/s COST 0 BORROW", 7,
                 "0,,1,100000000,0,900000000,5000000000");
    assert_words(
        "LIMIT FIXED k 5/day 9/WEEK 2/month 3/d", 7,
        "0,,0,1,4,5,d-86400,0,86400,172800,259200,9,w-864000,-259200,345600,950400,1555200,"
        "2,m-2678400,0,2678400,5097600,7776000,3,86400000000");
    assert_words("LIMIT FIXED k 5/60s PENALTY 1s", 7, "0,,0p1000:1000,1,1,5,60000000");
    assert_words("LIMIT SLIDING k 5/60s PENALTY 1s..1h COUNT ALL", 7,
                 "0,,0ap1000:3600000,1,1,5,60000000");
    assert_words("LIMIT SLIDING k 5/60s PENALTY 1s..1h WAIT 9", 7,
                 "0,,0p1000:3600000w9000,1,1,5,60000000");
    assert_words("LIMIT SLIDING k 5/60s PENALTY 1s..1h PEEK", 7, "0,,1,1,1,5,60000000");
    assert_words("LIMIT FIXED k 5/60s PENALTY 1s COST 3 PARTIAL", 7,
                 "0,,0x3p1000:1000,1,1,5,60000000");
    assert_words("LIMIT FUNNEL k 10/s WAIT 500 PENALTY m", 7,
                 "0,,0p60000:60000,f,1,100000000,100000000,1500000000,1000000000");
    assert_words("LIMIT BAN SLIDING k 5s", 7, "0,,0,ban,122,5000,limit:free");
    assert_words("LIMIT UNBAN FIXED k", 7, "0,,0,unban,119,0,limit:free");
    assert_words("LIMIT ACQUIRE k 3 5000 WAIT 1", 7, "0,,0,acquire,3,5000,limit:free");
    assert_words("LIMIT RENEW k t 5000", 7, "0,,0,renew,0,5000,limit:free");
    assert_words("LIMIT RELEASE k t", 7, "0,,0,release,0,0,limit:free");
}

/* ---- several keys ---- */

static void parts(void **state)
{
    (void)state;
    struct decision_request ask =
        kit_request("LIMIT CHECK login ann COST 2 AND and AND and org and COST 3 WAIT 7");
    assert_int_equal(ask.rule.kind, QUOTA_ALL);
    assert_int_equal(ask.n_parts, 3);
    assert_true(ask.is_named && ask.wait_ns == 7 * MS && ask.cost == 1 && !ask.is_peek);
    assert_slice(ask.parts[0].name, "login");
    assert_slice(ask.parts[0].key, "ann");
    assert_slice(ask.parts[1].name, "and");
    assert_slice(ask.parts[1].key, "AND");
    assert_slice(ask.parts[2].name, "org");
    assert_slice(ask.parts[2].key, "and");
    assert_true(ask.parts[0].cost == 2 && ask.parts[1].cost == 1 && ask.parts[2].cost == 3);
    for (unsigned i = 0; i < 3; i++)
        assert_true(quota_limit_parse(i == 1 ? SLICE("fixed") : SLICE("bucket"), SLICE("5/m"),
                                      &kit_parts[i].rule, kit_why, sizeof kit_why));
    assert_true(decision_request_resolve(&ask, kit_parts, NULL, kit_why, sizeof kit_why));
    assert_true(ask.parts[0].wait_ns == 0 && !ask.parts[0].is_peek);

    ask = kit_request("LIMIT CHECK and and COST 5 PEEK");
    assert_true(ask.rule.kind == QUOTA_CHECK && ask.n_parts == 0 && ask.cost == 5 && ask.is_peek);

    ask = kit_request(
        "limit all sliding a 5/s 9/m approx cost 0 as map and Bucket b 1/s burst 3 2/m burst 4 cost 2 "
        "and fixed c 3/s count all from first");
    assert_int_equal(ask.n_parts, 3);
    assert_true(ask.shape == QUOTA_AS_MAP && ask.counts_all && !ask.is_named && !ask.is_peek);
    assert_int_equal(ask.parts[0].rule.kind, QUOTA_APPROX);
    assert_rate(&ask.parts[0], 1, 9, 60 * MS);
    assert_true(ask.parts[0].is_peek && ask.parts[0].counts_all && !ask.parts[0].is_first);
    assert_int_equal(ask.parts[1].rule.kind, QUOTA_BUCKET);
    assert_rate(&ask.parts[1], 0, 3, S);
    assert_rate(&ask.parts[1], 1, 4, 30 * S);
    assert_true(ask.parts[1].cost == 2 && !ask.parts[1].is_first);
    assert_true(ask.parts[2].rule.kind == QUOTA_FIXED && ask.parts[2].is_first &&
                !ask.parts[2].is_peek);
    assert_words(
        "limit all sliding a 5/s 9/m approx cost 0 and Bucket b 1/s cost 2 and fixed c 3/s count all",
        7,
        "0,,0a,3,approx,l,1,2,5,1000000,9,60000000,funnel,-,b,1,1000000000,1000000001,1000000000,1000000000,"
        "fixed,-,1,1,3,1000000");

    ask = kit_request("LIMIT ALL FIXED a 9/s AND BUCKET b 9/s CREDIT 4");
    assert_true(ask.cost == 4 && ask.parts[0].cost == 4 && quota_charge(&ask.parts[1]) == -4);
    ask = kit_request("LIMIT CHECK a a CREDIT 4 AND b b");
    assert_true(ask.cost == 4 && ask.n_parts == 2);
    ask = kit_request("LIMIT ALL FIXED a 9/s COST 0 AND BUCKET b 9/s COST 0");
    assert_true(ask.is_peek);
    ask = kit_request("LIMIT ALL FUNNEL a 1/s");
    assert_int_equal(ask.n_parts, 1);
    ask = kit_request("LIMIT ALL FUNNEL a 1/s AND BUCKET b 1/s COST 9 BORROW");
    assert_true(ask.parts[1].mode == QUOTA_BORROW && ask.parts[0].cost == 1);
}

static void parts_that_are_wrong(void **state)
{
    static const char twice[] = "ERR a key is given twice: give all its rates at once";
    static const char arity_all[] = "ERR wrong number of arguments for 'limit|all' command";
    static const char arity_check[] = "ERR wrong number of arguments for 'limit|check' command";
    static const struct {
        const char *line, *error;
    } rows[] = {
        {"LIMIT CHECK a k AND", arity_check},
        {"LIMIT CHECK a k AND b", arity_check},
        {"LIMIT CHECK a k AND b l AND", arity_check},
        {"LIMIT CHECK a k AND A k", twice},
        {"LIMIT CHECK a k COST 1 COST 2 AND b l", syntax_error},
        {"LIMIT CHECK a k AND b l 1/s", syntax_error},
        {"LIMIT CHECK a k PEEK AND b l PEEK", syntax_error},
        {"LIMIT CHECK a k PEEK AND b l WAIT 5", modes_error},
        {"LIMIT CHECK a k COST 2 AND b l CREDIT 1",
         "ERR CREDIT has its own number: leave COST out"},
        {"LIMIT CHECK a k AND b l PARTIAL",
         "ERR PARTIAL is for one key: several are all or nothing"},
        {"LIMIT CHECK a k AND b l WAIT 1 COUNT ALL",
         "ERR COUNT ALL goes with none of WAIT, FORCE, PARTIAL, BORROW and CREDIT"},
        {"LIMIT CHECK a a AND a b AND a c AND a d AND a e AND a f AND a g AND a h AND a i",
         "ERR too many keys: at most 8"},
        {"LIMIT ALL FUNNEL k", arity_all},
        {"LIMIT ALL FUNNEL k 1/s AND FIXED k", arity_all},
        {"LIMIT ALL FUNNEL k 1/s AND FIXED l PEEK", syntax_error},
        {"LIMIT ALL FUNNEL k 1/s AND FUNNEL k 2/m", twice},
        {"LIMIT ALL FIXED k 1/s BURST 2", syntax_error},
        {"LIMIT ALL FUNNEL k 1/s APPROX", syntax_error},
        {"LIMIT ALL FUNNEL k 1/s AND SLIDING l 1/s APPROX APPROX", syntax_error},
        {"LIMIT ALL APPROX k 1/s",
         "ERR 'APPROX' is neither FUNNEL nor BUCKET nor SLIDING nor FIXED"},
        {"LIMIT ALL CHECK k 1/s", "ERR 'CHECK' is neither FUNNEL nor BUCKET nor SLIDING nor FIXED"},
        {"LIMIT ALL FUNNEL k 1/s AND FIXED l 1/s BORROW", "ERR BORROW is for FUNNEL and BUCKET"},
        {"LIMIT ALL FUNNEL k 1/s AND BUCKET l 1/s FROM FIRST", "ERR FROM FIRST is for FIXED"},
        {"LIMIT ALL FUNNEL k 1/s AND SLIDING l 1/s COST 10001",
         "ERR COST of an exact sliding window is at most 10000: use APPROX for more"},
        {"LIMIT ALL FIXED a 1/s 2/s 3/s 4/s 5/s 6/s 7/s 8/s AND FIXED b 1/s 2/s 3/s 4/s 5/s 6/s 7/s 8/s AND FIXED c "
         "1/s",
         "ERR too many rates: at most 16 in one call"},
        {"LIMIT ALL SLIDING a 9/s AND SLIDING b 9/s AND SLIDING c 9/s CREDIT 1000",
         "ERR the call is too large: use fewer keys, rates or units"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_error(rows[i].line, rows[i].error);
    struct decision_request ask = kit_request(
        "LIMIT ALL SLIDING a 10k/1s 10k/2s AND SLIDING b 10k/1s 10k/2s AND SLIDING c 10k/1s "
        "10k/2s AND SLIDING d 10k/1s 10k/2s AND SLIDING e 10k/1s 10k/2s AND SLIDING f 10k/1s "
        "10k/2s AND SLIDING g 10k/1s 10k/2s AND SLIDING h 10k/1s 10k/2s");
    assert_true(question_work_us(&ask) > 500 && question_work_us(&ask) <= QUOTA_WORK_MOST_US);
}

static void scripts(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum script script;
    } rows[] = {
        {"LIMIT FUNNEL k 1/s", SCRIPT_FUNNEL},
        {"LIMIT BUCKET k 1/s", SCRIPT_FUNNEL},
        {"CL.THROTTLE k 1 1 1", SCRIPT_CELL},
        {"LIMIT SLIDING k 1/s", SCRIPT_SLIDING},
        {"LIMIT SLIDING k 1/s APPROX", SCRIPT_APPROX},
        {"LIMIT FIXED k 1/s", SCRIPT_FIXED},
        {"LIMIT RELEASE k t", SCRIPT_HOLDERS},
        {"LIMIT BAN FIXED k 1h", SCRIPT_BAN},
        {"LIMIT UNBAN FIXED k", SCRIPT_BAN},
        {"LIMIT RESET k", SCRIPT_COUNT},
        {"LIMIT CHECK n k", SCRIPT_COUNT},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct decision_request ask = kit_request(rows[i].line);
        assert_int_equal(quota_algorithm(ask.rule.kind)->script, rows[i].script);
    }
}

/* ---- lines of [limit NAME] ---- */

static void named_limits(void **state)
{
    (void)state;
    struct quota_rule rule = {0};
    assert_true(quota_limit_parse(SLICE("Funnel"), SLICE(" 10/s Burst 20 ,  5/60s"), &rule, kit_why,
                                  sizeof kit_why));
    assert_int_equal(rule.kind, QUOTA_FUNNEL);
    assert_int_equal(rule.n_rates, 2);
    assert_int_equal(rule.rates[0].limit, 20);
    assert_int_equal(rule.rates[1].limit, 5);
    assert_true(quota_limit_parse(SLICE("funnel"), SLICE("100/d"), &rule, kit_why, sizeof kit_why));
    assert_int_equal(rule.n_rates, 3);
    struct quota_rule same = rule;
    assert_true(quota_rule_is_same(&rule, &same));
    same.rates[2].step++;
    assert_false(quota_rule_is_same(&rule, &same));
    same = rule;
    same.n_rates--;
    assert_false(quota_rule_is_same(&rule, &same));
    same = rule;
    same.kind = QUOTA_BUCKET;
    assert_false(quota_rule_is_same(&rule, &same));

    static const struct {
        const char *algorithm, *text, *error;
    } rows[] = {
        {"slidng", "1/s", "unknown algorithm \"slidng\" (did you mean sliding?)"},
        {"throttle", "1/s",
         "unknown algorithm \"throttle\": write funnel, bucket, sliding, approx or fixed"},
        {"sliding", "1/s", "a limit has one algorithm, and this limit already has funnel"},
        {"funnel", "", "a rate is missing: write COUNT/PERIOD, like 1000/s or 5/60s"},
        {"funnel", "1/s,", "a rate is missing: write COUNT/PERIOD, like 1000/s or 5/60s"},
        {"funnel", "1", "\"1\" is not a rate: write COUNT/PERIOD, like 1000/s or 5/60s"},
        {"funnel", "1/s bust 2", "unknown clause \"bust\": only burst may follow a rate"},
        {"funnel", "1/s burst", "\"burst\" is the last word: its value is missing"},
        {"funnel", "1/s burst 0", "a burst of 0 never lets anything pass: give at least 1"},
        {"funnel", "1/s burst 1 burst 1", "\"burst\" is given twice"},
        {"funnel", "1/s burst x",
         "\"x\" is not a count: write a whole number, or one with k, m or g (10k)"},
        {"funnel", "1/s,1/s,1/s,1/s,1/s,1/s", "too many rates: at most 8"},
        {"funnel", "200/d burst 1000000",
         "a burst of 1000000 at this rate takes more than 104 days to drain: give a smaller burst"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct quota_rule before = rule;
        assert_false(quota_limit_parse(slice_str(rows[i].algorithm), slice_str(rows[i].text), &rule,
                                       kit_why, sizeof kit_why));
        assert_string_equal(kit_why, rows[i].error);
        assert_true(quota_rule_is_same(&before, &rule));
    }
    struct quota_rule window = {0};
    assert_false(
        quota_limit_parse(SLICE("approx"), SLICE("1/month"), &window, kit_why, sizeof kit_why));
    assert_string_equal(kit_why, "day, week and month are for FIXED, not approx");
    assert_false(
        quota_limit_parse(SLICE("fixed"), SLICE("1/s burst 2"), &window, kit_why, sizeof kit_why));
    assert_string_equal(kit_why, "fixed takes no burst: its whole count passes at once");
    assert_false(quota_limit_parse(SLICE("sliding"), SLICE("5/s, 10001/d"), &window, kit_why,
                                   sizeof kit_why));
    assert_string_equal(kit_why,
                        "an exact sliding window counts at most 10000 units: use APPROX for more");
    assert_true(
        quota_limit_parse(SLICE("approx"), SLICE("2m/s"), &window, kit_why, sizeof kit_why));
    assert_int_equal(window.kind, QUOTA_APPROX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(funnels),
        cmocka_unit_test(windows),
        cmocka_unit_test(modes),
        cmocka_unit_test(shapes),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(redis_cells),
        cmocka_unit_test(the_rest),
        cmocka_unit_test(errors),
        cmocka_unit_test(random_words),
        cmocka_unit_test(arities_agree),
        cmocka_unit_test(questions),
        cmocka_unit_test(scripts),
        cmocka_unit_test(named_limits),
        cmocka_unit_test(keys_are_bounded),
        cmocka_unit_test(too_many_keys),
        cmocka_unit_test(work_is_bounded),
        cmocka_unit_test(options_agree),
        cmocka_unit_test(parts),
        cmocka_unit_test(parts_that_are_wrong),
        cmocka_unit_test(penalties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
