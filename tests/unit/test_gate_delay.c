/* Tests of limits that delay: a leaky bucket used as a queue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "dice.h"
#include "funnel_law.h"
#include "gate_kit.h"
#include "limit/queue.h"

/* The gate's decision for a command that has been at the head of its connection since headed_ns. */
static enum gate ask_since(const char *command, uint64_t cost, uint64_t headed_ns, uint64_t now_ns)
{
    struct gate_request wish = ask_of(command, cost, now_ns);
    wish.headed_ns = headed_ns;
    return gate_ask(&target, &wish, limit_counters, &verdict);
}

/* The gate's decision for a command that is due in the queue of limit `index`. */
static enum gate depart(const char *command, size_t index, uint64_t headed_ns, uint64_t now_ns)
{
    struct gate_request wish = ask_of(command, 1, now_ns);
    wish.headed_ns = headed_ns;
    wish.waited_for = 1U + policy->limits[index].id;
    return gate_ask(&target, &wish, limit_counters, &verdict);
}

static void evenly_spaced(void **state)
{
    (void)state;
    limit("all", "100/s over delay 1s");
    open_gate();
    assert_int_equal(policy->limits[0].rate.burst, 1);
    assert_int_equal(ask("get", 1, START), GATE_PASS);
    for (uint64_t i = 1; i <= 100; i++) {
        assert_int_equal(ask("get", 1, START), GATE_WAIT);
        assert_int_equal(verdict.wait_ns, i * 10 * MS);
        assert_ptr_equal(verdict.limit, &policy->limits[0]);
    }
    uint64_t before = word(0);
    /* the 102nd would wait 1010 ms, over the maximum */
    assert_int_equal(ask("get", 1, START), GATE_REFUSE);
    assert_int_equal(verdict.wait_ns, 10 * MS);
    assert_int_equal(word(0), before);
    assert_int_equal(ask("get", 1, START + 10 * MS - 1), GATE_REFUSE);
    assert_int_equal(verdict.wait_ns, 1);
    assert_int_equal(ask("get", 1, START + 10 * MS), GATE_WAIT);
    assert_int_equal(verdict.wait_ns, S);
    assert_counters(0, 102, 101, 2, 0);

    /* A departure charges nothing more. */
    before = word(0);
    for (uint64_t i = 1; i <= 100; i++)
        assert_int_equal(depart("get", 0, START, START + i * 10 * MS), GATE_PASS);
    assert_int_equal(word(0), before);
    assert_counters(0, 102, 101, 2, 0);
}

static void a_burst_goes_at_once(void **state)
{
    (void)state;
    limit("all", "100/s burst 5 over delay 1s");
    open_gate();
    for (int i = 0; i < 5; i++)
        assert_int_equal(ask("get", 1, START), GATE_PASS);
    for (uint64_t i = 1; i <= 100; i++) {
        assert_int_equal(ask("get", 1, START), GATE_WAIT);
        assert_int_equal(verdict.wait_ns, i * 10 * MS);
    }
    assert_int_equal(ask("get", 1, START), GATE_REFUSE);
}

/*
 * The delay counts from the time a command is at the head of its connection, not from its arrival.
 */
static void time_counts_from_the_head(void **state)
{
    (void)state;
    limit("all", "10/s over delay 250ms");
    open_gate();
    assert_int_equal(ask("get", 1, START), GATE_PASS);
    assert_int_equal(ask("get", 1, START), GATE_WAIT);
    assert_int_equal(ask("get", 1, START), GATE_WAIT);
    assert_int_equal(verdict.wait_ns, 200 * MS);
    assert_int_equal(ask("get", 1, START), GATE_REFUSE); /* would wait 300 ms */
    assert_int_equal(verdict.wait_ns, 50 * MS);
    assert_int_equal(ask("get", 1, START + 50 * MS - 1), GATE_REFUSE);
    assert_int_equal(verdict.wait_ns, 1);

    /* A command that has been at the head for 1 ns may wait 1 ns less. */
    assert_int_equal(ask_since("get", 1, START + 50 * MS - 1, START + 50 * MS), GATE_REFUSE);
    assert_int_equal(verdict.wait_ns, 1);
    assert_int_equal(ask_since("get", 1, START + 50 * MS, START + 50 * MS), GATE_WAIT);
    assert_int_equal(verdict.wait_ns, 250 * MS);

    /* A command at the head for longer than the maximum delay passes only if the queue is empty. */
    assert_int_equal(ask_since("get", 1, START, START + 400 * MS - 1), GATE_REFUSE);
    assert_int_equal(ask_since("get", 1, START, START + 400 * MS), GATE_PASS);
    /* headed_ns in the future counts as no time at the head. */
    assert_int_equal(ask_since("get", 1, START + 600 * MS, START + 400 * MS), GATE_WAIT);
    assert_int_equal(verdict.wait_ns, 100 * MS);
}

