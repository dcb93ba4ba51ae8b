/*
 * Tests of the dry run: shadow counts the commands that enforcement refuses for the same traffic.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "dice.h"
#include "gate_kit.h"

#define EVENTS 1500
#define WHO 3
#define LINES 6

enum what { ASK, ANSWER, CONNECT, DISCONNECT };

static struct event {
    uint64_t at_ns;
    enum what what;
    size_t who, command;
    uint64_t cost;
} events[EVENTS];

static const char *const commands[] = {"get", "set", "del", "lpush", "blpop", "ping"};

static void policy_state(uint64_t seed)
{
    uint64_t now_ns = START;
    for (size_t i = 0; i < EVENTS; i++) {
        now_ns += dice_below(&seed, 3) ? dice_below(&seed, 20 * MS) : 0;
        uint64_t die = dice_below(&seed, 20);
        events[i] = (struct event){.at_ns = now_ns,
                                   .what = die < 11   ? ASK
                                           : die < 16 ? ANSWER
                                           : die < 18 ? CONNECT
                                                      : DISCONNECT,
                                   .who = dice_below(&seed, WHO),
                                   .command = dice_below(&seed, 6),
                                   .cost = 1 + dice_below(&seed, 8)};
    }
}

/* The result of the events under a set of rules. */
struct outcome {
    uint64_t admitted[LINES], delayed[LINES], refused[LINES], shadowed[LINES];
    bool passed[EVENTS]; /* under shadow: would have passed */
};

/* The current numbers of one connection, or of the calls of one subject. */
struct counts {
    uint64_t calls, connections;
};

static uint64_t shadowed_so_far(void)
{
    uint64_t n = 0;
    for (size_t k = 0; k < policy->n_limits; k++)
        n += atomic_load(&limit_counters[policy->limits[k].id].shadowed);
    return n;
}

static bool meet(const struct charge_target *who, const struct event *event, uint8_t flag,
                 struct counts *counts)
{
    struct gate_request wish = ask_of(commands[event->command], event->cost, event->at_ns);
    uint64_t before = shadowed_so_far();
    enum gate gate = GATE_PASS;
    switch (event->what) {
    case ASK:
        gate = gate_ask(who, &wish, limit_counters, &verdict);
        counts->calls += gate == GATE_PASS && (verdict.counted & flag);
        break;
    case ANSWER:
        if (counts->calls > 0)
            gate_calls_end(who, flag == COUNTED, flag == COUNTED_SHADOW);
        counts->calls -= counts->calls > 0;
        break;
    case CONNECT:
        gate = gate_connect(who, CONNECT_UNITS, event->at_ns, limit_counters, &verdict);
        counts->connections += gate == GATE_PASS && (verdict.counted & flag);
        break;
    case DISCONNECT:
        if (counts->connections > 0)
            gate_disconnect(who, flag);
        counts->connections -= counts->connections > 0;
        break;
    }
    return (gate == GATE_PASS || gate == GATE_WAIT) && shadowed_so_far() == before;
}

/*
 * Plays the events. `suffix` is appended to each line. `only`: plays only events with a true entry.
 */
