/*
 * Tests of outcomes and replies, against a store that computes like the scripts. The tests cover
 * the tables of redis-cell, batched calls against the same calls one by one, and remembered denials
 * against new requests.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decision_kit.h"
#include "dice.h"
#include "quota/outcome.h"
#include "quota/question.h"

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])
#define US INT64_C(1000)
#define MS INT64_C(1000000)
#define S INT64_C(1000000000)
#define EPOCH (INT64_C(1700000000) * S)
#define UNITS_MAX 4096

/* ---- a store of one key, with the scripts' input words and numbers ---- */

struct store {
    int64_t tats[QUOTA_RATES_MAX]; /* 0: none */
    int64_t units_us[UNITS_MAX];   /* of a sliding window: the time of each unit */
    unsigned n_units;
    struct {
        int64_t window, used;
    } fixed[QUOTA_RATES_MAX];
};

static struct store store;

struct asked {
    /* the numbers behind the tag or the cost: R and its numbers */
    int64_t numbers[2 + 4 * QUOTA_RATES_MAX];
    struct slice first;
    bool is_peek;
};

static void read_words(const struct decision_request *ask, struct asked *asked)
{
    static char request[QUOTA_WORDS_ROOM + EMIT_HEADER_MAX];
    static char words[QUOTA_WORDS_ROOM];
    unsigned n_words;
    struct argv_walk walk;
    struct slice word;
    size_t len = question_words(ask, 0, SLICE(""), words, &n_words);
    size_t head = emit_header(request, '*', n_words);
    memcpy(request + head, words, len);
    argv_walk_init(&walk, slice_of(request, head + len));
    for (unsigned i = 0; argv_next(&walk, &word); i++) {
        if (i == 2)
            asked->is_peek = slice_eq(word, SLICE("1"));
        else if (i == 3)
            asked->first = word;
        else if (i > 3)
            asked->numbers[i - 4] = strtoll(word.at, NULL, 10);
    }
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void run_gcra(const struct asked *asked, int64_t now, uint64_t n, int64_t *numbers)
{
    int64_t n_rates = asked->numbers[0];
    const int64_t *rates = asked->numbers + 1; /* interval, inc, room, burst */
    uint64_t granted = n;
    for (int64_t r = 0; r < n_rates; r++) {
        int64_t before = most(store.tats[r] - now, 0);
        numbers[r] = before;
        int64_t inc = rates[4 * r + 1], room = rates[4 * r + 2];
        uint64_t fit = inc <= 0        ? (before + inc <= room ? n : 0)
                       : room < before ? 0
                                       : (uint64_t)((room - before) / inc);
        granted = fit < granted ? fit : granted;
    }
    if (granted == 0 || asked->is_peek)
        return;
    for (int64_t r = 0; r < n_rates; r++) {
        int64_t after = most(numbers[r] + (int64_t)granted * rates[4 * r + 1], 0);
        store.tats[r] = now + after;
    }
}

static unsigned sliding_used(int64_t now_us, int64_t period_us)
{
    unsigned used = 0;
    for (unsigned i = 0; i < store.n_units; i++)
        used += store.units_us[i] + period_us > now_us;
    return used;
}

/* Microseconds until enough units have left the window for `cost` more. -1: never. */
static int64_t sliding_retry(int64_t now_us, int64_t count, int64_t period_us, int64_t cost)
{
    if (cost > count)
        return -1;
    int64_t too_many = sliding_used(now_us, period_us) + cost - count;
    for (unsigned i = 0; too_many > 0 && i < store.n_units; i++)
        if (store.units_us[i] + period_us > now_us && --too_many == 0)
            return store.units_us[i] + period_us - now_us;
    return 0;
}

static void run_sliding(const struct asked *asked, int64_t now, uint64_t n, int64_t *numbers)
{
    int64_t now_us = now / US, cost = strtoll(asked->first.at, NULL, 10),
            n_rates = asked->numbers[0];
    const int64_t *rates = asked->numbers + 1; /* count, period_us */
    numbers[0] = 0;
    for (int64_t r = 0; r < n_rates; r++)
        numbers[1 + 3 * r] = sliding_used(now_us, rates[2 * r + 1]);
    for (bool fits = true; fits && (uint64_t)numbers[0] < (asked->is_peek ? 1 : n);) {
        for (int64_t r = 0; r < n_rates; r++)
            fits = fits && sliding_used(now_us, rates[2 * r + 1]) + cost <= rates[2 * r];
        numbers[0] += fits;
        for (int64_t i = 0; fits && !asked->is_peek && i < cost; i++)
            store.units_us[store.n_units++] = now_us;
    }
    for (int64_t r = 0; r < n_rates; r++) {
        bool is_empty = sliding_used(now_us, rates[2 * r + 1]) == 0;
        numbers[2 + 3 * r] = sliding_retry(now_us, rates[2 * r], rates[2 * r + 1], cost);
        numbers[3 + 3 * r] =
            is_empty ? 0 : store.units_us[store.n_units - 1] + rates[2 * r + 1] - now_us;
    }
}

static void run_fixed(const struct asked *asked, int64_t now, uint64_t n, int64_t *numbers)
{
    int64_t now_us = now / US, cost = strtoll(asked->first.at, NULL, 10),
            n_rates = asked->numbers[0];
    const int64_t *rates = asked->numbers + 1; /* count, period_us */
    uint64_t granted = n;
    for (int64_t r = 0; r < n_rates; r++) {
        int64_t window = now_us / rates[2 * r + 1];
        if (store.fixed[r].window != window)
            store.fixed[r].used = 0;
        store.fixed[r].window = window;
        numbers[1 + 3 * r] = store.fixed[r].used;
        uint64_t fit = (uint64_t)(most(rates[2 * r] - store.fixed[r].used, 0) / cost);
        granted = fit < granted ? fit : granted;
    }
    numbers[0] = (int64_t)granted;
    for (int64_t r = 0; r < n_rates; r++) {
        int64_t left_us = rates[2 * r + 1] - now_us % rates[2 * r + 1];
        store.fixed[r].used += asked->is_peek ? 0 : (int64_t)granted * cost;
        bool is_over = store.fixed[r].used + cost > rates[2 * r];
        numbers[2 + 3 * r] = cost > rates[2 * r] ? -1 : is_over ? left_us : 0;
        numbers[3 + 3 * r] = store.fixed[r].used > 0 ? left_us : 0;
    }
}

static void run(const struct decision_request *ask, int64_t now, uint64_t n, int64_t *numbers)
{
    struct asked asked = {0};
    read_words(ask, &asked);
    switch (quota_algorithm(ask->rule.kind)->script) {
    case SCRIPT_FUNNEL:
    case SCRIPT_CELL:
        run_gcra(&asked, now, n, numbers);
        break;
    case SCRIPT_SLIDING:
        run_sliding(&asked, now, n, numbers);
        break;
    default:
        run_fixed(&asked, now, n, numbers);
    }
}

static struct quota_outcome call(const struct decision_request *ask, int64_t now)
{
    int64_t numbers[QUOTA_NUMBERS_MAX];
    struct quota_outcome outcome;
    run(ask, now, 1, numbers);
    quota_outcome(ask, numbers, 1, 0, &outcome);
    return outcome;
}

static void forget(void)
{
    memset(&store, 0, sizeof store);
}

/* ---- redis-cell's tables ---- */

/* The integers of a reply, like "0 5 4 -1 1". */
static void assert_reply(const char *line, int64_t at_us, const char *expected)
{
    struct decision_request ask = kit_request(line);
    struct quota_outcome outcome = call(&ask, EPOCH + at_us * US);
    for (int is_resp3 = 0; is_resp3 <= 1; is_resp3++) {
        struct build build;
        char text[128] = "";
        build_init(&build, is_resp3);
        quota_reply(&build, &ask, &outcome);
        assert_memory_equal(build.at, "*5\r\n", 4);
        size_t len = 0;
        for (size_t i = 4; i < build.len; i++)
            if (build.at[i] == '\n')
                text[len++] = ' ';
            else if (build.at[i] != ':' && build.at[i] != '\r')
                text[len++] = build.at[i];
        text[len - 1] = '\0';
        build_fini(&build);
        if (strcmp(text, expected) != 0)
            fail_msg("%s at %lld us: %s is not %s", line, (long long)at_us, text, expected);
    }
}

static void table_1(void **state)
{
    (void)state;
    static const struct {
        int64_t ms;
        int quantity;
        const char *reply;
    } rows[] = {
        {0, 6, "1 5 5 -1 0"},     {0, 1, "0 5 4 -1 1"},    {0, 1, "0 5 3 -1 2"},
        {0, 1, "0 5 2 -1 3"},     {0, 1, "0 5 1 -1 4"},    {0, 1, "0 5 0 -1 5"},
        {0, 1, "1 5 0 1 5"},      {3000, 1, "0 5 2 -1 3"}, {3100, 1, "0 5 1 -1 4"},
        {4000, 1, "0 5 1 -1 4"},  {8000, 1, "0 5 4 -1 1"}, {9500, 1, "0 5 4 -1 1"},
        {9500, 0, "0 5 4 -1 1"},  {9500, 2, "0 5 2 -1 3"}, {9500, 5, "1 5 2 3 3"},
        {15000, 6, "1 5 5 -1 0"},
    };
    static const char *const names[] = {"CL.THROTTLE", "LIMIT THROTTLE"};
    for (size_t name = 0; name < COUNT_OF(names); name++) {
        forget();
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            char line[64];
            snprintf(line, sizeof line, "%s k 4 1 1 %d", names[name], rows[i].quantity);
            assert_reply(line, rows[i].ms * 1000, rows[i].reply);
        }
    }
}