/* Random arrivals against a model of the queue. */
static void departures_equal_the_queue(void **state)
{
    (void)state;
    for (uint64_t round = 1; round <= 100; round++) {
        uint64_t seed = round, now_ns = START + round * 10000 * S, last_ns = 0;
        uint64_t burst = 1 + dice_below(&seed, 5), departures[700] = {0};
        size_t n = 0;
        char line[64];
        snprintf(line, sizeof line, "40/s burst %u over delay 300ms", (unsigned)burst);
        if (n_sets == KIT_SETS - 1) {
            tear_down(NULL);
            set_up(NULL);
        } else {
            new_rules();
        }
        limit("write", line);
        open_gate();
        for (int i = 0; i < 600; i++) {
            now_ns += dice_below(&seed, 3) ? dice_below(&seed, 40 * MS) : 0;
            /*
             * The model: a command departs one service time after the burst-th command before it.
             * The queue serves one command in 25 ms.
             */
            uint64_t empty_ns = last_ns > now_ns ? last_ns : now_ns;
            uint64_t due_ns = empty_ns + 25 * MS > now_ns + burst * 25 * MS
                                  ? empty_ns - (burst - 1) * 25 * MS
                                  : now_ns;
            enum gate gate = ask("set", 1, now_ns);
            if (due_ns - now_ns > 300 * MS) {
                assert_int_equal(gate, GATE_REFUSE);
                assert_int_equal(verdict.wait_ns, due_ns - now_ns - 300 * MS);
                continue;
            }
            assert_int_equal(gate, due_ns > now_ns ? GATE_WAIT : GATE_PASS);
            if (gate == GATE_WAIT)
                assert_int_equal(verdict.wait_ns, due_ns - now_ns);
            last_ns = empty_ns + 25 * MS;
            departures[n++] = due_ns;
            if (n > burst)
                assert_true(due_ns - departures[n - 1 - burst] >= 25 * MS);
        }
    }
}

static void costs_beyond_the_burst_wait_longer(void **state)
{
    (void)state;
    limit("cost", "10/s burst 2 over delay 10s");
    open_gate();
    assert_int_equal(ask("get", 7, START), GATE_WAIT);
    assert_int_equal(verdict.wait_ns, 500 * MS);
    assert_int_equal(ask("get", 1, START), GATE_WAIT);
    assert_int_equal(verdict.wait_ns, 600 * MS);
    assert_int_equal(ask("get", 1000, START), GATE_REFUSE);
    assert_int_equal(verdict.wait_ns, 100600 * MS - 10 * S);
    assert_counters(0, 8, 2, 1, 0);
}

/* Huge costs and delays do not overflow. */
static void monstrous_costs(void **state)
{
    (void)state;
    limit("cost", "1/d burst 1 over delay 36525d");
    open_gate();
    static const uint64_t costs[] = {UINT64_C(1) << 48, UINT64_MAX, 1, UINT64_MAX >> 12};
    for (size_t i = 0; i < sizeof costs / sizeof costs[0]; i++) {
        uint64_t before = word(0);
        enum gate gate = ask("get", costs[i], START);
        assert_true(gate == GATE_WAIT || gate == GATE_REFUSE);
        assert_true(word(0) >= before);
        assert_true(gate == GATE_REFUSE || word(0) == START + RATE_LONGEST_NS);
        assert_true(word(0) <= START + RATE_LONGEST_NS + 24 * 3600 * S);
    }
    assert_int_not_equal(ask("get", 1, START), GATE_PASS);
    assert_true(word(0) >= START + RATE_LONGEST_NS - 24 * 3600 * S);
}

static void who_cannot_be_held_is_refused(void **state)
{
    (void)state;
    limit("all", "100/s over delay 1s");
    open_gate();
    struct gate_request wish = ask_of("get", 1, START);
    wish.may_wait = false;
    assert_int_equal(gate_ask(&target, &wish, limit_counters, &verdict), GATE_PASS);
    uint64_t before = word(0);
    assert_int_equal(gate_ask(&target, &wish, limit_counters, &verdict), GATE_REFUSE);
    assert_int_equal(verdict.wait_ns, 10 * MS);
    assert_int_equal(word(0), before);
    wish.now_ns = START + 10 * MS;
    assert_int_equal(gate_ask(&target, &wish, limit_counters, &verdict), GATE_PASS);
    assert_counters(0, 2, 0, 1, 0);
}

