/*
 * Tests of debts across changes of a rate: a debt stays the same number of units, rounded up, and
 * is capped at the new burst.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dice.h"
#include "gate_kit.h"
#include "limit/rate_table.h"

typedef unsigned __int128 wide;

#define HOUR (3600 * S)
#define MINUTE (60 * S)

/* ---- the scaling ---- */

/* Multiplies a * b into out[0] (lowest) to out[3]. */
static void multiply(uint64_t a, wide b, uint64_t out[3])
{
    wide low = (wide)a * (uint64_t)b, high = (wide)a * (uint64_t)(b >> 64) + (uint64_t)(low >> 64);
    out[0] = (uint64_t)low;
    out[1] = (uint64_t)high;
    out[2] = (uint64_t)(high >> 64);
}

static int compare(const uint64_t a[3], const uint64_t b[3])
{
    for (int i = 2; i >= 0; i--)
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* A random number of any size, small numbers and powers of two among them. */
static uint64_t any(uint64_t *seed, unsigned bits)
{
    uint64_t shift = 63 - dice_below(seed, bits - 1);
    return 1 + (dice(seed) >> shift);
}

/* `scaled` is the least whole number not below debt * ratio, checked with numbers of 192 bits. */
static void scaling_is_exact_and_rounds_up(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 200000; i++) {
        struct unit_time from = {any(&seed, 60), any(&seed, 60)},
                         to = {any(&seed, 60), any(&seed, 60)};
        uint64_t debt_ns = any(&seed, 61), scaled_ns = debt_at(debt_ns, from, to);
        uint64_t exact[3], reached[3], before[3];
        multiply(debt_ns, (wide)from.units * to.ns, exact);
        multiply(scaled_ns, (wide)from.ns * to.units, reached);
        multiply(scaled_ns - 1, (wide)from.ns * to.units, before);
        assert_true(scaled_ns > 0 && scaled_ns <= RATE_LONGEST_NS);
        assert_true(compare(before, exact) < 0);
        assert_true(scaled_ns == RATE_LONGEST_NS || compare(reached, exact) >= 0);
    }
    assert_int_equal(debt_at(0, (struct unit_time){3, 1}, (struct unit_time){1, 7}), 0);
}

/*
 * Alternating between odd rates adds less than 1 ns of the rate's time for each change, while time
 * stands still and while time passes.
 */
static void a_thousand_changes_add_next_to_nothing(void **state)
{
    (void)state;
    static const char *const rates[] = {"7/h burst 7", "11/h burst 11", "3/h burst 7",
                                        "1000/s burst 7", "13/m burst 9"};
    for (size_t k = 1; k < sizeof rates / sizeof rates[0]; k++) {
        set_up(NULL);
        limit("write", rates[0]);
        open_gate();
        for (int i = 0; i < 5; i++)
            assert_true(pass("set", START));
        const struct policy *slow = policy;
        uint64_t before_ns = word(0);
        new_rules();
        limit("write", rates[k]);
        open_gate();
        const struct policy *fast = policy;
        struct rate_table *order[2] = {slow->rates[PER_SUBJECT], fast->rates[PER_SUBJECT]};
        for (int i = 0; i < 1000; i++) {
            subject_convert(target.holders[PER_SUBJECT], order[(i + 1) % 2], START);
            uint64_t units = (word(0) - START) / order[(i + 1) % 2]->at[0].rate.interval_ns;
            assert_in_range(units, 4, 5); /* no debt is lost: 5, but for rounded intervals */
        }
        uint64_t ratio = slow->limits[0].rate.interval_ns / fast->limits[0].rate.interval_ns + 1;
        assert_in_range(word(0), before_ns, before_ns + 500 * (ratio + 1));
        if (slow->limits[0].rate.interval_ns % fast->limits[0].rate.interval_ns == 0)
            assert_int_equal(word(0), before_ns);
        tear_down(NULL);
    }
}

/* ---- the gate ---- */

/*
 * An override of 3/h is used up within four seconds. Then the subject is back at 1000/s, and owes
 * three milliseconds.
 */