struct step {
    int64_t us;
    const char *arguments, *reply;
};

static void assert_steps(const struct step *steps)
{
    forget();
    for (; steps->arguments != NULL; steps++) {
        char line[64];
        snprintf(line, sizeof line, "CL.THROTTLE k %s", steps->arguments);
        assert_reply(line, steps->us, steps->reply);
    }
}

#define STEPS(...) assert_steps((const struct step[]){__VA_ARGS__, {0, NULL, NULL}})

static void table_2(void **state)
{
    (void)state;
    STEPS({0, "15 30 60", "0 16 15 -1 2"});
    STEPS({0, "0 1 2 1", "0 1 0 -1 2"}, {0, "0 1 2 1", "1 1 0 2 2"},
          {2000000, "0 1 2 1", "0 1 0 -1 2"});
    STEPS({0, "5 5 3600", "0 6 5 -1 720"});
}

static void table_3(void **state)
{
    (void)state;
    STEPS({0, "0 1 60 0", "0 1 1 -1 0"});
    STEPS({0, "4 1 1 5", "0 5 0 -1 5"}, {0, "4 1 1 5", "1 5 0 5 5"});
    STEPS({0, "9 100 60", "0 10 9 -1 1"}, {0, "9 100 60", "0 10 8 -1 2"},
          {0, "9 100 60", "0 10 7 -1 2"}, {0, "9 100 60", "0 10 6 -1 3"},
          {0, "9 100 60", "0 10 5 -1 3"}, {0, "9 100 60", "0 10 4 -1 4"},
          {0, "9 100 60", "0 10 3 -1 5"}, {0, "9 100 60", "0 10 2 -1 5"},
          {0, "9 100 60", "0 10 1 -1 6"}, {0, "9 100 60", "0 10 0 -1 6"},
          {0, "9 100 60", "1 10 0 1 6"});
    STEPS({0, "2 7 60", "0 3 2 -1 9"}, {0, "2 7 60", "0 3 1 -1 18"}, {0, "2 7 60", "0 3 0 -1 26"},
          {0, "2 7 60", "1 3 0 9 26"}, {8000000, "2 7 60", "1 3 0 1 18"},
          {9000000, "2 7 60", "0 3 0 -1 26"});
    STEPS({0, "2 3 1", "0 3 2 -1 1"}, {0, "2 3 1", "0 3 1 -1 1"}, {0, "2 3 1", "0 3 0 -1 1"},
          {0, "2 3 1", "1 3 0 1 1"});
    STEPS({0, "9 2 3", "0 10 9 -1 2"});
    STEPS({0, "0 2 1", "0 1 0 -1 1"}, {100000, "0 2 1", "1 1 0 1 1"});
    STEPS({0, "0 2 1", "0 1 0 -1 1"}, {499600, "0 2 1", "1 1 0 0 0"});
    STEPS({0, "9 1 10 10", "0 10 0 -1 100"}, {0, "4 1 10 0", "1 5 0 50 100"},
          {0, "4 1 10 1", "1 5 0 60 100"});
    STEPS({0, "9 1 10 10", "0 10 0 -1 100"}, {0, "19 1 10 1", "0 20 9 -1 110"});
    STEPS({0, "9 10 10 10", "0 10 0 -1 10"}, {0, "9 100 10 1", "1 10 0 10 10"});
    STEPS({0, "4 1 10 3", "0 5 2 -1 30"}, {0, "4 1 10 -1", "0 5 3 -1 20"});
    STEPS({INT64_C(3600000000), "0 1 1 1", "0 1 0 -1 1"}, {0, "0 1 1 1", "1 1 0 3601 3601"});
    /* redis-cell replies 6024 instead of 6001 */
    STEPS({0, "6000 6000 1", "0 6001 6000 -1 0"});
    STEPS({0, "-1 1 1", "1 0 0 -1 0"}, {0, "-1 1 1 0", "0 0 0 -1 0"});
    /* a refund empties the funnel at most; a million a second divides by zero in redis-cell */
    STEPS({0, "4 1 10 3", "0 5 2 -1 30"}, {0, "4 1 10 -5", "0 5 5 -1 0"},
          {0, "4 1 10 5", "0 5 0 -1 50"});
    STEPS({0, "4 2000000 1 2", "0 5 3 -1 0"});
}