static void control_waits_and_is_never_refused(void **state)
{
    (void)state;
    limit("control", "10/s over delay 100ms");
    limit("all", "1/h");
    open_gate();
    assert_int_equal(ask("ping", 1, START), GATE_PASS);
    for (uint64_t i = 1; i < 50; i++) {
        assert_int_equal(ask("ping", 1, START), GATE_WAIT);
        assert_int_equal(verdict.wait_ns, i * 100 * MS);
    }
    struct gate_request wish = ask_of("exec", 1, START);
    wish.may_wait = false;
    assert_int_equal(gate_ask(&target, &wish, limit_counters, &verdict), GATE_PASS);
    assert_counters(0, 51, 49, 0, 0);
    assert_counters(1, 0, 0, 0, 0);
}

/* ---- several limits ---- */

/*
 * Limits without a queue are charged at departure. By then other commands of the subject may have
 * used up these limits.
 */
static void the_others_are_asked_at_departure(void **state)
{
    (void)state;
    limit("@string", "10/s over delay 1s");
    limit("write", "4/s burst 2");
    open_gate();
    assert_int_equal(ask("set", 1, START), GATE_PASS);
    assert_int_equal(ask("set", 1, START), GATE_WAIT);
    assert_string_equal(verdict.limit->label, "free/@string");
    assert_int_equal(verdict.wait_ns, 100 * MS);
    assert_int_equal(word(0), START + 200 * MS); /* reserved */
    assert_int_equal(word(1), START + 250 * MS); /* has room, and is charged at departure */
    assert_counters(1, 1, 0, 0, 0);
    assert_int_equal(ask("del", 1, START), GATE_PASS);
    assert_int_equal(word(1), START + 500 * MS);
    assert_int_equal(depart("set", 0, START, START + 100 * MS), GATE_REFUSE);
    assert_string_equal(verdict.limit->label, "free/write");
    assert_int_equal(verdict.wait_ns, 150 * MS);
    assert_int_equal(word(0), START + 200 * MS); /* the position is lost */
    assert_int_equal(word(1), START + 500 * MS);
    assert_int_equal(ask("set", 1, START + 250 * MS), GATE_PASS);
    assert_int_equal(word(0), START + 350 * MS);
    assert_int_equal(word(1), START + 750 * MS);
    assert_counters(0, 3, 1, 0, 0);
    assert_counters(1, 3, 0, 1, 0);
}

/*
 * A command that one limit refuses now is not delayed by another limit. The gate refuses at once,
 * returns the longest wait and charges no limit.
 */
static void what_is_refused_is_not_delayed(void **state)
{
    (void)state;
    static const struct {
        const char *what, *expression;
        enum gate gate;
    } refusals[] = {
        {"write", "1/h", GATE_REFUSE},
        {"write", "1/h over close", GATE_CLOSE},
        {"cost", "3/h", GATE_REFUSE},
        {"inflight", "1", GATE_REFUSE},
        {"bytes-out", "1/h", GATE_REFUSE},
        {"bytes-in", "1/h over delay 1s", GATE_REFUSE},
        {"cmd.set", "deny", GATE_DENY},
        {"cmd.set", "1/h over delay 1s", GATE_REFUSE},
        {"cmd.set", "1/h per policy", GATE_REFUSE},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        bool is_denied = refusals[i].gate == GATE_DENY;
        tear_down(NULL);
        set_up(NULL);
        limit("all", "10/s over delay 1s");
        limit(refusals[i].what, refusals[i].expression);
        open_gate();
        assert_int_equal(ask("set", 3, START), is_denied ? GATE_DENY : GATE_PASS);
        gate_owe_bytes(&target, UNIT_BYTES_OUT, 1, 0, START, limit_counters);
        gate_owe_bytes(&target, UNIT_BYTES_IN, 1, 0, START, limit_counters);
        /* a command waits in the queue where the queue may delay */
        (void)ask("get", 1, START + MS);
        uint64_t all = word(0), other = word(1), refused = atomic_load(&counters(1)->refused);
        for (int k = 0; k < 2; k++) {
            struct gate_request wish = ask_of("set", 3, START + 2 * MS);
            wish.is_dry = k == 0; /* LIMIT EXPLAIN decides without a charge */
            assert_int_equal(gate_ask(&target, &wish, limit_counters, &verdict), refusals[i].gate);
            assert_ptr_equal(verdict.limit, &policy->limits[1]);
            assert_int_equal(word(0), all);
            assert_int_equal(word(1), other);
        }
        assert_int_equal(atomic_load(&counters(1)->refused), refused + 1);
        struct gate_request wish = ask_of("set", 3, START + 2 * MS);
        assert_int_equal(gate_ask_refusal(&target, &wish, limit_counters, &verdict),
                         refusals[i].gate);
        assert_int_equal(atomic_load(&counters(1)->refused), refused + 2);
        assert_int_equal(word(0), all);
    }
}

