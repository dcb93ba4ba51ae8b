/*
 * Tests of the bound burst + rate * w at the gate: every unit, action and scope, and across
 * reloads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "dice.h"
#include "funnel_law.h"
#include "gate_kit.h"

#define WHO 4
#define MOST 400

static const char *const units[] = {"all", "write", "cost", "connects"};
static const char *const actions[] = {"refuse", "close", "shadow", "delay 1d"};
static const char *const scopes[] = {"subject", "connection", "policy"};

struct kind {
    size_t unit, action, scope;
};

static bool is_possible(struct kind kind)
{
    return kind.unit != 3 || (kind.action != 3 && kind.scope != 1);
}

/* The charge targets: two connections of one subject, and two other subjects. */
static struct charge_target who[WHO];

static void come(void)
{
    for (size_t i = 0; i < WHO; i++)
        who[i] = kit_target(subjects, policy,
                            i < 2    ? "user:a"
                            : i == 2 ? "user:b"
                                     : "user:c",
                            START);
}

static void go(void)
{
    for (size_t i = 0; i < WHO; i++)
        kit_target_put(subjects, &who[i]);
}

/* Index of the funnel that charge target i shares. */
static size_t funnel_of(size_t scope, size_t i)
{
    return scope == 1 ? i : scope == 2 ? 0 : i < 2 ? 0 : i - 1;
}

/*
 * Asks for one thing. Returns the wait in ns, or FUNNEL_NEVER if the gate refused, or would have
 * refused under shadow.
 */
static uint64_t try(const struct charge_target *charge_target_of, struct kind kind, uint64_t cost,
                    uint64_t now_ns)
{
    uint64_t before = atomic_load(&counters(0)->shadowed);
    enum gate gate;
    if (kind.unit == 3) {
        gate = gate_connect(charge_target_of, CONNECT_UNITS, now_ns, limit_counters, &verdict);
    } else {
        struct gate_request wish = ask_of("set", cost, now_ns);
        gate = gate_ask(charge_target_of, &wish, limit_counters, &verdict);
    }
    if (atomic_load(&counters(0)->shadowed) > before)
        return FUNNEL_NEVER;
    return gate == GATE_PASS ? 0 : gate == GATE_WAIT ? (uint64_t)verdict.wait_ns : FUNNEL_NEVER;
}

static void round_of(struct kind kind, uint64_t seed)
{
    static struct admitted lists[WHO][MOST];
    static const char *const periods[] = {"ms", "s", "7s", "m", "h"};
    size_t n[WHO] = {0};
    char line[100];
    uint64_t count = dice_scale(&seed, 2000), burst = dice_scale(&seed, 50);
    snprintf(line, sizeof line, "%u/%s burst %u per %s over %s", (unsigned)count,
             periods[dice_below(&seed, 5)], (unsigned)burst, scopes[kind.scope],
             actions[kind.action]);
    new_rules();
    limit(units[kind.unit], line);
    if (dice_below(&seed, 2)) /* a second limit that never refuses, so that decisions are joint */
        limit("@string", "1g/ms");
    kit_bind(policies, registry, table);
    target.policy = policy; /* for counters() */
    come();
    const struct rate *rate = &policy->limits[0].rate;
    uint64_t now_ns = START;
    for (int i = 0; i < 1200; i++) {
        size_t k = dice_below(&seed, WHO), at = funnel_of(kind.scope, k);
        now_ns += dice_below(&seed, 3) ? dice_below(&seed, 2 * rate->interval_ns) / WHO : 0;
        uint64_t stale_ns =
            now_ns - dice_below(&seed, 5) * dice_below(&seed, rate->interval_ns) / 2;
        stale_ns = stale_ns < now_ns ? stale_ns : now_ns;
        uint64_t cost = kind.unit == 2 ? 1 + dice_below(&seed, burst) : 1;
        uint64_t wait_ns = try(&who[k], kind, cost, stale_ns);
        if (wait_ns != FUNNEL_NEVER && n[at] < MOST)
            lists[at][n[at]++] = (struct admitted){stale_ns + wait_ns, cost};
    }
    for (size_t i = 0; i < WHO; i++)
        if (!law_holds(lists[i], n[i], rate))
            fail_msg("%s = %s, seed %u", units[kind.unit], line, (unsigned)seed);
    assert_true(n[0] > 0);
    go();
    target.policy = NULL;
}