/* ---- decisions in milliseconds ---- */

static void assert_bytes(const char *line, int64_t at_us, bool is_resp3, const char *expected)
{
    struct decision_request ask = kit_request(line);
    struct quota_outcome outcome = call(&ask, EPOCH + at_us * US);
    struct build build;
    build_init(&build, is_resp3);
    quota_reply(&build, &ask, &outcome);
    if (!slice_eq(slice_of(build.at, build.len), slice_str(expected)))
        fail_msg("%s: %.*s", line, (int)build.len, build.at);
    build_fini(&build);
}

static void replies(void **state)
{
    (void)state;
    forget();
    assert_bytes("LIMIT FUNNEL k 3/s", 0, false, "*5\r\n:0\r\n:3\r\n:2\r\n:-1\r\n:334\r\n");
    assert_bytes(
        "LIMIT FUNNEL k 3/s COST 2", 0, true,
        "%5\r\n$7\r\nlimited\r\n:0\r\n$5\r\nlimit\r\n:3\r\n$9\r\nremaining\r\n:0\r\n$14\r\nretry_after_ms\r\n:-1\r\n"
        "$14\r\nreset_after_ms\r\n:1001\r\n");
    assert_bytes(
        "LIMIT FUNNEL k 3/s", 1, true,
        "%5\r\n$7\r\nlimited\r\n:1\r\n$5\r\nlimit\r\n:3\r\n$9\r\nremaining\r\n:0\r\n$14\r\nretry_after_ms\r\n"
        ":334\r\n$14\r\nreset_after_ms\r\n:1000\r\n");
    assert_bytes("LIMIT FUNNEL k 3/s", 333332, false, "*5\r\n:1\r\n:3\r\n:0\r\n:1\r\n:667\r\n");
    assert_bytes("LIMIT FUNNEL k 3/s PEEK", 333332, false,
                 "*5\r\n:1\r\n:3\r\n:0\r\n:1\r\n:667\r\n");
    assert_bytes("LIMIT FUNNEL k 3/s PEEK", 333335, false,
                 "*5\r\n:0\r\n:3\r\n:1\r\n:-1\r\n:667\r\n");
    assert_bytes("LIMIT FUNNEL k 3/s COST 4", 333335, false,
                 "*5\r\n:1\r\n:3\r\n:1\r\n:-1\r\n:667\r\n");
    assert_bytes("LIMIT FUNNEL k 3/s COST 4 WAIT 60000", 333335, false,
                 "*5\r\n:1\r\n:3\r\n:1\r\n:-1\r\n:667\r\n");
    forget();
    assert_bytes("LIMIT SLIDING k 2/s", 0, false, "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:1000\r\n");
    assert_bytes("LIMIT SLIDING k 2/s", 600000, false, "*5\r\n:0\r\n:2\r\n:0\r\n:-1\r\n:1000\r\n");
    assert_bytes("LIMIT SLIDING k 2/s", 999999, false, "*5\r\n:1\r\n:2\r\n:0\r\n:1\r\n:601\r\n");
    assert_bytes("LIMIT SLIDING k 2/s PEEK", 1000000, false,
                 "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:600\r\n");
    assert_bytes("LIMIT SLIDING k 2/s COST 3", 1000000, false,
                 "*5\r\n:1\r\n:2\r\n:1\r\n:-1\r\n:600\r\n");
    forget();
    assert_bytes("LIMIT FIXED k 2/s", 250000, false, "*5\r\n:0\r\n:2\r\n:1\r\n:-1\r\n:750\r\n");
    assert_bytes("LIMIT FIXED k 2/s COST 2", 250000, false,
                 "*5\r\n:1\r\n:2\r\n:1\r\n:750\r\n:750\r\n");
}

/*
 * Rates near one unit a nanosecond: calls of 100 ns and more get the promised rate, and never more.
 */