static void the_longest_refusal_is_told(void **state)
{
    (void)state;
    limit("all", "1/h over delay 1s");
    limit("write", "1/m");
    limit("cmd.set", "1/d");
    open_gate();
    assert_int_equal(ask("del", 1, START), GATE_PASS);
    assert_int_equal(ask("del", 1, START), GATE_REFUSE);
    assert_string_equal(verdict.limit->label, "free/all");
    assert_int_equal(verdict.wait_ns, 3599 * S);
    assert_int_equal(ask("set", 1, START + 3600 * S), GATE_PASS);
    assert_int_equal(ask("set", 1, START + 3600 * S), GATE_REFUSE);
    assert_string_equal(verdict.limit->label, "free/cmd.set");
    assert_int_equal(verdict.wait_ns, 24 * 3600 * S);
}

/* A shadow limit never refuses, also not where another limit delays. */
static void shadows_refuse_no_place(void **state)
{
    (void)state;
    limit("all", "10/s over delay 1s");
    limit("write", "1/h over shadow");
    open_gate();
    assert_int_equal(ask("set", 1, START), GATE_PASS);
    struct gate_request wish = ask_of("set", 1, START);
    /* the command may have to wait */
    assert_int_equal(gate_ask_refusal(&target, &wish, limit_counters, &verdict), GATE_PASS);
    assert_counters(0, 1, 0, 0, 0);
    assert_int_equal(ask("set", 1, START), GATE_WAIT);
    assert_counters(1, 1, 0, 0, 0); /* counted at departure */
    assert_int_equal(depart("set", 0, START, START + 100 * MS), GATE_PASS);
    assert_true(verdict.is_shadowed);
    assert_counters(1, 1, 0, 0, 1);
}

/* The longest queue gives the position. The other queues count the command at its departure. */
static void several_delays(void **state)
{
    (void)state;
    limit("all", "10/s over delay 1s");
    limit("write", "2/s over delay 600ms");
    open_gate();
    assert_int_equal(ask("set", 1, START), GATE_PASS);
    assert_int_equal(ask("set", 1, START), GATE_WAIT);
    assert_string_equal(verdict.limit->label, "free/write");
    assert_int_equal(verdict.wait_ns, 500 * MS);
    assert_int_equal(word(0), START + 100 * MS);
    assert_int_equal(word(1), START + 1000 * MS);
    assert_int_equal(ask("set", 1, START), GATE_REFUSE);
    assert_string_equal(verdict.limit->label, "free/write");
    assert_int_equal(verdict.wait_ns, 400 * MS);
    assert_int_equal(word(0), START + 100 * MS);
    assert_int_equal(word(1), START + 1000 * MS);
    assert_int_equal(ask("get", 1, START), GATE_WAIT);
    assert_int_equal(verdict.wait_ns, 100 * MS);
    assert_int_equal(depart("get", 0, START, START + 100 * MS), GATE_PASS);
    assert_int_equal(depart("set", 1, START, START + 500 * MS), GATE_PASS);
    assert_int_equal(word(0), START + 600 * MS);
    assert_int_equal(word(1), START + 1000 * MS);
    assert_counters(0, 3, 1, 0, 0);
    assert_counters(1, 2, 1, 1, 0);
}

struct waiting {
    uint64_t headed_ns, due_ns;
    size_t command;
    uint32_t waited_for;
    struct queue_positions positions;
};

/* A delaying limit lets a command depart up to DEPARTURE_SLACK_NS earlier than its rate says. */
static bool obeys(struct admitted *list, size_t n, const struct limit *limit)
{
    const struct rate *rate = &limit->rate;
    __int128 at_once = (__int128)rate->burst * rate->period_ns;
    __int128 slack = (__int128)rate->period_ns + (__int128)rate->count * (DEPARTURE_SLACK_NS + 1);
    return law_holds_with(list, n, rate,
                          limit->action == OVER_DELAY && slack > at_once ? slack : at_once);
}