static void law_of_every_kind(void **state)
{
    (void)state;
    for (size_t unit = 0; unit < 4; unit++)
        for (size_t action = 0; action < 4; action++)
            for (size_t scope = 0; scope < 3; scope++)
                for (uint64_t seed = 1;
                     seed <= dice_rounds(1) && is_possible((struct kind){unit, action, scope});
                     seed++) {
                    assert_int_equal(set_up(NULL), 0);
                    round_of((struct kind){unit, action, scope}, seed);
                    tear_down(NULL);
                }
}

/* Bytes: in a window w at most burst + rate * w pass, plus the overshoot of the last piece. */
static void law_of_bytes(void **state)
{
    (void)state;
    for (uint64_t round = 1; round <= 60; round++) {
        uint64_t seed = round, now_ns = START, most = 1 + dice_scale(&seed, 5000);
        static struct admitted list[MOST];
        size_t n = 0;
        char line[100];
        assert_int_equal(set_up(NULL), 0);
        snprintf(line, sizeof line, "%u/s burst %u over %s", (unsigned)dice_scale(&seed, 100000),
                 (unsigned)dice_scale(&seed, 20000), round % 2 ? "refuse" : "delay 1d");
        limit("bytes-out", line);
        open_gate();
        struct rate loose = policy->limits[0].rate; /* the overshoot as a larger burst */
        loose.burst += most;
        for (int i = 0; i < 2000 && n < MOST; i++) {
            now_ns += dice_below(&seed, 3)
                          ? dice_below(&seed, policy->limits[0].rate.burst_ns / 4 + 1000)
                          : 0;
            enum gate gate = ask("get", 1, now_ns);
            if (gate == GATE_WAIT || (gate == GATE_REFUSE && dice_below(&seed, 2)))
                now_ns += (uint64_t)verdict.wait_ns;
            if (gate != GATE_PASS && gate != GATE_WAIT)
                continue;
            list[n++] = (struct admitted){now_ns, 1 + dice_below(&seed, most)};
            gate_owe_bytes(&target, UNIT_BYTES_OUT, list[n - 1].cost, 0, now_ns, limit_counters);
        }
        assert_true(n > 5);
        assert_true(law_holds(list, n, &loose));
        tear_down(NULL);
    }
}

/* A client that retries after each returned wait gets the rate, also near one unit a nanosecond. */
static void fast_rates_are_reached(void **state)
{
    (void)state;
    static const char *const lines[] = {"700m/s burst 100m", "700m/s over delay 1s",
                                        "999999999/s burst 10m", "30m/s burst 10m",
                                        "1g/s burst 10m over close"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_int_equal(set_up(NULL), 0);
        limit("cost", lines[i]);
        limit("all", "1g/s");
        open_gate();
        const struct rate *rate = &policy->limits[0].rate;
        uint64_t now_ns = START, taken = 0, cost = 10000000;
        struct standing standing = gate_standing(&target, 0, now_ns);
        assert_int_equal(standing.remaining, rate->burst);
        while (now_ns < START + 10 * S) {
            enum gate gate = ask("get", cost, now_ns);
            taken += gate == GATE_REFUSE || gate == GATE_CLOSE ? 0 : cost;
            now_ns += gate == GATE_PASS ? 0 : (uint64_t)verdict.wait_ns;
        }
        unsigned __int128 due = (unsigned __int128)rate->count * (now_ns - START) / rate->period_ns;
        assert_true((unsigned __int128)taken * 100 >= due * 99);
        assert_true(taken <= due + rate->burst + cost); /* and the debt of a queue */
        tear_down(NULL);
    }
}

/* ---- reloads ---- */

