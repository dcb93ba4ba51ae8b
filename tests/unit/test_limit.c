/*
 * Tests of the grammar of limits: every unit with every scope, action and clause, and the errors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "dice.h"
#include "limit/policy/limit.h"
#include "limit/policy/policy.h"

#define S UINT64_C(1000000000)
#define MS UINT64_C(1000000)

static char why[256];

static void assert_says(const char *part)
{
    if (!strstr(why, part))
        fail_msg("\"%s\" does not say \"%s\"", why, part);
}

static struct limit parsed(const char *text, enum unit unit)
{
    struct limit limit = {.position = 7, .slot = 8, .id = 9, .label = "kept"};
    if (!limit_parse(slice_str(text), unit, &limit, why, sizeof why))
        fail_msg("%s: %s", text, why);
    assert_int_equal(limit.unit, unit);
    assert_int_equal(limit.position + limit.slot + limit.id, 24);
    assert_string_equal(limit.label, "kept");
    return limit;
}

/* The grammar, written by hand: which scopes and actions each unit has. */
static const struct {
    enum unit unit;
    const char *name, *amount;
    bool scopes[SCOPE_COUNT]; /* subject, connection, policy */
    bool actions[OVER_DENY];  /* refuse, delay, close, shadow */
    enum action initial;
    bool has_burst;
} units[] = {
    {UNIT_COMMANDS,
     "commands",
     "5/s",
     {true, true, true},
     {true, true, true, true},
     OVER_REFUSE,
     true},
    {UNIT_COST, "cost", "5/s", {true, true, true}, {true, true, true, true}, OVER_REFUSE, true},
    {UNIT_BYTES_IN,
     "bytes-in",
     "5kb/s",
     {true, true, true},
     {true, true, true, true},
     OVER_REFUSE,
     true},
    {UNIT_BYTES_OUT,
     "bytes-out",
     "5kb/s",
     {true, true, true},
     {true, true, true, true},
     OVER_REFUSE,
     true},
    {UNIT_INFLIGHT,
     "inflight",
     "5",
     {true, true, true},
     {true, false, true, true},
     OVER_REFUSE,
     false},
    {UNIT_CONNECTIONS,
     "connections",
     "5",
     {true, false, true},
     {true, false, true, true},
     OVER_CLOSE,
     false},
    {UNIT_CONNECTS,
     "connects",
     "5/s",
     {true, false, true},
     {true, false, true, true},
     OVER_CLOSE,
     true},
    {UNIT_AUTH_FAILURES,
     "auth-failures",
     "5/s",
     {true, false, false},
     {false, false, true, true},
     OVER_CLOSE,
     true},
};
#define N_UNITS (sizeof units / sizeof units[0])

static const char *const scopes[] = {"", " per subject", " PER Connection", " per policy"};
static const char *const actions[] = {"", " over refuse", " over delay 200ms", " Over Close",
                                      " over SHADOW"};
static const char *const bursts[] = {"", " burst 3"};