static void fine_rates(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int64_t count; /* units a second */
    } rows[] = {
        {"LIMIT FUNNEL k 700m/s BURST 800k COST 80", 700000000},
        {"LIMIT BUCKET k 999999999/s BURST 999999 COST 101", 999999999},
        {"LIMIT FUNNEL k 1g/s BURST 1m COST 100", 1000000000},
        {"LIMIT FUNNEL k 700m/s BURST 1m COST 7003", 700000000},
        {"LIMIT FUNNEL k 333m/s BURST 333 COST 34", 333000000},
        {"LIMIT FUNNEL k 15m/s BURST 40 COST 2", 15000000},
        {"LIMIT FUNNEL k 3/s", 3},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct decision_request ask = kit_request(rows[i].line);
        int64_t passed = 0, now = EPOCH, from_rest = 0;
        forget();
        while (!call(&ask, now).is_limited)
            from_rest++;
        int64_t burst = ask.rule.rates[0].limit;
        assert_true(from_rest * ask.cost <= burst && (from_rest + 1) * ask.cost > burst * 99 / 100);
        for (int j = 0; j < 3000; j++) {
            struct quota_outcome outcome = call(&ask, now);
            assert_true(outcome.remaining <= burst);
            if (outcome.is_limited)
                now += outcome.retry_ns;
            else
                passed += ask.cost;
        }
        __int128 most = (__int128)(now - EPOCH) * rows[i].count;
        assert_true((__int128)passed * S <= most + (__int128)(burst - from_rest * ask.cost) * S);
        assert_true((__int128)passed * S >= most / 100 * 99);
    }
    struct decision_request ask = kit_request("LIMIT FUNNEL k 700m/s BURST 700 COST 700"),
                            one = kit_request("LIMIT FUNNEL k 700m/s BURST 700");
    forget();
    assert_int_equal(call(&ask, EPOCH).remaining, 0);
    assert_int_equal(call(&ask, EPOCH).retry_ns, 1000);
    assert_int_equal(call(&one, EPOCH).retry_ns, 2);
    forget();
    assert_int_equal(call(&one, EPOCH).remaining, 698); /* a single unit takes 2 ns */
}

/* COST 0 passes whatever the debt is, even with a queue. Nothing is written. */
static void nothing(void **state)
{
    (void)state;
    static const char *const rates[] = {"FUNNEL k 2/s", "SLIDING k 2/s", "FIXED k 2/s"};
    for (size_t i = 0; i < COUNT_OF(rates); i++) {
        char line[64];
        forget();
        for (int used = 0; used <= 2; used++) {
            snprintf(line, sizeof line, "LIMIT %s COST 0", rates[i]);
            struct decision_request ask = kit_request(line);
            struct quota_outcome outcome = call(&ask, EPOCH);
            assert_true(ask.is_peek);
            assert_false(outcome.is_limited);
            assert_int_equal(outcome.limit, 2);
            assert_int_equal(outcome.remaining, 2 - used);
            assert_int_equal(outcome.retry_ns, -1);
            snprintf(line, sizeof line, "LIMIT %s", rates[i]);
            ask = kit_request(line);
            assert_int_equal(call(&ask, EPOCH).is_limited, used == 2);
        }
    }
    forget();
    struct decision_request queue = kit_request("LIMIT FUNNEL k 1/s WAIT 5000"),
                            none = kit_request("LIMIT FUNNEL k 1/s COST 0 WAIT 5000");
    for (int i = 0; i < 3; i++)
        (void)call(&queue, EPOCH);
    struct quota_outcome outcome = call(&none, EPOCH);
    assert_false(outcome.is_limited);
    assert_int_equal(outcome.wait_ns, 0);
    assert_int_equal(outcome.remaining, 0);
    assert_int_equal(outcome.reset_ns, 3 * S);
}

/*
 * The reported rate is the refusing one with the longest wait, else the one with least remaining.
 */
static void several_rates(void **state)
{
    (void)state;
    forget();
    struct decision_request ask = kit_request("LIMIT BUCKET k 10/s 12/m BURST 12 100/s");
    struct quota_outcome outcome = call(&ask, EPOCH);
    assert_int_equal(outcome.limit, 10);
    assert_int_equal(outcome.remaining, 9);
    for (int i = 0; i < 9; i++)
        outcome = call(&ask, EPOCH);
    assert_int_equal(outcome.remaining, 0);
    outcome = call(&ask, EPOCH);
    assert_true(outcome.is_limited);
    assert_int_equal(outcome.limit, 10);
    assert_int_equal(outcome.retry_ns, S / 10);
    outcome = call(&ask, EPOCH + S);
    assert_int_equal(outcome.limit, 12);
    assert_int_equal(outcome.remaining, 1);
    outcome = call(&ask, EPOCH + S);
    outcome = call(&ask, EPOCH + S);
    assert_true(outcome.is_limited);
    assert_int_equal(outcome.limit, 12);
    assert_int_equal(outcome.retry_ns, 4 * S);
    assert_int_equal(outcome.reset_ns, 59 * S);
    /* never counts as the longest wait */
    ask = kit_request("LIMIT BUCKET k 10/s 12/m BURST 12 100/s COST 11");
    outcome = call(&ask, EPOCH + S);
    assert_int_equal(outcome.limit, 10);
    assert_int_equal(outcome.retry_ns, -1);
    assert_int_equal(outcome.remaining, 8);
}

/* Of equal rates the first is reported. */
static void equal_rates(void **state)
{
    (void)state;
    forget();
    struct decision_request ask = kit_request("LIMIT FUNNEL k 5/s 5/m");
    struct quota_outcome outcome = call(&ask, EPOCH);
    assert_int_equal(outcome.remaining, 4);
    assert_int_equal(outcome.reset_ns, S / 5);
    ask = kit_request("LIMIT FUNNEL k 3/s 5/m COST 9");
    outcome = call(&ask, EPOCH);
    assert_true(outcome.is_limited);
    assert_int_equal(outcome.limit, 3);
    forget();
    ask = kit_request("LIMIT FIXED k 5/m 5/s");
    outcome = call(&ask, EPOCH);
    assert_int_equal(outcome.reset_ns, 60 * S - EPOCH % (60 * S));
    ask = kit_request("LIMIT FIXED k 5/m 3/s COST 9");
    outcome = call(&ask, EPOCH);
    assert_int_equal(outcome.limit, 5);
}