/* Departures from overlapping queues obey each of the limits. */
static void departures_obey_every_queue(void **state)
{
    (void)state;
    /* classes: string; string and write; write */
    static const char *const names[] = {"get", "set", "del"};
    enum { MOST = 3000 };
    for (uint64_t round = 1; round <= 20; round++) {
        static struct waiting queue[200];
        static struct admitted lists[3][MOST];
        size_t n_queue = 0, n[3] = {0};
        uint64_t seed = round, now_ns = START, next_ns = START, waits = 0;
        char string[100], write[100];
        tear_down(NULL);
        set_up(NULL);
        snprintf(string, sizeof string, "%u/s burst %u over delay 2s",
                 5 + (unsigned)dice_below(&seed, 50), 1 + (unsigned)dice_below(&seed, 5));
        snprintf(write, sizeof write, "%u/s burst %u over delay 3s",
                 5 + (unsigned)dice_below(&seed, 50), 1 + (unsigned)dice_below(&seed, 5));
        limit("@string", string);
        limit("write", write);
        limit("all", "70/s burst 9");
        open_gate();
        for (int i = 0; i < 3000; i++) {
            size_t first = n_queue;
            for (size_t k = 0; k < n_queue; k++)
                if (first == n_queue || queue[k].due_ns < queue[first].due_ns)
                    first = k;
            struct waiting one = {
                .headed_ns = next_ns, .due_ns = next_ns, .command = dice_below(&seed, 3)};
            if (first < n_queue && queue[first].due_ns <= next_ns) {
                one = queue[first];
                queue[first] = queue[--n_queue];
            } else {
                next_ns += dice_below(&seed, 30 * MS);
            }
            now_ns = one.due_ns;
            struct gate_request wish = ask_of(names[one.command], 1, now_ns);
            wish.headed_ns = one.headed_ns;
            wish.waited_for = one.waited_for;
            wish.positions = one.waited_for != 0 ? &one.positions : NULL;
            wish.may_wait = n_queue < sizeof queue / sizeof queue[0];
            enum gate gate = gate_ask(&target, &wish, limit_counters, &verdict);
            if (gate == GATE_WAIT) {
                waits++;
                one.due_ns = now_ns + (uint64_t)verdict.wait_ns;
                one.waited_for = 1U + verdict.limit->id;
                one.positions = verdict.positions;
                queue[n_queue++] = one;
            }
            if (gate != GATE_PASS)
                continue;
            if (one.command < 2)
                lists[0][n[0]++] = (struct admitted){now_ns, 1};
            if (one.command > 0)
                lists[1][n[1]++] = (struct admitted){now_ns, 1};
            lists[2][n[2]++] = (struct admitted){now_ns, 1};
        }
        assert_true(waits > 50);
        for (size_t k = 0; k < 3; k++)
            if (!obeys(lists[k], n[k], &policy->limits[k]))
                fail_msg("round %u: %s", (unsigned)round, policy->limits[k].label);
    }
}

/* ---- timers that fire late ---- */

/* The gate's decision when the timer for the position of `positions` with limit `index` fires. */
static enum gate ring(const struct queue_positions *positions, const char *command, size_t index,
                      uint64_t now_ns)
{
    struct gate_request wish = ask_of(command, 1, now_ns);
    wish.headed_ns = START;
    wish.waited_for = 1U + policy->limits[index].id;
    wish.positions = positions;
    return gate_ask(&target, &wish, limit_counters, &verdict);
}

/*
 * Commands with a due time that passed unnoticed depart one by one from then on. All commands
 * behind them move back as far.
 */