static void a_short_override_locks_nobody_out(void **state)
{
    (void)state;
    set_up(NULL);
    limit("write", "1000/s");
    open_gate();
    assert_true(pass("set", START));
    new_rules();
    limit("write", "3/h burst 3");
    open_gate();
    uint64_t passed = 0;
    for (int i = 0; i < 10; i++)
        passed += pass("set", START + 1 + (uint64_t)i);
    assert_int_equal(passed, 2); /* one write was charged before, at 1000/s */
    new_rules();
    limit("write", "1000/s");
    open_gate();
    for (int i = 0; i < 997; i++)
        assert_true(pass("set", START + 4 * S));
    assert_false(pass("set", START + 4 * S));
    assert_in_range(word(0), START + 5 * S - 4 * MS / 1000, START + 5 * S);
    tear_down(NULL);
}

/* From a high rate to a low rate: nothing passes twice, and the debt is at most the new burst. */
static void a_lower_rate_is_owed_its_burst_at_most(void **state)
{
    (void)state;
    set_up(NULL);
    limit("write", "1000/s");
    open_gate();
    for (int i = 0; i < 1000; i++)
        assert_true(pass("set", START));
    new_rules();
    limit("write", "3/h");
    open_gate();
    assert_false(pass("set", START));
    assert_int_equal(word(0), START + HOUR);
    assert_int_equal(verdict.wait_ns, HOUR / 3);
    tear_down(NULL);
}

/* A debt for bytes in flight may exceed the new burst. */
static void bytes_are_owed_beyond_the_burst(void **state)
{
    (void)state;
    set_up(NULL);
    limit("bytes-in", "1000/s burst 1000");
    open_gate();
    assert_true(pass("set", START));
    gate_owe_bytes(&target, UNIT_BYTES_IN, 5000, 0, START, limit_counters);
    assert_int_equal(word(0), START + 5 * S);
    new_rules();
    limit("bytes-in", "10/s burst 10");
    open_gate();
    gate_settle(&target, START);
    assert_int_equal(word(0), START + 400 * S + S); /* 4000 bytes were in flight */
    new_rules();
    limit("bytes-in", "7000/s burst 100000");
    open_gate();
    gate_settle(&target, START + S);
    assert_int_equal(word(0), START + S + 4000 * (S / 1000) / 7 + 1);
    tear_down(NULL);
}

/* Rates of less than 100 ns a unit count whole units. */
static void fine_rates_keep_their_units(void **state)
{
    (void)state;
    set_up(NULL);
    limit("write", "30m/s burst 3000");
    open_gate();
    for (int i = 0; i < 600; i++)
        assert_true(pass("set", START));
    new_rules();
    limit("write", "10/s burst 1000");
    open_gate();
    gate_settle(&target, START);
    assert_in_range(word(0), START + 60 * S, START + 60 * S + S / 10);
    new_rules();
    limit("write", "30m/s burst 3000");
    open_gate();
    gate_settle(&target, START);
    struct standing standing = gate_standing(&target, 0, START);
    assert_in_range(standing.remaining, 2398, 2400);
    tear_down(NULL);
}

/* A thread that still has the old rules decides by the subject's new rates. */
static void old_rules_charge_at_the_new_rate(void **state)
{
    (void)state;
    static const char *const beside[] = {NULL, "all"};
    for (size_t i = 0; i < 2; i++) {
        set_up(NULL);
        limit("write", "1000/s");
        if (beside[i] != NULL)
            limit(beside[i], "1g/s");
        open_gate();
        const struct charge_target old = target;
        assert_true(pass("set", START));
        new_rules();
        limit("write", "4/h burst 4");
        if (beside[i] != NULL)
            limit(beside[i], "1g/s");
        open_gate();
        assert_true(pass("set", START));
        assert_int_equal(word(0), START + HOUR / 2);
        const struct charge_target now = target;
        target = old;
        assert_true(pass("set", START));
        assert_int_equal(word(0), START + HOUR / 4 * 3);
        struct verdict refusal = {0};
        assert_int_equal(gate_ask_plainly(old.policy, old.holders[PER_SUBJECT],
                                          kit_command(table, "set"), 5, START, limit_counters,
                                          &refusal),
                         1);
        assert_int_equal(refusal.wait_ns, HOUR / 4);
        assert_int_equal(gate_standing(&old, 0, START).reset_after_ns, HOUR);
        target = now;
        tear_down(NULL);
    }
}

/* ---- queues ---- */

enum { WAITERS = 5 };