/*
 * A queue is first come, first served, and evenly spaced. A call that would wait too long gets the
 * time of its next attempt.
 */
static void turns(void **state)
{
    (void)state;
    forget();
    struct decision_request ask = kit_request("LIMIT FUNNEL k 10/s BURST 2 WAIT 300");
    for (int i = 0; i < 5; i++) {
        struct quota_outcome outcome = call(&ask, EPOCH);
        assert_false(outcome.is_limited);
        assert_int_equal(outcome.wait_ns, i < 2 ? 0 : (i - 1) * S / 10);
        assert_int_equal(outcome.remaining, i == 0);
        assert_int_equal(outcome.reset_ns, i == 0 ? S / 10 : S / 5);
        assert_int_equal(outcome.retry_ns, -1);
    }
    struct quota_outcome outcome = call(&ask, EPOCH);
    assert_true(outcome.is_limited);
    assert_int_equal(outcome.retry_ns, S / 10);
    assert_int_equal(outcome.wait_ns, 0);
    assert_int_equal(outcome.reset_ns, S / 2);
    struct decision_request hasty = kit_request("LIMIT FUNNEL k 10/s BURST 2");
    outcome = call(&hasty, EPOCH);
    assert_int_equal(outcome.retry_ns, 4 * S / 10);
    assert_int_equal(outcome.remaining, 0);
    outcome = call(&hasty, EPOCH + 4 * S / 10);
    assert_false(outcome.is_limited);
}

/* ---- any sequence ---- */

static void print_ask(char *line, size_t size, uint64_t *dice_state, bool may_wait)
{
    static const char *const kinds[] = {"FUNNEL", "BUCKET", "SLIDING", "FIXED", "THROTTLE"};
    uint64_t kind = dice_below(dice_state, COUNT_OF(kinds));
    size_t len = (size_t)snprintf(line, size, "LIMIT %s k", kinds[kind]);
    if (kind == 4) {
        snprintf(line + len, size - len, " %d %d %d %d", (int)dice_below(dice_state, 12) - 1,
                 (int)dice_scale(dice_state, 100), (int)dice_scale(dice_state, 60),
                 (int)dice_below(dice_state, 8) - 2);
        return;
    }
    for (uint64_t left = dice_scale(dice_state, 3); left > 0; left--) {
        len += (size_t)snprintf(line + len, size - len, " %d/%dms", (int)dice_scale(dice_state, 30),
                                (int)dice_scale(dice_state, 3000));
        if (kind < 2 && dice_below(dice_state, 2))
            len += (size_t)snprintf(line + len, size - len, " BURST %d",
                                    (int)dice_scale(dice_state, 30));
    }
    len += (size_t)snprintf(line + len, size - len, " COST %d", (int)dice_scale(dice_state, 5));
    if (dice_below(dice_state, 8) == 0)
        snprintf(line + len, size - len, " PEEK");
    else if (may_wait && dice_below(dice_state, 3) == 0)
        snprintf(line + len, size - len, " WAIT %d", (int)dice_scale(dice_state, 2000));
}

static void assert_same(const struct quota_outcome *a, const struct quota_outcome *b,
                        const char *line, uint64_t seed)
{
    if (a->is_limited != b->is_limited || a->limit != b->limit || a->remaining != b->remaining ||
        a->retry_ns != b->retry_ns || a->reset_ns != b->reset_ns || a->wait_ns != b->wait_ns)
        fail_msg("seed %llu, %s: %d %lld %lld %lld %lld %lld is not %d %lld %lld %lld %lld %lld",
                 (unsigned long long)seed, line, a->is_limited, (long long)a->limit,
                 (long long)a->remaining, (long long)a->retry_ns, (long long)a->reset_ns,
                 (long long)a->wait_ns, b->is_limited, (long long)b->limit, (long long)b->remaining,
                 (long long)b->retry_ns, (long long)b->reset_ns, (long long)b->wait_ns);
}

static void together_as_one_by_one(void **state)
{
    (void)state;
    unsigned n_allowed = 0;
    unsigned n_denied = 0;
    for (uint64_t seed = 0; seed < dice_rounds(2000); seed++) {
        uint64_t dice_state = seed;
        char line[256];
        int64_t now = EPOCH;
        print_ask(line, sizeof line, &dice_state, true);
        struct decision_request ask = kit_request(line);
        forget();
        for (int round = 0; round < 8; round++) {
            uint64_t n = dice_scale(&dice_state, 20);
            int64_t numbers[QUOTA_NUMBERS_MAX];
            static struct store before;
            static struct store after;
            before = store;
            run(&ask, now, n, numbers);
            after = store;
            store = before;
            for (uint64_t k = 0; k < n; k++) {
                struct quota_outcome outcome;
                struct quota_outcome single = call(&ask, now);
                quota_outcome(&ask, numbers, n, k, &outcome);
                assert_same(&outcome, &single, line, seed);
                assert_true(outcome.remaining >= 0 && outcome.remaining <= outcome.limit);
                if (!ask.is_peek)
                    assert_int_equal(outcome.is_limited, k >= quota_granted(&ask, numbers, n));
                n_allowed += !outcome.is_limited;
                n_denied += outcome.is_limited;
            }
            assert_memory_equal(&store, &after, sizeof store);
            now += (int64_t)dice_scale(&dice_state, 2000000) * US;
        }
    }
    assert_true(n_allowed > 10000 && n_denied > 10000);
}