static void compose(char *text, size_t size, size_t u, size_t scope, size_t action, size_t burst,
                    size_t order)
{
    const char *clauses[3] = {scopes[scope], actions[action], bursts[burst]};
    static const uint8_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                         {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    snprintf(text, size, "%s%s%s%s", units[u].amount, clauses[orders[order][0]],
             clauses[orders[order][1]], clauses[orders[order][2]]);
}

static void check_taken(const struct limit *limit, size_t u, size_t scope, size_t action,
                        size_t burst)
{
    enum action expected = action == 0 ? units[u].initial : (enum action)(action - 1);
    bool is_bytes = unit_is_bytes(units[u].unit);
    uint64_t count = is_bytes ? 5120 : 5;
    assert_int_equal(limit->unit, units[u].unit);
    assert_int_equal(limit->scope, scope == 0 ? PER_SUBJECT : scope - 1);
    assert_int_equal(limit->action, expected);
    assert_int_equal(limit->delay_ns, expected == OVER_DELAY ? 200 * MS : 0);
    assert_int_equal(limit->rate.count, count);
    assert_int_equal(limit->rate.burst, burst ? 3 : expected == OVER_DELAY ? 1 : count);
    assert_int_equal(limit->rate.period_ns, unit_is_gauge(units[u].unit) ? 0 : S);
}

static void every_combination(void **state)
{
    (void)state;
    size_t taken = 0;
    for (size_t i = 0; i < N_UNITS * 4 * 5 * 2 * 6; i++) {
        size_t order = i % 6, burst = i / 6 % 2, action = i / 12 % 5, scope = i / 60 % 4,
               u = i / 240;
        bool is_scope = scope == 0 || units[u].scopes[scope - 1];
        bool is_action = action == 0 || units[u].actions[action - 1];
        bool is_burst = burst == 0 || units[u].has_burst;
        struct limit limit = {.rate = {.count = 77}, .slot = 5};
        char text[100];
        compose(text, sizeof text, u, scope, action, burst, order);
        bool is_taken = limit_parse(slice_str(text), units[u].unit, &limit, why, sizeof why);
        if (is_taken != (is_scope && is_action && is_burst))
            fail_msg("%s = %s: %d %s", units[u].name, text, is_taken, why);
        taken += is_taken;
        if (is_taken) {
            check_taken(&limit, u, scope, action, burst);
            continue;
        }
        assert_int_equal(limit.rate.count, 77);
        assert_int_equal(limit.slot, 5);
        assert_says(units[u].name);
        if (!strstr(why, "cannot be counted per") && !strstr(why, "cannot be limited with over") &&
            !strstr(why, "it takes no burst"))
            fail_msg("%s = %s: %s", units[u].name, text, why);
    }
    assert_int_equal(taken, 6 * (4 * 4 * 5 * 2 + 4 * 4 + 3 * 4 + 3 * 4 * 2 + 2 * 3 * 2));
}

static void names_of_units(void **state)
{
    (void)state;
    assert_int_equal(N_UNITS, UNIT_COUNT);
    for (size_t u = 0; u < N_UNITS; u++) {
        assert_true(slice_eq(unit_name(units[u].unit), slice_str(units[u].name)));
        assert_int_equal(unit_find(slice_str(units[u].name)), units[u].unit);
    }
    assert_int_equal(unit_find(SLICE("Bytes-OUT")), UNIT_BYTES_OUT);
    assert_int_equal(unit_find(SLICE("write")), UNIT_COMMANDS);
    assert_int_equal(unit_find(SLICE("")), UNIT_COMMANDS);
    static const char *const expected_scopes[] = {"subject", "connection", "policy"};
    static const char *const expected_actions[] = {"refuse", "delay", "close", "shadow", "deny"};
    for (size_t i = 0; i < SCOPE_COUNT; i++)
        assert_true(slice_eq(scope_name((enum scope)i), slice_str(expected_scopes[i])));
    for (size_t i = 0; i < ACTION_COUNT; i++)
        assert_true(slice_eq(action_name((enum action)i), slice_str(expected_actions[i])));
}

static void amounts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum unit unit;
        uint64_t count, period_ns, burst;
    } good[] = {
        {"1000/s", UNIT_COMMANDS, 1000, S, 1000},
        {"5/60s", UNIT_COST, 5, 60 * S, 5},
        {"10000/h", UNIT_CONNECTS, 10000, 3600 * S, 10000},
        {"1/d", UNIT_AUTH_FAILURES, 1, 86400 * S, 1},
        {"2k/500ms burst 10k", UNIT_COMMANDS, 2000, S / 2, 10000},
        {"1000/s burst 2000 per subject over refuse", UNIT_COMMANDS, 1000, S, 2000},
        {" \t1000/S  OVER Refuse   BURST 1\tper SUBJECT ", UNIT_COMMANDS, 1000, S, 1},
        {"2g/s burst 1", UNIT_COMMANDS, 2000000000, S, 1},
        {"1mb/s burst 4mb", UNIT_BYTES_IN, 1 << 20, S, 4 << 20},
        {"65536/m burst 1", UNIT_BYTES_OUT, 65536, 60 * S, 1},
        {"10gb/s", UNIT_BYTES_OUT, UINT64_C(10) << 30, S, UINT64_C(10) << 30},
        {"64", UNIT_INFLIGHT, 64, 0, 64},
        {"10k", UNIT_CONNECTIONS, 10000, 0, 10000},
        {"5/s over delay 2h", UNIT_COMMANDS, 5, S, 1},
        {"5/s over delay 2h burst 4", UNIT_COMMANDS, 5, S, 4},
        {"5/s burst 4 over delay s", UNIT_COMMANDS, 5, S, 4},
        {"0.3/s", UNIT_COMMANDS, 3, 10 * S, 3},
        {"0.25/s burst 2", UNIT_COST, 1, 4 * S, 2},
        {"0.5/s over delay 5s", UNIT_COMMANDS, 1, 2 * S, 1},
        {"0.5kb/s", UNIT_BYTES_IN, 512, S, 512},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct limit limit = parsed(good[i].text, good[i].unit);
        assert_int_equal(limit.rate.count, good[i].count);
        assert_int_equal(limit.rate.period_ns, good[i].period_ns);
        assert_int_equal(limit.rate.burst, good[i].burst);
    }
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum unit unit;
        const char *says;
    } bad[] = {
        {"", UNIT_COMMANDS, "a limit is missing: write COUNT/PERIOD"},
        {"  ", UNIT_INFLIGHT, "a limit is missing: write a number"},
        {"1000", UNIT_COMMANDS, "COUNT/PERIOD"},
        {"burst 5", UNIT_COMMANDS, "COUNT/PERIOD"},
        {"/s", UNIT_COMMANDS, "is not a count"},
        {"1000/", UNIT_COMMANDS, "is not a time"},
        {"1000/60", UNIT_COMMANDS, "is not a time"},
        {"1000/1/s", UNIT_COMMANDS, "is not a time"},
        {"0/s", UNIT_COMMANDS, "a rate of 0"},
        {"5/0s", UNIT_COMMANDS, "longer than 0"},
        {"5/0", UNIT_COMMANDS, "longer than 0"},
        {"1mb/s", UNIT_COMMANDS, "count bytes"},
        {"1k/s", UNIT_BYTES_IN, "is not a size"},
        {"1mb", UNIT_BYTES_IN, "COUNT/PERIOD, like 10mb/s"},
        {"1mb/s burst 1m", UNIT_BYTES_IN, "is not a size"},
        {"5/s", UNIT_INFLIGHT,
         "inflight counts what is open at one moment: write it without a period"},
        {"5/s", UNIT_CONNECTIONS, "connections counts what is open at one moment"},
        {"0", UNIT_INFLIGHT, "0 never lets anything pass"},
        {"5kb", UNIT_INFLIGHT, "count bytes"},
        {"5 burst 5", UNIT_INFLIGHT, "it takes no burst"},
        {"5", UNIT_CONNECTS, "COUNT/PERIOD"},
        {"5/s burst 0", UNIT_COMMANDS, "a burst of 0"},
        {"5/s burst", UNIT_COMMANDS, "value is missing"},
        {"5/s burst x", UNIT_COMMANDS, "is not a count"},
        {"5/s burst 5 burst 6", UNIT_COMMANDS, "\"burst\" is given twice"},
        {"5/s per subject per policy", UNIT_COMMANDS, "\"per\" is given twice"},
        {"5/s over delay 1s over close", UNIT_COMMANDS, "\"over\" is given twice"},
        {"5/s brust 5", UNIT_COMMANDS, "did you mean burst?"},
        {"5/s hello", UNIT_COMMANDS, "unknown clause \"hello\""},
        {"5/s 200ms", UNIT_COMMANDS, "unknown clause \"200ms\""},
        {"5/s per", UNIT_COMMANDS, "value is missing"},
        {"5/s per client", UNIT_COMMANDS, "write per subject, per connection or per policy"},
        {"5/s per connection", UNIT_AUTH_FAILURES,
         "auth-failures cannot be counted per connection"},
        {"5/s over", UNIT_COMMANDS, "value is missing"},
        {"5/s over ignore", UNIT_COMMANDS,
         "write over refuse, over delay TIME, over close or over shadow"},
        {"5/s over deny", UNIT_COMMANDS, "unknown clause"},
        {"5/s over delay", UNIT_COMMANDS, "needs the longest wait"},
        {"5/s over delay 0", UNIT_COMMANDS, "a delay of 0 has no effect"},
        {"5/s over delay 0ms", UNIT_COMMANDS, "a delay of 0 has no effect"},
        {"5/s over delay 5", UNIT_COMMANDS, "is not a time"},
        {"5/s over delay burst 5", UNIT_COMMANDS, "is not a time"},
        {"5/s over delay 40000d", UNIT_COMMANDS, "100 years"},
        {"5/s over delay 1s", UNIT_CONNECTS, "connects cannot be limited with over delay"},
        {"deny", UNIT_COMMANDS, "is not a rate"},
        {"1/d burst 40000", UNIT_COMMANDS, "100 years"},
        {"1/d burst 40000", UNIT_BYTES_OUT, "100 years"},
        {"0./s", UNIT_COMMANDS, "1 to 6 digits after it, like 0.3"},
        {".5mb/s", UNIT_BYTES_IN, "like 0.5mb"},
        {"0.5", UNIT_INFLIGHT, "write a whole number"},
        {"0.5/s burst 1.5", UNIT_COMMANDS, "write a whole number"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct limit limit = {.rate = {.count = 77}, .delay_ns = 78, .scope = 79, .action = 80};
        if (limit_parse(slice_str(bad[i].text), bad[i].unit, &limit, why, sizeof why))
            fail_msg("%s passed", bad[i].text);
        assert_int_equal(limit.rate.count, 77);
        assert_int_equal(limit.delay_ns, 78);
        assert_int_equal(limit.scope, 79);
        assert_int_equal(limit.action, 80);
        assert_says(bad[i].says);
    }
}