/*
 * Queued commands keep their order, and depart one by one at each new rate: faster, slower, faster.
 */
static void a_queue_is_timed_anew(void **state)
{
    (void)state;
    static const char *const faster[] = {"100/s over delay 10s", "1/h over delay 10s",
                                         "20/s over delay 10s"};
    set_up(NULL);
    limit("write", "10/s over delay 10s");
    open_gate();
    assert_true(pass("set", START));
    struct queue_positions all_positions[WAITERS];
    for (uint64_t i = 0; i < WAITERS; i++) {
        assert_int_equal(ask("set", 1, START), GATE_WAIT);
        assert_int_equal(verdict.wait_ns, (i + 1) * 100 * MS);
        all_positions[i] = verdict.positions;
    }
    for (size_t k = 0; k < sizeof faster / sizeof faster[0]; k++) {
        new_rules();
        limit("write", faster[k]);
        open_gate();
        gate_settle(&target, START);
        uint64_t interval_ns = policy->limits[0].rate.interval_ns;
        for (int i = 0; i < WAITERS; i++)
            if (k != 1 || i % 2 == 0) /* the other positions miss a change */
                assert_int_equal(gate_positions_due(&all_positions[i]),
                                 START + (uint64_t)(i + 1) * interval_ns);
        assert_int_equal(word(0), START + (WAITERS + 1) * interval_ns);
    }
    uint64_t left = 0;
    for (int i = 0; i < WAITERS; i++) {
        uint64_t due_ns = gate_positions_due(&all_positions[i]);
        struct gate_request wish = ask_of("set", 1, due_ns);
        wish.headed_ns = START;
        wish.positions = &all_positions[i];
        wish.waited_for = 1U + policy->limits[0].id;
        left += gate_ask(&target, &wish, limit_counters, &verdict) == GATE_PASS;
    }
    assert_int_equal(left, WAITERS);
    assert_counters(0, WAITERS + 1, WAITERS, 0, 0);

    new_rules(); /* no command waits: the debt is at most the burst */
    limit("write", "1/h over delay 10s");
    open_gate();
    gate_settle(&target, START);
    assert_int_equal(word(0), START + HOUR);
    tear_down(NULL);
}

/* Abandoned positions do not remain as a debt, which would last for hours at a lower rate. */
static void places_given_up_are_cut(void **state)
{
    (void)state;
    set_up(NULL);
    limit("write", "1000/s over delay 10s");
    open_gate();
    assert_true(pass("set", START));
    static struct queue_positions all_positions[1000];
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(ask("set", 1, START), GATE_WAIT);
        all_positions[i] = verdict.positions;
    }
    for (int i = 0; i < 999; i++)
        gate_leave(&all_positions[i], limit_counters);
    assert_int_equal(word(0), START + S + MS);
    new_rules();
    limit("write", "1/h over delay 10s");
    open_gate();
    gate_settle(&target, START);
    assert_int_equal(word(0), START + 2 * HOUR); /* a burst, and the waiting command */
    assert_int_equal(gate_positions_due(&all_positions[999]), START + HOUR);
    gate_forget_positions(&all_positions[999]);
    tear_down(NULL);
}

/* The gate's decision for a waiting command under the current rules. */
static enum gate ask_again(const struct queue_positions *positions, uint64_t now_ns)
{
    struct gate_request wish = ask_of("set", 1, now_ns);
    wish.headed_ns = START;
    wish.waited_for = 1U + policy->limits[0].id;
    wish.positions = positions;
    return gate_ask(&target, &wish, limit_counters, &verdict);
}

/* Two writes have departed at 3/m, and five wait. */
static void wait_in_a_queue(struct queue_positions all_positions[WAITERS])
{
    set_up(NULL);
    limit("write", "3/m burst 2 over delay 20m");
    open_gate();
    assert_true(pass("set", START));
    assert_true(pass("set", START));
    for (int i = 0; i < WAITERS; i++) {
        assert_int_equal(ask("set", 1, START), GATE_WAIT);
        all_positions[i] = verdict.positions;
    }
    assert_int_equal(word(0), START + 7 * MINUTE / 3);
}

/*
 * A limit that delayed refuses from now on. The subject owes the departed commands. Waiting
 * commands give nothing back, since their positions are no longer charged.
 */