static void memory_as_asking_again(void **state)
{
    (void)state;
    unsigned n_recalled = 0;
    unsigned n_let_go = 0;
    for (uint64_t seed = 0; seed < dice_rounds(4000); seed++) {
        uint64_t dice_state = seed;
        char line[256];
        int64_t now = EPOCH;
        int64_t numbers[QUOTA_NUMBERS_MAX];
        struct quota_memory memory;
        uint64_t n;
        unsigned round = 0;
        print_ask(line, sizeof line, &dice_state, false);
        struct decision_request ask = kit_request(line);
        forget();
        do {
            now += (int64_t)dice_scale(&dice_state, 300000) * US;
            n = dice_scale(&dice_state, 20);
            run(&ask, now, n, numbers);
        } while (!quota_remember(&ask, numbers, n, &memory) && ++round < 8);
        if (round == 8)
            continue;
        for (int i = 0; i < 8; i++) {
            static struct store before;
            uint64_t elapsed = dice_scale(&dice_state, 1200000) * (uint64_t)US;
            struct quota_outcome recalled;
            before = store;
            struct quota_outcome asked = call(&ask, now + (int64_t)elapsed);
            store = before;
            bool is_recalled = quota_recall(&memory, &ask, elapsed, &recalled);
            /* other calls: only while not even one unit passes */
            if (ask.cost == 1 && ask.rule.rates[0].limit > 0)
                assert_int_equal(is_recalled, asked.is_limited && elapsed <= QUOTA_MEMORY_NS);
            else if (is_recalled)
                assert_true(asked.is_limited && elapsed <= QUOTA_MEMORY_NS);
            n_let_go += !is_recalled;
            if (!is_recalled)
                continue;
            n_recalled++;
            if (ask.rule.kind == QUOTA_SLIDING && ask.rule.n_rates > 1) {
                assert_int_equal(recalled.retry_ns, asked.retry_ns);
                /*
                 * with two waits of never or of equal length, the reported rate may differ by what
                 * remains
                 */
                continue;
            }
            if (ask.rule.kind == QUOTA_SLIDING)
                /* the memory does not track units that leave one by one */
                recalled.remaining = asked.remaining;
            assert_same(&recalled, &asked, line, seed);
        }
    }
    assert_true(n_recalled > 2000 && n_let_go > 2000);
}

static void memory_knows_its_limits(void **state)
{
    (void)state;
    struct decision_request ask = kit_request("LIMIT FIXED k 4/500ms");
    struct quota_memory memory;
    struct quota_outcome outcome;
    int64_t numbers[QUOTA_NUMBERS_MAX];
    forget();
    run(&ask, EPOCH, 4, numbers);
    assert_false(quota_remember(&ask, numbers, 4, &memory));
    run(&ask, EPOCH, 1, numbers);
    assert_true(quota_remember(&ask, numbers, 1, &memory));
    assert_true(quota_recall(&memory, &ask, 499999999, &outcome));
    assert_int_equal(outcome.retry_ns, 1);
    assert_int_equal(outcome.reset_ns, 1);
    assert_int_equal(outcome.remaining, 0);
    assert_false(quota_recall(&memory, &ask, 500000000, &outcome));
    struct decision_request dearer = kit_request("LIMIT FIXED k 4/500ms COST 3");
    assert_false(quota_recall(&memory, &dearer, 0, &outcome));
    struct decision_request other = kit_request("LIMIT SLIDING k 4/500ms");
    assert_false(quota_recall(&memory, &other, 0, &outcome));
    other = kit_request("LIMIT FIXED k 5/500ms");
    assert_false(quota_recall(&memory, &other, 0, &outcome));

    /* nothing is remembered while a smaller cost may pass */
    forget();
    for (int cost = 2; cost <= 5; cost++) {
        char line[64];
        snprintf(line, sizeof line, "LIMIT FUNNEL k 4/h COST %d", cost);
        struct decision_request costly = kit_request(line);
        run(&costly, EPOCH, 1, numbers);
        assert_false(quota_remember(&costly, numbers, 1, &memory));
    }
    struct decision_request costly = kit_request("LIMIT FUNNEL k 4/h COST 2");
    run(&costly, EPOCH, 1, numbers);
    run(&costly, EPOCH, 1, numbers);
    assert_true(quota_remember(&costly, numbers, 1, &memory));
    assert_int_equal(memory.exact_ns, 900 * S);
    struct decision_request cheaper = kit_request("LIMIT FUNNEL k 4/h");
    assert_true(quota_recall(&memory, &cheaper, 0, &outcome));
    assert_int_equal(outcome.retry_ns, 900 * S);
    dearer = kit_request("LIMIT FUNNEL k 4/h COST 5");
    assert_true(quota_recall(&memory, &dearer, 0, &outcome));
    assert_int_equal(outcome.retry_ns, -1);
    assert_int_equal(outcome.remaining, 0);

    struct decision_request peek = kit_request("LIMIT FIXED k 4/s PEEK");
    forget();
    run(&peek, EPOCH, 5, numbers);
    assert_false(quota_remember(&peek, numbers, 5, &memory));

    struct decision_request slow = kit_request("LIMIT FUNNEL k 1/h");
    forget();
    run(&slow, EPOCH, 2, numbers);
    assert_true(quota_remember(&slow, numbers, 2, &memory));
    assert_true(quota_recall(&memory, &slow, QUOTA_MEMORY_NS, &outcome));
    assert_int_equal(outcome.retry_ns, 3599 * S);
    assert_false(quota_recall(&memory, &slow, QUOTA_MEMORY_NS + 1, &outcome));
    struct decision_request patient = kit_request("LIMIT FUNNEL k 1/h WAIT 3600000");
    assert_false(quota_recall(&memory, &patient, 0, &outcome));
    patient = kit_request("LIMIT FUNNEL k 1/h WAIT 3599999");
    assert_true(quota_recall(&memory, &patient, 0, &outcome));
    assert_int_equal(outcome.retry_ns, MS);
}

/* A TAT of another origin, or numbers of a script of another version. */
/* ---- penalties ---- */

static void assert_held(const char *line, const int64_t *numbers, struct quota_hold hold,
                        uint64_t n, uint64_t k, const int64_t *fields)
{
    struct decision_request ask = kit_request(line);
    struct quota_outcome found;
    assert_true(quota_holds_are_sane(&ask, numbers, &hold, n));
    quota_outcome_held(&ask, numbers, &hold, n, k, &found);
    const int64_t told[] = {found.is_limited, found.limit, found.remaining, found.retry_ns,
                            found.reset_ns};
    for (int i = 0; i < 5; i++)
        if (told[i] != fields[i])
            fail_msg("%s: field %d is %lld, not %lld", line, i, (long long)told[i],
                     (long long)fields[i]);
    assert_int_equal(found.is_penalised, found.is_limited);
}