static struct outcome run(const char *const (*lines)[2], size_t n, const char *suffix,
                          bool is_shadow, const bool *only)
{
    static struct outcome outcome;
    struct charge_target targets[WHO];
    struct counts counts[WHO] = {{0}};
    uint8_t flag = is_shadow || *suffix ? COUNTED_SHADOW : COUNTED;
    memset(&outcome, 0, sizeof outcome);
    assert_int_equal(set_up(NULL), 0);
    for (size_t k = 0; k < n; k++) {
        char line[100];
        snprintf(line, sizeof line, "%s%s", lines[k][1], suffix);
        limit(lines[k][0], line);
    }
    policies_set_shadow(policies, is_shadow);
    kit_bind(policies, registry, table);
    for (size_t i = 0; i < WHO; i++) /* two connections of one subject, and another subject */
        targets[i] = kit_target(subjects, policy, i < 2 ? "user:a" : "user:b", START);
    for (size_t i = 0; i < EVENTS; i++)
        if (!only || only[i])
            outcome.passed[i] =
                meet(&targets[events[i].who], &events[i], flag, &counts[events[i].who]);
    for (size_t k = 0; k < policy->n_limits; k++) {
        const struct limit_counters *counted = &limit_counters[policy->limits[k].id];
        outcome.admitted[k] = atomic_load(&counted->admitted);
        outcome.delayed[k] = atomic_load(&counted->delayed);
        outcome.refused[k] = atomic_load(&counted->refused);
        outcome.shadowed[k] = atomic_load(&counted->shadowed);
    }
    for (size_t i = 0; i < WHO; i++)
        kit_target_put(subjects, &targets[i]);
    tear_down(NULL);
    return outcome;
}

static const char *const rules[][LINES][2] = {
    {{"all", "30/s burst 5"}},
    {{"all", "30/s burst 5"}, {"write", "10/s burst 3, 500/m burst 40"}},
    {{"cost", "100/s burst 12"},
     {"write", "10/s burst 3 per policy"},
     {"cmd.get", "3/s burst 2 per connection"}},
    {{"inflight", "2"}, {"all", "40/s"}, {"inflight", "1 per connection"}},
    {{"connections", "2"},
     {"connects", "8/s burst 3"},
     {"write", "12/s"},
     {"inflight", "3 per policy"}},
};

static void assert_same(size_t rule, size_t n, const struct outcome *enforced,
                        const struct outcome *counted)
{
    uint64_t refused = 0;
    for (size_t k = 0; k < n; k++) {
        assert_int_equal(counted->admitted[k], enforced->admitted[k]);
        assert_int_equal(counted->shadowed[k], enforced->refused[k]);
        assert_int_equal(counted->refused[k], 0);
        assert_int_equal(enforced->shadowed[k], 0);
        refused += enforced->refused[k];
    }
    assert_memory_equal(counted->passed, enforced->passed, sizeof counted->passed);
    if (refused == 0)
        fail_msg("rule %u refused nothing", (unsigned)rule);
}

static size_t count_lines(size_t rule)
{
    size_t n = 0;
    while (n < LINES && rules[rule][n][0])
        n++;
    return n;
}

/* Each limit of a line is counted. */
static size_t count_limits(size_t rule)
{
    size_t n = 0;
    for (size_t k = 0; k < count_lines(rule); k++)
        n += strchr(rules[rule][k][1], ',') ? 2 : 1;
    return n;
}

static void mode_shadow_foretells_enforcement(void **state)
{
    (void)state;
    for (size_t rule = 0; rule < sizeof rules / sizeof rules[0]; rule++)
        for (uint64_t seed = 1; seed <= 5; seed++) {
            policy_state(seed);
            struct outcome enforced = run(rules[rule], count_lines(rule), "", false, NULL);
            struct outcome counted = run(rules[rule], count_lines(rule), "", true, NULL);
            assert_same(rule, count_limits(rule), &enforced, &counted);
        }
}

static void over_shadow_foretells_enforcement(void **state)
{
    (void)state;
    for (size_t rule = 0; rule < sizeof rules / sizeof rules[0]; rule++) {
        if (rule == 1) /* a list: the suffix belongs to its last limit */
            continue;
        for (uint64_t seed = 1; seed <= 5; seed++) {
            policy_state(seed);
            struct outcome enforced = run(rules[rule], count_lines(rule), "", false, NULL);
            struct outcome counted =
                run(rules[rule], count_lines(rule), " over shadow", false, NULL);
            assert_same(rule, count_limits(rule), &enforced, &counted);
        }
    }
}