static void who_is_late_moves_those_behind(void **state)
{
    (void)state;
    struct queue_positions all_positions[6];
    limit("all", "100/s over delay 120ms");
    open_gate();
    assert_int_equal(ask("get", 1, START), GATE_PASS);
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(ask("get", 1, START), GATE_WAIT);
        all_positions[i] = verdict.positions;
    }
    /* counts as 2 ms late */
    assert_int_equal(ring(&all_positions[0], "get", 0, START + 90 * MS), GATE_PASS);
    assert_int_equal(word(0), START + 148 * MS);
    for (size_t i = 1; i < 3; i++) {
        assert_int_equal(ring(&all_positions[i], "get", 0, START + 90 * MS), GATE_WAIT);
        assert_int_equal(verdict.wait_ns, i * 10 * MS - 2 * MS);
        assert_int_equal(verdict.positions.kept[0].at.due_ns,
                         all_positions[i].kept[0].at.due_ns + 78 * MS);
        all_positions[i] = verdict.positions;
    }
    /* longer than the maximum delay, since the queue moved */
    assert_int_equal(ring(&all_positions[4], "get", 0, START + 90 * MS), GATE_WAIT);
    assert_int_equal(verdict.wait_ns, 38 * MS);
    /* waits behind the commands with earlier timers */
    assert_int_equal(ring(&all_positions[4], "get", 0, START + 200 * MS), GATE_WAIT);
    assert_int_equal(verdict.wait_ns, -(int64_t)(72 * MS));
    assert_int_equal(ask("get", 1, START + 90 * MS), GATE_WAIT);
    assert_int_equal(verdict.wait_ns, 58 * MS);
    gate_leave(&verdict.positions, limit_counters);
    assert_int_equal(word(0), START + 148 * MS);
    gate_leave(&all_positions[5],
               limit_counters); /* the last position that was moved gives back its charge */
    assert_int_equal(word(0), START + 138 * MS);
    assert_int_equal(ring(&all_positions[1], "get", 0, START + 98 * MS), GATE_PASS);
    assert_int_equal(ring(&all_positions[2], "get", 0, START + 108 * MS + 1), GATE_PASS);
    assert_int_equal(word(0), START + 138 * MS);
    assert_counters(0, 6, 7, 0, 0);
}

/* A burst absorbs late timers up to the time that the burst takes. */
static void a_burst_bears_lateness(void **state)
{
    (void)state;
    struct queue_positions all_positions[7];
    limit("all", "100/s burst 5 over delay 1s");
    open_gate();
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(ask("get", 1, START), GATE_PASS);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(ask("get", 1, START), GATE_WAIT);
        all_positions[i] = verdict.positions;
    }
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(ring(&all_positions[i], "get", 0, START + 50 * MS), GATE_PASS);
    assert_int_equal(word(0), START + 120 * MS); /* no position has moved */
    assert_int_equal(ring(&all_positions[5], "get", 0, START + 60 * MS), GATE_PASS);
    assert_int_equal(ring(&all_positions[6], "get", 0, START + 70 * MS - 1), GATE_WAIT);
    assert_int_equal(verdict.wait_ns, 1);
}

struct late {
    struct waiting waiting;
    struct queue_positions positions;
    uint64_t rings_ns;
};

#define LATES 64

/*
 * Lets LATES clients send commands without a pause, with timers up to lateness_ns late. Stores the
 * departures in `gone` and returns their number.
 */
static size_t go_late(uint64_t *seed, unsigned cost_most, uint64_t lateness_ns,
                      struct admitted *gone, size_t most)
{
    static struct late lates[LATES];
    uint64_t now_ns = START, behind_ns = START; /* until behind_ns one worker does nothing */
    size_t n = 0;
    for (size_t i = 0; i < LATES; i++)
        lates[i] = (struct late){.waiting = {.headed_ns = START}, .rings_ns = START + i};
    while (n < most) {
        size_t first = 0;
        for (size_t k = 1; k < LATES; k++)
            if (lates[k].rings_ns < lates[first].rings_ns)
                first = k;
        struct late *late = &lates[first];
        now_ns = late->rings_ns > now_ns ? late->rings_ns : now_ns;
        if (first % 2 == 0 && now_ns < behind_ns) {
            late->rings_ns = behind_ns;
            continue;
        }
        if (lateness_ns > 2 * MS && dice_below(seed, 1000) == 0)
            behind_ns = now_ns + dice_below(seed, 300 * MS);
        struct gate_request wish = ask_of("get", 1 + late->waiting.command, now_ns);
        wish.headed_ns = late->waiting.headed_ns;
        wish.waited_for = late->waiting.waited_for;
        wish.positions = late->waiting.waited_for != 0 ? &late->positions : NULL;
        enum gate gate = gate_ask(&target, &wish, limit_counters, &verdict);
        assert_true(gate == GATE_PASS || gate == GATE_WAIT);
        if (gate == GATE_WAIT) {
            late->positions = verdict.positions;
            late->waiting.waited_for = 1U + verdict.limit->id;
            late->rings_ns = now_ns + (verdict.wait_ns > 0 ? (uint64_t)verdict.wait_ns : 0) +
                             dice_below(seed, lateness_ns + 1);
        } else {
            gone[n++] = (struct admitted){now_ns, wish.amount[UNIT_COST]};
            late->waiting =
                (struct waiting){.headed_ns = now_ns, .command = dice_below(seed, cost_most)};
            late->rings_ns = now_ns;
        }
    }
    return n;
}