#define HELD(line, numbers, left_ns, granted, n, k, ...)                                           \
    assert_held(line, numbers, (struct quota_hold){left_ns, granted}, n, k,                        \
                (const int64_t[]){__VA_ARGS__})

static void penalties(void **state)
{
    (void)state;
    const int64_t s = (int64_t)NS_PER_S;
    const int64_t empty[] = {0}, one[] = {1 * s}, full[] = {3 * s}, two[] = {2 * s, 600 * s};
    HELD("LIMIT FUNNEL k 1/s BURST 3", empty, 9 * s, 0, 1, 0, 1, 3, 0, 9 * s, 9 * s);
    HELD("LIMIT FUNNEL k 1/s BURST 3", full, 9 * s, 0, 1, 0, 1, 3, 0, 9 * s, 9 * s);
    HELD("LIMIT FUNNEL k 1/s BURST 3 PEEK", full, 9 * s, 0, 1, 0, 1, 3, 0, 9 * s, 9 * s);
    HELD("LIMIT FUNNEL k 1/s BURST 3 COST 3", full, 2 * s, 0, 1, 0, 1, 3, 0, 3 * s, 3 * s);
    HELD("LIMIT FUNNEL k 1/s BURST 3 COST 4", one, 9 * s, 0, 1, 0, 1, 3, 0, -1, 9 * s);
    HELD("LIMIT BUCKET k 1/s BURST 3 1/m BURST 11", two, 9 * s, 0, 1, 0, 1, 3, 0, 9 * s, 9 * s);
    HELD("LIMIT FUNNEL k 1/s BURST 3 COST 3 PARTIAL", one, 9 * s, 0, 1, 0, 1, 3, 0, 9 * s, 9 * s);
    HELD("LIMIT FUNNEL k 1/s BURST 3 COUNT ALL", one, 2 * s, 0, 3, 1, 1, 3, 0, 2 * s, 3 * s);
    HELD("LIMIT FUNNEL k 1/s BURST 3 FORCE", one, 9 * s, 1, 1, 0, 0, 3, 0, -1, 9 * s);
    HELD("LIMIT FUNNEL k 1/s BURST 3 CREDIT 1", one, 9 * s, 1, 1, 0, 0, 3, 0, -1, 9 * s);
    HELD("LIMIT FUNNEL k 1/s BURST 3 COST 0", one, 9 * s, 0, 1, 0, 0, 3, 0, -1, 9 * s);
    const int64_t window[] = {0, 1, 0, 60 * s / 1000},
                  wide[] = {0, 5, 30 * s / 1000, 60 * s / 1000};
    HELD("LIMIT FIXED k 5/60s", window, 9 * s, 0, 1, 0, 1, 5, 0, 9 * s, 60 * s);
    HELD("LIMIT FIXED k 5/60s", wide, 9 * s, 0, 1, 0, 1, 5, 0, 30 * s, 60 * s);
    HELD("LIMIT FIXED k 5/60s", wide, 90 * s, 0, 1, 0, 1, 5, 0, 90 * s, 90 * s);
    /* a penalty that begins with these calls */
    struct decision_request ask = kit_request("LIMIT FUNNEL k 1/s BURST 3 PENALTY 9s");
    struct quota_outcome found;
    const struct quota_hold begun = {9 * s, 2};
    quota_outcome_held(&ask, one, &begun, 4, 1, &found);
    assert_true(!found.is_limited && found.remaining == 0 && found.reset_ns == 3 * s &&
                !found.is_penalised);
    HELD("LIMIT FUNNEL k 1/s BURST 3 PENALTY 9s", one, 9 * s, 2, 4, 2, 1, 3, 0, 9 * s, 9 * s);
    HELD("LIMIT FUNNEL k 1/s BURST 3 PENALTY 9s", one, 9 * s, 2, 4, 3, 1, 3, 0, 9 * s, 9 * s);

    assert_false(quota_holds_are_sane(&ask, one, &(struct quota_hold){9 * s, 1}, 4));
    assert_false(quota_holds_are_sane(&ask, one, &(struct quota_hold){-1, 0}, 4));
    ask = kit_request("CL.THROTTLE k 1 1 1");
    assert_false(quota_holds_are_sane(&ask, one, &(struct quota_hold){9 * s, 0}, 1));
    struct quota_memory memory;
    ask = kit_request("LIMIT FUNNEL k 1/s BURST 3 PENALTY 9s");
    assert_false(quota_remember(&ask, full, 1, &memory));
    ask = kit_request("LIMIT FUNNEL k 1/s BURST 3");
    assert_true(quota_remember(&ask, full, 1, &memory));
    ask = kit_request("LIMIT FUNNEL k 1/s BURST 3 PENALTY 9s");
    assert_false(quota_recall(&memory, &ask, 0, &found));
}

static void odd_numbers(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "CL.THROTTLE k 4 1 1",         "CL.THROTTLE k 4 1 1 -3",
        "LIMIT FUNNEL k 5/s WAIT 100", "LIMIT FUNNEL k 5/s 5/m PEEK",
        "LIMIT SLIDING k 5/s 9/m",     "LIMIT FIXED k 9007199254740991/s COST 9007199254740991"};
    for (uint64_t seed = 0; seed < dice_rounds(5000); seed++) {
        uint64_t dice_state = seed;
        struct decision_request ask = kit_request(lines[dice_below(&dice_state, COUNT_OF(lines))]);
        int64_t numbers[QUOTA_NUMBERS_MAX];
        struct quota_memory memory;
        struct quota_outcome outcome;
        uint64_t n = dice_scale(&dice_state, UINT32_MAX);
        for (unsigned i = 0; i < quota_numbers(&ask); i++)
            numbers[i] = (int64_t)dice(&dice_state) >> dice_below(&dice_state, 64);
        quota_outcome(&ask, numbers, n, dice_below(&dice_state, n), &outcome);
        assert_true(outcome.remaining >= 0 && outcome.remaining <= outcome.limit);
        assert_true(outcome.retry_ns >= -1 && outcome.reset_ns >= 0 && outcome.wait_ns >= 0);
        if (quota_remember(&ask, numbers, n, &memory) && quota_recall(&memory, &ask, 5, &outcome))
            assert_true(outcome.is_limited && outcome.reset_ns >= 0);
    }
    /* refused, though the numbers do not refuse */
    struct decision_request ask = kit_request("LIMIT SLIDING k 5/s");
    struct quota_outcome outcome;
    quota_outcome(&ask, (int64_t[]){0, 4, 0, 9}, 1, 0, &outcome);
    assert_true(outcome.is_limited);
    assert_int_equal(outcome.retry_ns, 1);
}