static void long_texts_are_cut_in_messages(void **state)
{
    (void)state;
    char text[5000];
    struct limit limit;
    memset(text, 'x', sizeof text);
    assert_false(limit_parse(slice_of(text, sizeof text), UNIT_COMMANDS, &limit, why, sizeof why));
    assert_true(strlen(why) < 200);
    char small[8];
    assert_false(
        limit_parse(slice_of(text, sizeof text), UNIT_COMMANDS, &limit, small, sizeof small));
    assert_int_equal(strlen(small), 7);
}

/* Random words are accepted, or refused with a message. */
static void any_words(void **state)
{
    (void)state;
    static const char *const words[] = {"5/s",
                                        "1mb/s",
                                        "64",
                                        "burst",
                                        "per",
                                        "over",
                                        "refuse",
                                        "delay",
                                        "200ms",
                                        "close",
                                        "shadow",
                                        "subject",
                                        "connection",
                                        "policy",
                                        "3",
                                        "deny",
                                        "0",
                                        "/",
                                        "99999999999999999999/s"};
    uint64_t seed = 1, taken = 0;
    for (int i = 0; i < 50000; i++) {
        char text[200] = "";
        struct limit limit;
        enum unit unit = (enum unit)dice_below(&seed, UNIT_COUNT);
        if (dice_below(&seed, 2))
            strcat(text, units[unit].amount);
        for (uint64_t n = dice_below(&seed, 7); n > 0; n--) {
            strcat(text, dice_below(&seed, 9) ? " " : "\t ");
            strcat(text, words[dice_below(&seed, sizeof words / sizeof words[0])]);
        }
        why[0] = '\0';
        if (limit_parse(slice_str(text), unit, &limit, why, sizeof why))
            taken++;
        else
            assert_true(why[0] != '\0');
    }
    assert_true(taken > 100);
}