/*
 * Late timers on several workers never let more pass than the limit allows. With timers at most 2
 * ms late, at least 98 % of the rate is used.
 */
static void late_departures_obey_the_law(void **state)
{
    (void)state;
    static const struct {
        const char *what, *expression;
        unsigned cost_most;
    } lines[] = {
        {"all", "24000/s burst 5 over delay 1d", 1},
        {"all", "1000/s over delay 1d", 1},
        {"all", "100/s burst 3 over delay 1d", 1},
        {"all", "300/s burst 50 over delay 1d", 1},
        {"cost", "900/s burst 4 over delay 1d", 9},
        {"cost", "700m/s burst 300 over delay 1d", 100000},
        {"all", "17/s over delay 1d", 1},
    };
    enum { MOST = 3000 };
    static struct admitted gone[MOST];
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        for (unsigned k = 0; k < 4; k++) {
            static const uint64_t latenesses[] = {0, 2 * MS, 5 * MS, 200 * MS};
            uint64_t seed = 4 * i + k + 1, spent = 0;
            tear_down(NULL);
            set_up(NULL);
            limit(lines[i].what, lines[i].expression);
            open_gate();
            size_t n = go_late(&seed, lines[i].cost_most, latenesses[k], gone, MOST);
            const struct rate *rate = &policy->limits[0].rate;
            uint64_t most = lines[i].cost_most;
            __int128 slack =
                (__int128)most * rate->period_ns + (__int128)rate->count * (DEPARTURE_SLACK_NS + 1);
            __int128 at_once = (__int128)rate->burst * rate->period_ns;
            if (!law_holds_with(gone, n, rate, slack > at_once ? slack : at_once))
                fail_msg("%s = %s, late by %u ms", lines[i].what, lines[i].expression,
                         (unsigned)(latenesses[k] / MS));
            for (size_t j = 0; j < n; j++)
                spent += gone[j].cost;
            uint64_t took_ns = gone[n - 1].at_ns - gone[0].at_ns + 1;
            if (k < 2 && (double)spent * (double)rate->period_ns <
                             0.98 * (double)rate->count * (double)took_ns)
                fail_msg("%s: %g of the rate", lines[i].expression,
                         (double)spent * (double)rate->period_ns /
                             ((double)rate->count * (double)took_ns));
        }
}

/*
 * Queues five commands. words[k] is the funnel's word before the command with the position turns[k]
 * was queued. Returns the number of commands that passed before.
 */
static uint64_t five_wait(const char *what, const char *expression,
                          struct queue_positions all_positions[5], uint64_t words[6])
{
    tear_down(NULL);
    set_up(NULL);
    limit(what, expression);
    limit("read", "100/s");
    open_gate();
    while (ask("get", 1, START) == GATE_PASS)
        continue;
    gate_leave(&verdict.positions, limit_counters);
    uint64_t passed = atomic_load(&counters(0)->admitted);
    for (size_t k = 0; k < 5; k++) {
        words[k] = word(0);
        assert_int_equal(ask("get", k < 2 ? 2 : 1, START + k), GATE_WAIT);
        all_positions[k] = verdict.positions;
    }
    words[5] = word(0);
    return passed;
}

/*
 * A command that leaves the queue gives its charge back. While commands wait behind its position,
 * the charge stays. When no command waits, only departed commands are charged.
 */
static void a_command_that_leaves_gives_its_place_back(void **state)
{
    (void)state;
    static const char *const lines[][2] = {{"all", "10/s over delay 1s"},
                                           {"cost", "10/s over delay 1s"},
                                           {"cost", "700m/s burst 3 over delay 1s"}};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct queue_positions all_positions[5];
        uint64_t words[6];
        (void)five_wait(lines[i][0], lines[i][1], all_positions, words);
        for (size_t k = 5; k-- > 0;) {
            gate_leave(&all_positions[k], limit_counters);
            assert_int_equal(word(0), words[k]);
        }
        uint64_t passed = five_wait(lines[i][0], lines[i][1], all_positions, words);
        for (size_t k = 0; k < 4; k++) {
            gate_leave(&all_positions[k], limit_counters);
            assert_int_equal(word(0), words[5]);
        }
        gate_leave(&all_positions[4], limit_counters);
        assert_int_equal(word(0), words[0]);
        assert_int_equal(atomic_load(&counters(0)->admitted), passed);
    }
}