static void shapes(void **state)
{
    (void)state;
    struct decision_request ask = kit_request("LIMIT FUNNEL k 1/s 2/s 3/s");
    assert_int_equal(quota_numbers(&ask), 3);
    ask = kit_request("LIMIT SLIDING k 1/s 2/s");
    assert_int_equal(quota_numbers(&ask), 7);
    ask = kit_request("LIMIT RENEW k t 5");
    assert_int_equal(quota_numbers(&ask), 3);
}

/* ---- holders ---- */

static void assert_holding(const char *line, const int64_t *numbers, bool is_resp3,
                           const char *expected)
{
    struct decision_request ask = kit_request(line);
    struct build build;
    build_init(&build, is_resp3);
    quota_reply_holding(&build, &ask, numbers, SLICE("tok"));
    if (!slice_eq(slice_of(build.at, build.len), slice_str(expected)))
        fail_msg("%s: %.*s", line, (int)build.len, build.at);
    build_fini(&build);
}

static void holders(void **state)
{
    (void)state;
    static const int64_t granted[] = {1, 2, 0};
    static const int64_t refused[] = {0, 3, 1234};
    assert_holding("LIMIT ACQUIRE k 3 5000", granted, false,
                   "*5\r\n:0\r\n$3\r\ntok\r\n:2\r\n:3\r\n:-1\r\n");
    assert_holding("LIMIT ACQUIRE k 3 5000", refused, false,
                   "*5\r\n:1\r\n$-1\r\n:3\r\n:3\r\n:1234\r\n");
    assert_holding(
        "LIMIT ACQUIRE k 3 5000", refused, true,
        "%5\r\n$7\r\nlimited\r\n:1\r\n$5\r\ntoken\r\n_\r\n$4\r\nheld\r\n:3\r\n$3\r\nmax\r\n:3\r\n"
        "$14\r\nretry_after_ms\r\n:1234\r\n");
    assert_holding("LIMIT RENEW k t 5000", granted, false, ":1\r\n");
    assert_holding("LIMIT RENEW k t 5000", refused, true, ":0\r\n");
    assert_holding("LIMIT RELEASE k t", granted, true, ":1\r\n");
}

/* A cold funnel: ten units at ten a second take 2.6 s, as one call or as ten. */
static void warm_ups(void **state)
{
    (void)state;
    struct quota_outcome outcome;
    struct decision_request ten =
        kit_request("LIMIT BUCKET k 10/s BURST 1 COST 10 BORROW WARMUP 5s");
    struct decision_request one = kit_request("LIMIT BUCKET k 10/s BURST 100 BORROW WARMUP 5s");
    static const int64_t cold[2] = {0, 5 * INT64_C(1000000000)}, owing[2] = {1, 0},
                         worn[2] = {0, 2500000000};
    assert_int_equal(quota_numbers(&ten), 2);
    assert_int_equal(quota_granted(&ten, cold, 3), 1);
    quota_outcome(&ten, cold, 3, 0, &outcome);
    assert_false(outcome.is_limited);
    assert_int_equal(outcome.reset_ns, 3600000000);
    quota_outcome(&ten, cold, 3, 1, &outcome);
    assert_true(outcome.is_limited);
    assert_int_equal(outcome.retry_ns, 2600000000);
    quota_outcome(&ten, owing, 1, 0, &outcome);
    assert_true(outcome.is_limited);
    assert_int_equal(outcome.retry_ns, 1);
    quota_outcome(&ten, worn, 1, 0, &outcome);
    assert_int_equal(outcome.reset_ns, 1000000000 + 5000000000 - 1500000000);
    assert_int_equal(quota_granted(&one, cold, 10), 10);
    quota_outcome(&one, cold, 10, 9, &outcome);
    assert_int_equal(outcome.reset_ns, 3600000000);
    assert_int_equal(outcome.remaining, 74);
    assert_int_equal(quota_granted(&one, cold, 1000),
                     75); /* the first 50 units take 7.5 s, the others 0.1 s each, up to 9.9 s */
    struct quota_memory memory;
    assert_false(quota_remember(&ten, owing, 1, &memory));
    static const int64_t strange[][2] = {{-1, 0}, {0, -1}, {0, 5000000001}, {QUOTA_MOST + 1, 0}};
    for (size_t k = 0; k < sizeof strange / sizeof strange[0]; k++)
        assert_false(quota_numbers_are_sane(&ten, strange[k], 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warm_ups),
        cmocka_unit_test(table_1),
        cmocka_unit_test(table_2),
        cmocka_unit_test(table_3),
        cmocka_unit_test(replies),
        cmocka_unit_test(nothing),
        cmocka_unit_test(fine_rates),
        cmocka_unit_test(several_rates),
        cmocka_unit_test(equal_rates),
        cmocka_unit_test(turns),
        cmocka_unit_test(together_as_one_by_one),
        cmocka_unit_test(memory_as_asking_again),
        cmocka_unit_test(memory_knows_its_limits),
        cmocka_unit_test(odd_numbers),
        cmocka_unit_test(penalties),
        cmocka_unit_test(shapes),
        cmocka_unit_test(holders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