/*
 * Under shadow a command that would wait passes at once, but takes its position. A command that
 * would wait too long is counted. Where enforcement asks further limits only after the wait, shadow
 * asks them at once, so the counts can differ.
 */
static void mode_shadow_of_delays_and_denies(void **state)
{
    (void)state;
    static const char *const lines[LINES][2] = {{"cmd.get", "5/s over delay 300ms"},
                                                {"write", "10/s burst 4 over delay 200ms"},
                                                {"@list", "deny"}};
    static const char *const apart[LINES][2] = {{"cmd.get", "5/s over delay 300ms"},
                                                {"write", "10/s over close"},
                                                {"connects", "1/s burst 2"}};
    for (uint64_t seed = 1; seed <= 5; seed++) {
        policy_state(seed);
        struct outcome enforced = run(lines, 3, "", false, NULL);
        struct outcome counted = run(lines, 3, "", true, NULL);
        assert_same(0, 3, &enforced, &counted);
        assert_true(enforced.delayed[0] + enforced.delayed[1] > 0);
        assert_int_equal(counted.delayed[0], enforced.delayed[0]);
        assert_int_equal(counted.delayed[1], enforced.delayed[1]);
        enforced = run(apart, 3, "", false, NULL);
        counted = run(apart, 3, "", true, NULL);
        assert_same(0, 3, &enforced, &counted);
    }
}

/* ---- a connection with waiting commands ---- */

struct arrival {
    uint64_t at_ns;
    const char *command;
    uint64_t cost;
};

#define ARRIVALS 400

static struct arrival arrivals[ARRIVALS];

/* Bunches of up to `most` commands, at most `gap_ns` apart. */
static void record_arrivals(uint64_t seed, uint64_t most, uint64_t gap_ns)
{
    static const char *const all[] = {"get", "set", "set", "lpush", "del"};
    uint64_t now_ns = START, left = 0;
    for (size_t i = 0; i < ARRIVALS; i++) {
        if (left == 0) {
            now_ns += dice_below(&seed, gap_ns);
            left = 1 + dice_below(&seed, most);
        }
        left--;
        arrivals[i] = (struct arrival){now_ns, all[dice_below(&seed, 5)], 1 + dice_below(&seed, 3)};
    }
}

/*
 * Enforced: each command is decided at the head of the connection, and again when the command is
 * due.
 */
static void play_enforced(void)
{
    uint64_t free_ns = 0;
    for (size_t i = 0; i < ARRIVALS; i++) {
        uint64_t now_ns = arrivals[i].at_ns > free_ns ? arrivals[i].at_ns : free_ns;
        struct gate_request wish = ask_of(arrivals[i].command, arrivals[i].cost, now_ns);
        struct queue_positions positions;
        enum gate gate = gate_ask(&target, &wish, limit_counters, &verdict);
        while (gate == GATE_WAIT) {
            positions = verdict.positions;
            wish.now_ns += (uint64_t)verdict.wait_ns;
            wish.waited_for = 1U + verdict.limit->id;
            wish.positions = &positions;
            gate = gate_ask(&target, &wish, limit_counters, &verdict);
        }
        if (gate != GATE_PASS)
            gate_leave(&verdict.positions, limit_counters);
        free_ns = wish.now_ns;
    }
}

/* Shadow: no command waits; the connection has a virtual clock. */
static void play_counted(void)
{
    uint64_t clock_ns = 0;
    for (size_t i = 0; i < ARRIVALS; i++) {
        struct gate_request wish = ask_of(arrivals[i].command, arrivals[i].cost, arrivals[i].at_ns);
        wish.virtual_ns = clock_ns;
        assert_int_equal(gate_ask(&target, &wish, limit_counters, &verdict), GATE_PASS);
        clock_ns = verdict.virtual_ns != 0 ? verdict.virtual_ns : clock_ns;
    }
}