static void a_queue_that_ends_leaves_what_has_left(void **state)
{
    (void)state;
    static const struct {
        const char *expression;
        uint64_t owed_ns; /* at the end */
        bool is_shadow;
    } next[] = {{"3/m burst 2", 2 * MINUTE / 3, false},
                {"3/m burst 9", 2 * MINUTE / 3, false},
                {"3/m burst 1", MINUTE / 3, false},
                {"3/m burst 2 over close", 2 * MINUTE / 3, false},
                {"3/m burst 2 over shadow", 2 * MINUTE / 3, false},
                {"deny", 2 * MINUTE / 3, false},
                {"3000/m burst 2", 2 * MINUTE / 3000, false},
                {"3/m burst 2 over delay 20m", 2 * MINUTE / 3, true}};
    for (size_t k = 0; k < sizeof next / sizeof next[0]; k++) {
        struct queue_positions all_positions[WAITERS];
        wait_in_a_queue(all_positions);
        new_rules();
        policies_set_shadow(policies, next[k].is_shadow);
        limit("write", next[k].expression);
        open_gate();
        gate_settle(&target, START);
        assert_int_equal(word(0), START + next[k].owed_ns);
        for (int i = 0; i < WAITERS; i++) {
            gate_leave(&all_positions[i], limit_counters);
            assert_int_equal(word(0), START + next[k].owed_ns);
        }
        assert_int_equal(atomic_load(&counters(0)->admitted), 2);
        tear_down(NULL);
    }
}

/*
 * Waiting commands are decided again after the queue has ended. No more pass than the burst allows.
 */
static void a_queue_that_ends_lets_nothing_pass_twice(void **state)
{
    (void)state;
    struct queue_positions all_positions[WAITERS];
    wait_in_a_queue(all_positions);
    new_rules();
    limit("write", "3/m burst 3");
    open_gate();
    int passed = 0;
    for (int i = 0; i < WAITERS; i++) {
        passed += ask_again(NULL, START) == GATE_PASS;
        gate_leave(&all_positions[i], limit_counters);
        passed += pass("set", START);
    }
    assert_int_equal(passed, 1); /* the burst has grown by one */
    assert_int_equal(word(0), START + MINUTE);
    tear_down(NULL);
}

/*
 * A queue ends and begins again before its waiting commands are decided. The commands depart at the
 * rate.
 */
static void a_queue_that_begins_again(void **state)
{
    (void)state;
    struct queue_positions all_positions[WAITERS];
    wait_in_a_queue(all_positions);
    new_rules();
    limit("write", "3/m burst 3");
    open_gate();
    assert_true(pass("set", START)); /* the burst has grown by one */
    assert_false(pass("set", START));
    new_rules();
    limit("write", "3/m burst 3 over delay 20m");
    open_gate();
    gate_settle(&target, START);
    uint64_t now_ns = START, left = 0;
    for (int i = 0; i < WAITERS - 1; i++) {
        assert_int_equal(ask_again(&all_positions[i], now_ns), GATE_WAIT);
        all_positions[i] = verdict.positions;
        now_ns += (uint64_t)verdict.wait_ns;
        left += ask_again(&all_positions[i], now_ns) == GATE_PASS;
        assert_int_equal(now_ns, START + left * MINUTE / 3);
    }
    assert_int_equal(left, WAITERS - 1);
    uint64_t before = word(0);
    gate_leave(&all_positions[WAITERS - 1], limit_counters);
    assert_int_equal(word(0), before);
    tear_down(NULL);
}

/*
 * A worker with older rules gives no positions in a queue that has ended, and lets no command
 * depart.
 */
static void old_rules_wait_for_newer_ones(void **state)
{
    (void)state;
    struct queue_positions all_positions[WAITERS];
    wait_in_a_queue(all_positions);
    const struct charge_target old = target;
    new_rules();
    limit("write", "3/m burst 2");
    open_gate();
    gate_settle(&target, START);
    const struct charge_target now = target;
    target = old;
    uint64_t before = word(0);
    assert_int_equal(ask("set", 1, START), GATE_WAIT);
    assert_int_equal(verdict.positions.n, 0);
    assert_in_range(verdict.wait_ns, 1, 10 * MS);
    assert_int_equal(ask_again(&all_positions[0], START + MINUTE / 3), GATE_WAIT);
    assert_in_range(verdict.wait_ns, 1, 10 * MS);
    target = now;
    assert_int_equal(word(0), before);
    assert_true(pass("set", START + MINUTE / 3));
    assert_false(pass("set", START + MINUTE / 3));
    tear_down(NULL);
}