/*
 * The bound across changes of a line's rate. In any window at most burst + sum of rate * time under
 * it, plus the burst added by each change. All rates are per second, so that in units of 1/S of a
 * command everything is a whole number.
 */
struct law_event {
    uint64_t at_ns;
    uint64_t units;       /* units admitted; 0: a change of the rate */
    uint64_t rate, burst; /* from now on */
};

struct law_line {
    struct law_event events[4000];
    size_t n;
};

static bool changing_law_holds(const struct law_line *line)
{
    uint64_t rate = 0, burst = 0;
    for (size_t i = 0; i < line->n; i++) {
        if (line->events[i].units == 0) {
            rate = line->events[i].rate;
            burst = line->events[i].burst;
            continue;
        }
        unsigned __int128 taken = 0, allowed = (unsigned __int128)burst * S;
        uint64_t rate_then = rate, burst_then = burst, at_ns = line->events[i].at_ns;
        for (size_t j = i; j < line->n; j++) {
            const struct law_event *event = &line->events[j];
            allowed += (unsigned __int128)rate_then * (event->at_ns - at_ns);
            at_ns = event->at_ns;
            if (event->units == 0) {
                allowed += event->burst > burst_then
                               ? (event->burst - burst_then) * (unsigned __int128)S
                               : 0;
                rate_then = event->rate;
                burst_then = event->burst;
            }
            taken += event->units * (unsigned __int128)S;
            if (taken > allowed)
                return false;
        }
    }
    return true;
}

/* The expected word of the line after a change of its rate, computed in units of 1/interval. */
static uint64_t word_after(uint64_t word_ns, uint64_t now_ns, const struct rate *from,
                           const struct rate *to)
{
    if (word_ns <= now_ns)
        return now_ns;
    unsigned __int128 parts = (unsigned __int128)(word_ns - now_ns) * to->interval_ns;
    uint64_t debt_ns = (uint64_t)((parts + from->interval_ns - 1) / from->interval_ns);
    return now_ns + (debt_ns < to->burst_ns ? debt_ns : to->burst_ns);
}

enum { LINES = 4 };

static const char *const lines[LINES] = {"all", "write", "cost", "cmd.set"};

static size_t line_of(const struct limit *of)
{
    size_t at = 0;
    while (!slice_eq(limit_line(of), slice_str(lines[at])))
        at++;
    return at;
}

static struct {
    struct law_line lines[LINES];
    /* the last rate of each line, also while the line is gone; count 0: none yet */
    struct rate rates[LINES];
    uint64_t words[LINES]; /* the words at that time */
} known;

/* Checks a change of rules: the debts are the same units, capped at the new burst. */
static void check_change(uint64_t now_ns)
{
    gate_settle(&target, now_ns);
    for (size_t k = 0; k < policy->n_limits; k++) {
        const struct rate *rate = &policy->limits[k].rate;
        size_t at = line_of(&policy->limits[k]);
        if (known.rates[at].count != 0) {
            uint64_t expected = word_after(known.words[at], now_ns, &known.rates[at], rate);
            assert_int_equal(word(k) > now_ns ? word(k) : now_ns, expected);
        }
        known.rates[at] = *rate;
        known.lines[at].events[known.lines[at].n++] =
            (struct law_event){.at_ns = now_ns, .rate = rate->count, .burst = rate->burst};
    }
}

static void remember_words(void)
{
    for (size_t k = 0; k < policy->n_limits; k++)
        known.words[line_of(&policy->limits[k])] = word(k);
}