/* A command that leaves an empty queue gives back no more than its charge. */
static void who_leaves_an_empty_queue(void **state)
{
    (void)state;
    limit("cost", "10/s burst 2 over delay 10s");
    open_gate();
    assert_int_equal(ask("get", 7, START), GATE_WAIT);
    assert_int_equal(word(0), START + 700 * MS);
    gate_leave(&verdict.positions, limit_counters);
    assert_int_equal(word(0), START);
    assert_counters(0, 0, 1, 0, 0);
}

static void places_are_of_what_is_charged(void **state)
{
    (void)state;
    limit("bytes-out", "1000/s burst 1000 over delay 9s");
    limit("all", "1/s over delay 5s");
    open_gate();
    assert_int_equal(ask("get", 1, START), GATE_PASS);
    gate_owe_bytes(&target, UNIT_BYTES_OUT, 4000, 0, START, limit_counters);
    assert_int_equal(ask("get", 1, START), GATE_WAIT); /* waits for bytes-out */
    assert_int_equal(verdict.positions.n, 0);
    assert_int_equal(ask("get", 1, START + 4 * S), GATE_PASS);
    struct gate_request wish = ask_of("get", 1, START + 4 * S);
    wish.is_dry = true;
    assert_int_equal(gate_ask(&target, &wish, limit_counters, &verdict), GATE_WAIT);
    assert_int_equal(verdict.positions.n, 0);
    assert_int_equal(ask("get", 1, START + 4 * S), GATE_WAIT);
    assert_ptr_equal(verdict.positions.kept[0].holder, target.holders[PER_SUBJECT]);
}

static void calls_are_in_flight_when_they_depart(void **state)
{
    (void)state;
    limit("all", "10/s over delay 1s");
    limit("inflight", "1");
    open_gate();
    assert_int_equal(ask("get", 1, START), GATE_PASS);
    assert_int_equal(verdict.counted, COUNTED);
    assert_int_equal(ask("get", 1, START), GATE_REFUSE);
    gate_calls_end(&target, 1, 0);
    assert_int_equal(ask("get", 1, START), GATE_WAIT);
    assert_int_equal(verdict.counted, 0);
    assert_int_equal(word(1), 0);
    assert_int_equal(depart("get", 0, START, START + 100 * MS), GATE_PASS);
    assert_int_equal(verdict.counted, COUNTED);
    assert_int_equal(word(1), 1);
    assert_int_equal(ask("get", 1, START + S), GATE_REFUSE);
    assert_int_equal(verdict.wait_ns, 0);
}

static void bytes_delay_what_follows(void **state)
{
    (void)state;
    limit("bytes-out", "1000/s burst 1000 over delay 2s");
    open_gate();
    assert_int_equal(ask("get", 1, START), GATE_PASS);
    gate_owe_bytes(&target, UNIT_BYTES_OUT, 2500, 0, START, limit_counters);
    assert_int_equal(ask("get", 1, START), GATE_WAIT);
    assert_int_equal(verdict.wait_ns, 1501 * MS); /* until there is room for one byte */
    assert_int_equal(word(0), START + 2500 * MS); /* bytes that are not known yet are not charged */
    assert_int_equal(ask("get", 1, START), GATE_WAIT);
    assert_int_equal(verdict.wait_ns, 1501 * MS);
    gate_owe_bytes(&target, UNIT_BYTES_OUT, 1000, 0, START, limit_counters);
    assert_int_equal(ask("get", 1, START), GATE_REFUSE);
    assert_int_equal(verdict.wait_ns, 501 * MS);
    assert_counters(0, 3500, 2, 1, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(evenly_spaced),
        TEST(a_burst_goes_at_once),
        TEST(time_counts_from_the_head),
        TEST(departures_equal_the_queue),
        TEST(costs_beyond_the_burst_wait_longer),
        TEST(monstrous_costs),
        TEST(who_cannot_be_held_is_refused),
        TEST(control_waits_and_is_never_refused),
        TEST(the_others_are_asked_at_departure),
        TEST(what_is_refused_is_not_delayed),
        TEST(the_longest_refusal_is_told),
        TEST(shadows_refuse_no_place),
        TEST(several_delays),
        TEST(departures_obey_every_queue),
        TEST(who_is_late_moves_those_behind),
        TEST(a_burst_bears_lateness),
        TEST(late_departures_obey_the_law),
        TEST(a_command_that_leaves_gives_its_place_back),
        TEST(who_leaves_an_empty_queue),
        TEST(places_are_of_what_is_charged),
        TEST(calls_are_in_flight_when_they_depart),
        TEST(bytes_delay_what_follows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