static const char *const waiting_rules[][LINES][2] = {
    {{"all", "20/s over delay 1s"}},
    {{"write", "20/s burst 3 over delay 10ms"}},
    {{"write", "20/s over delay 1s"}, {"all", "30/s burst 5"}},
    {{"cost", "30/s burst 4 over delay 500ms"}, {"cmd.get", "5/s over close"}, {"@list", "deny"}},
    {{"all", "20/s burst 2 over delay 300ms"}, {"write", "10/s burst 3"}, {"cost", "9/s burst 9"}},
};

static void a_virtual_clock_foretells_waits(void **state)
{
    (void)state;
    for (size_t rule = 0; rule < sizeof waiting_rules / sizeof waiting_rules[0]; rule++)
        for (uint64_t seed = 1; seed <= 10; seed++) {
            static uint64_t counts[2][LINES][3];
            uint64_t delayed = 0;
            memset(counts, 0, sizeof counts);
            record_arrivals(seed, 6, 500 * MS);
            for (size_t is_shadow = 0; is_shadow < 2; is_shadow++) {
                set_up(NULL);
                for (size_t k = 0; k < LINES && waiting_rules[rule][k][0]; k++)
                    limit(waiting_rules[rule][k][0], waiting_rules[rule][k][1]);
                policies_set_shadow(policies, is_shadow);
                open_gate();
                if (is_shadow)
                    play_counted();
                else
                    play_enforced();
                for (size_t k = 0; k < policy->n_limits; k++) {
                    counts[is_shadow][k][0] = atomic_load(&counters(k)->admitted);
                    counts[is_shadow][k][1] = atomic_load(&counters(k)->delayed);
                    counts[is_shadow][k][2] = is_shadow ? atomic_load(&counters(k)->shadowed)
                                                        : atomic_load(&counters(k)->refused);
                    delayed += counts[is_shadow][k][1];
                }
                tear_down(NULL);
            }
            assert_true(delayed > 0);
            for (size_t k = 0; k < LINES; k++)
                for (size_t what = 0; what < 3; what++)
                    if (counts[0][k][what] != counts[1][k][what])
                        fail_msg("rule %zu seed %u limit %zu count %zu: enforced %u, counted %u",
                                 rule, (unsigned)seed, k, what, (unsigned)counts[0][k][what],
                                 (unsigned)counts[1][k][what]);
        }
}

/*
 * A client that sends 200 commands at once would be delayed, and none refused. The virtual clock
 * runs ahead only a little.
 */
static void a_flood_would_be_delayed(void **state)
{
    (void)state;
    set_up(NULL);
    limit("read", "20/s over delay 1s");
    policies_set_shadow(policies, true);
    open_gate();
    uint64_t clock_ns = 0;
    for (int i = 0; i < 200; i++) {
        struct gate_request wish = ask_of("get", 1, START);
        wish.virtual_ns = clock_ns;
        assert_int_equal(gate_ask(&target, &wish, limit_counters, &verdict), GATE_PASS);
        assert_false(verdict.is_shadowed);
        assert_int_equal(verdict.would, i == 0 ? GATE_PASS : GATE_WAIT);
        clock_ns = verdict.virtual_ns;
    }
    assert_counters(0, 200, 199, 0, 0);
    assert_in_range(clock_ns, START + 2 * S, START + 3 * S);
    assert_true(word(0) <= START + 3 * S + 50 * MS);
    struct gate_request other =
        ask_of("get", 1, START); /* of another connection: would wait too long */
    assert_int_equal(gate_ask(&target, &other, limit_counters, &verdict), GATE_PASS);
    assert_true(verdict.is_shadowed);
    assert_int_equal(verdict.would, GATE_REFUSE);
    tear_down(NULL);
}