/*
 * Sends n writes of one connection in shadow mode, under the rules of `of`. Returns the
 * connection's virtual clock.
 */
static uint64_t write_virtually(const struct charge_target *of, int n, uint64_t clock_ns)
{
    for (int i = 0; i < n; i++) {
        struct gate_request wish = ask_of("set", 1, START);
        wish.virtual_ns = clock_ns;
        assert_int_equal(gate_ask(of, &wish, limit_counters, &verdict), GATE_PASS);
        clock_ns = verdict.virtual_ns != 0 ? verdict.virtual_ns : clock_ns;
    }
    return clock_ns;
}

/*
 * The positions that commands would have had in shadow mode are charged up to the burst by the next
 * rules.
 */
static void shadow_mode_leaves_the_burst_at_most(void **state)
{
    (void)state;
    static const struct {
        const char *write, *bytes;
        bool is_shadow;
    } next[] = {{"200/s burst 3 over delay 5s", "1000/s over delay 5s", false},
                {"200/s burst 3", "1000/s", false},
                {"200/s burst 3 over close", "1000/s", true},
                {"1000/s burst 5 over close", "1mb/s burst 2mb", true},
                {"1000/s burst 5 over delay 1s", "1000/s", false}};
    for (size_t k = 0; k < sizeof next / sizeof next[0]; k++)
        /* the worker with the old rules goes on charging */
        for (int is_old = 0; is_old < 2; is_old++) {
            set_up(NULL);
            limit("write", "200/s burst 3 over delay 5s");
            limit("all", "10000/s burst 5");
            limit("bytes-out", "1000/s over delay 5s");
            policies_set_shadow(policies, true);
            open_gate();
            uint64_t clock_ns = write_virtually(&target, 900, 0);
            gate_owe_bytes_then(&target, UNIT_BYTES_OUT, 1000, 0, START, clock_ns, limit_counters);
            assert_in_range(clock_ns, START + 4 * S, START + 6 * S);
            assert_in_range(word(0), START + 4 * S, START + 6 * S);
            assert_in_range(word(1), START + 4 * S, START + 6 * S);
            assert_in_range(word(2), START + 4 * S, START + 7 * S);
            const struct charge_target old = target;
            new_rules();
            policies_set_shadow(policies, next[k].is_shadow);
            limit("write", next[k].write);
            limit("all", "10000/s burst 5");
            limit("bytes-out", next[k].bytes);
            open_gate();
            gate_settle(&target, START);
            for (int i = 0; is_old && i < 5; i++) {
                clock_ns = write_virtually(&old, 30, clock_ns);
                gate_owe_bytes_then(&old, UNIT_BYTES_OUT, 1, 0, START, clock_ns, limit_counters);
            }
            for (unsigned i = 0; i < 3; i++)
                assert_in_range(word(i), START,
                                START + policy->limits[i].rate.burst_ns +
                                    (i == 2 && is_old ? 10 * MS : 0));
            tear_down(NULL);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shadow_mode_leaves_the_burst_at_most),
        cmocka_unit_test(a_queue_that_ends_leaves_what_has_left),
        cmocka_unit_test(a_queue_that_ends_lets_nothing_pass_twice),
        cmocka_unit_test(a_queue_that_begins_again),
        cmocka_unit_test(old_rules_wait_for_newer_ones),
        cmocka_unit_test(scaling_is_exact_and_rounds_up),
        cmocka_unit_test(a_thousand_changes_add_next_to_nothing),
        cmocka_unit_test(a_short_override_locks_nobody_out),
        cmocka_unit_test(a_lower_rate_is_owed_its_burst_at_most),
        cmocka_unit_test(bytes_are_owed_beyond_the_burst),
        cmocka_unit_test(fine_rates_keep_their_units),
        cmocka_unit_test(old_rules_charge_at_the_new_rate),
        cmocka_unit_test(a_queue_is_timed_anew),
        cmocka_unit_test(places_given_up_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