/* Random rules: lines appear, disappear and change positions, rates and bursts. */
static void law_holds_while_rates_change(void **state)
{
    (void)state;
    for (uint64_t round = 1; round <= 40; round++) {
        uint64_t seed = round, now_ns = START, refused = 0;
        memset(&known, 0, sizeof known);
        assert_int_equal(set_up(NULL), 0);
        for (int reload = 0; reload < KIT_SETS - 1; reload++) {
            size_t first = dice_below(&seed, LINES),
                   there = 1 + dice_below(&seed, (1 << LINES) - 1);
            new_rules();
            for (size_t k = 0; k < LINES; k++) {
                size_t at = (first + k) % LINES;
                char line[100];
                snprintf(line, sizeof line, "%u/s burst %u", (unsigned)dice_scale(&seed, 100),
                         (unsigned)dice_scale(&seed, 30));
                if (there >> at & 1)
                    limit(lines[at], line);
            }
            open_gate();
            now_ns += dice_below(&seed, 2) ? dice_below(&seed, 50 * MS) : 0;
            check_change(now_ns);
            for (int i = 0; i < 20; i++) {
                uint64_t cost = 1 + dice_below(&seed, 3);
                now_ns += dice_below(&seed, 3) ? dice_below(&seed, 20 * MS) : 0;
                if (ask("set", cost, now_ns) != GATE_PASS) {
                    refused++;
                    continue;
                }
                for (size_t k = 0; k < policy->n_limits; k++) {
                    struct law_line *line = &known.lines[line_of(&policy->limits[k])];
                    line->events[line->n++] = (struct law_event){
                        .at_ns = now_ns, .units = policy->limits[k].unit == UNIT_COST ? cost : 1};
                }
            }
            remember_words();
        }
        assert_true(refused > 0);
        for (size_t k = 0; k < LINES; k++)
            assert_true(changing_law_holds(&known.lines[k]));
        tear_down(NULL);
    }
}

static void debts_outlive_their_line(void **state)
{
    (void)state;
    assert_int_equal(set_up(NULL), 0);
    limit("read", "1/h burst 2");
    limit("write", "1/h burst 5, 2/h burst 3");
    open_gate();
    assert_true(pass("set", START));
    assert_true(pass("set", START));
    assert_int_equal(word(1), START + 2 * 3600 * S);

    new_rules(); /* the line is gone: its debt drains at its last rate */
    limit("read", "1/h burst 2");
    open_gate();
    for (int i = 0; i < 10; i++)
        assert_true(pass("set", START));

    /*
     * the line is back at another position, with other rates and actions, without its second limit
     */
    new_rules();
    limit("all", "1000/s");
    limit("write", "4/h burst 7 over delay 1h");
    limit("read", "1/h burst 2");
    open_gate();
    gate_settle(&target, START + 3600 * S);
    assert_int_equal(word(1), START + 3600 * S + 900 * S); /* one of the two units is still owed */
    assert_true(word(2) <= START);

    new_rules(); /* per policy: another funnel */
    limit("write", "1/h burst 5 per policy, 2/h burst 3");
    open_gate();
    assert_int_equal(word(0), 0);
    assert_int_equal(word(1), START + 3600 * S);
    assert_true(pass("set", START));
    assert_false(pass("set", START));
    assert_int_equal(verdict.wait_ns, 1800 * S);
    assert_ptr_equal(verdict.limit, &policy->limits[1]);
    tear_down(NULL);
}

/* A client that connects after the reload finds the debts of the clients before it. */
static void newcomers_find_the_debts(void **state)
{
    (void)state;
    assert_int_equal(set_up(NULL), 0);
    limit("write", "1/h burst 1");
    open_gate();
    assert_true(pass("set", START));
    kit_target_put(subjects, &target);
    target.policy = NULL;
    for (int i = 0; i < 20; i++) {
        new_rules();
        char what[20];
        /* indices of funnels that the subject was not created with */
        snprintf(what, sizeof what, "cmd.c%d", i);
        limit(what, "1/h");
        limit("write", "1/h burst 1");
        open_gate();
        assert_int_equal(word(0), 0);
        assert_false(pass("set", START + 1));
        kit_target_put(subjects, &target);
        target.policy = NULL;
    }
    tear_down(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(law_of_every_kind),        cmocka_unit_test(law_of_bytes),
        cmocka_unit_test(fast_rates_are_reached),   cmocka_unit_test(law_holds_while_rates_change),
        cmocka_unit_test(debts_outlive_their_line), cmocka_unit_test(newcomers_find_the_debts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