/* A dry decision returns the result of an enforced one. */
static void a_dry_question_tells_what_would_be(void **state)
{
    (void)state;
    static const struct {
        const char *what, *limit;
        enum gate would;
    } rows[] = {
        {"read", "1/h", GATE_REFUSE},
        {"read", "1/h over close", GATE_CLOSE},
        {"read", "1/m over delay 1h", GATE_WAIT},
        {"read", "deny", GATE_DENY},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        set_up(NULL);
        limit(rows[i].what, rows[i].limit);
        policies_set_shadow(policies, true);
        open_gate();
        assert_true(pass("get", START));
        struct gate_request wish = ask_of("get", 1, START);
        wish.is_dry = true;
        assert_int_equal(gate_ask(&target, &wish, NULL, &verdict), GATE_PASS);
        assert_int_equal(verdict.would, rows[i].would);
        assert_ptr_equal(verdict.limit, &policy->limits[0]);
        tear_down(NULL);
    }
}

/*
 * Beside enforced limits a shadow limit sees only the commands that the enforced limits let pass.
 * Enforced limits do not see shadow limits.
 */
static void shadows_beside_enforced_ones(void **state)
{
    (void)state;
    static const char *const enforced_lines[LINES][2] = {
        {"all", "30/s burst 5"}, {"cost", "80/s burst 20 over close"}, {"connects", "6/s burst 2"}};
    static const char *const shadow_lines[LINES][2] = {{"write", "6/s burst 2 per policy"},
                                                       {"cmd.get", "2/s burst 1"},
                                                       {"connects", "3/s burst 1 per policy"}};
    static const char *const both[LINES][2] = {
        {"all", "30/s burst 5"},
        {"cost", "80/s burst 20 over close"},
        {"connects", "6/s burst 2"},
        {"write", "6/s burst 2 per policy over shadow"},
        {"cmd.get", "2/s burst 1 over shadow"},
        {"connects", "3/s burst 1 per policy over shadow"},
    };
    for (uint64_t seed = 1; seed <= 10; seed++) {
        policy_state(seed);
        static struct outcome first, second, mixed;
        first = run(enforced_lines, 3, "", false, NULL);
        second = run(shadow_lines, 3, "", false, first.passed);
        mixed = run(both, 6, "", false, NULL);
        for (size_t k = 0; k < 3; k++) {
            assert_int_equal(mixed.admitted[k], first.admitted[k]);
            assert_int_equal(mixed.refused[k], first.refused[k]);
            assert_int_equal(mixed.admitted[3 + k], second.admitted[k]);
            assert_int_equal(mixed.shadowed[3 + k], second.refused[k]);
            assert_int_equal(mixed.refused[3 + k], 0);
            assert_true(second.refused[k] > 0);
        }
    }
}

/* Another set of policies switches between shadow and enforcement: the funnels stay. */
static void shadow_and_enforcement_share_funnels(void **state)
{
    (void)state;
    assert_int_equal(set_up(NULL), 0);
    limit("all", "1/s burst 10");
    policies_set_shadow(policies, true);
    open_gate();
    assert_true(policies_is_shadow(policies));
    for (int i = 0; i < 25; i++)
        assert_true(pass("get", START));
    assert_counters(0, 10, 0, 0, 15);
    new_rules();
    limit("all", "1/s burst 10");
    open_gate();
    assert_int_equal(ask("get", 1, START), GATE_REFUSE);
    assert_int_equal(verdict.wait_ns, S);
    new_rules();
    limit("all", "1/s burst 10 over shadow");
    open_gate();
    assert_true(pass("get", START));
    assert_counters(0, 10, 0, 1, 16);
    tear_down(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mode_shadow_foretells_enforcement),
        cmocka_unit_test(over_shadow_foretells_enforcement),
        cmocka_unit_test(mode_shadow_of_delays_and_denies),
        cmocka_unit_test(shadows_beside_enforced_ones),
        cmocka_unit_test(shadow_and_enforcement_share_funnels),
        cmocka_unit_test(a_virtual_clock_foretells_waits),
        cmocka_unit_test(a_flood_would_be_delayed),
        cmocka_unit_test(a_dry_question_tells_what_would_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