/* ---- writing ---- */

static void rates_are_printed(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum unit unit;
        const char *printed;
    } cases[] = {
        {"1000/s burst 7", UNIT_COMMANDS, "1000/s"},
        {"10K/60s", UNIT_COST, "10000/m"},
        {"5/90s over delay 1s", UNIT_COMMANDS, "5/90s"},
        {"1/1000ms", UNIT_CONNECTS, "1/s"},
        {"10mb/s", UNIT_BYTES_OUT, "10mb/s"},
        {"1536/500ms", UNIT_BYTES_IN, "1536/500ms"},
        {"1048576/24h", UNIT_BYTES_IN, "1mb/d"},
        {"0.3/s", UNIT_COMMANDS, "3/10s"},
        {"0.25/s", UNIT_COST, "1/4s"},
        {"1.50/m", UNIT_CONNECTS, "3/2m"},
        {"0.3/60s", UNIT_COMMANDS, "3/10m"},
        {"1.5k/s", UNIT_COMMANDS, "1500/s"},
        {"0.5mb/s", UNIT_BYTES_OUT, "512kb/s"},
        {"64", UNIT_INFLIGHT, "64"},
        {"2k per policy", UNIT_CONNECTIONS, "2000"},
        {"9223372036854775807/1ms burst 1", UNIT_COMMANDS, "9223372036854775807/ms"},
        {"9223372036854775807/36500d burst 1", UNIT_BYTES_IN, "9223372036854775807/36500d"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char out[LIMIT_RATE_MAX];
        struct limit limit = parsed(cases[i].text, cases[i].unit);
        size_t len = limit_print_rate(&limit, out);
        assert_int_equal(len, strlen(out));
        assert_string_equal(out, cases[i].printed);
        if (!unit_is_gauge(cases[i].unit))
            strcat(out, " burst 1"); /* only the rate is printed */
        struct limit again = parsed(out, cases[i].unit);
        assert_int_equal(again.rate.count, limit.rate.count);
        assert_int_equal(again.rate.period_ns, limit.rate.period_ns);
    }
    char out[LIMIT_RATE_MAX];
    const struct limit deny = {.unit = UNIT_COMMANDS, .action = OVER_DENY};
    assert_int_equal(limit_print_rate(&deny, out), 4);
    assert_string_equal(out, "deny");
}

static void lines_are_named(void **state)
{
    (void)state;
    struct classes *classes = classes_new();
    struct limit limit = {.class = class_find(classes, SLICE("cmd.SET"), why, sizeof why)};
    assert_true(slice_eq(limit_line(&limit), SLICE("cmd.set")));
    limit = (struct limit){.unit = UNIT_BYTES_OUT};
    assert_true(slice_eq(limit_line(&limit), SLICE("bytes-out")));
    classes_free(classes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_combination),
        cmocka_unit_test(names_of_units),
        cmocka_unit_test(amounts),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(long_texts_are_cut_in_messages),
        cmocka_unit_test(any_words),
        cmocka_unit_test(rates_are_printed),
        cmocka_unit_test(lines_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
