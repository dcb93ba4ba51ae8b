/*
 * Tests of limits charged after the fact (bytes) and of limits on a current number (calls in
 * flight, connections).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "dice.h"
#include "gate_kit.h"

/* ---- bytes ---- */

static void owe(enum unit unit, uint64_t n, uint64_t now_ns)
{
    gate_owe_bytes(&target, unit, n, 0, now_ns, limit_counters);
}

static void debt_up_to_the_burst_passes(void **state)
{
    (void)state;
    limit("bytes-in", "1000/s burst 5000");
    open_gate();
    owe(UNIT_BYTES_IN, 4999, START);
    assert_true(pass("get", START));
    owe(UNIT_BYTES_OUT, 1000000, START); /* of another limit */
    assert_true(pass("get", START));
    owe(UNIT_BYTES_IN, 1, START);
    assert_int_equal(ask("get", 1, START), GATE_REFUSE);
    assert_string_equal(verdict.limit->label, "free/bytes-in");
    assert_int_equal(verdict.wait_ns, MS);
    assert_false(pass("get", START + MS - 1));
    assert_true(pass("get", START + MS));
    assert_true(pass("ping", START));

    /* The overshoot is paid back to the nanosecond. */
    owe(UNIT_BYTES_IN, 1000000, START + MS);
    assert_int_equal(ask("get", 1, START + MS), GATE_REFUSE);
    assert_int_equal(verdict.wait_ns, 1000 * S);
    assert_false(pass("get", START + MS + 1000 * S - 1));
    assert_true(pass("get", START + MS + 1000 * S));
    assert_counters(0, 1005000, 0, 4, 0);
}

static void rest_is_no_credit(void **state)
{
    (void)state;
    limit("bytes-in", "1000/s burst 2000");
    open_gate();
    owe(UNIT_BYTES_IN, 1, START);
    for (uint64_t now_ns = START + 1000 * S; now_ns < START + 1003 * S; now_ns += S) {
        owe(UNIT_BYTES_IN, 2000, now_ns);
        assert_false(pass("get", now_ns));
    }
}

/*
 * A client that retries after each returned wait gets the rate, with pieces of any size. Returns
 * the bytes admitted.
 */
static uint64_t stream(uint64_t piece, uint64_t for_ns)
{
    uint64_t now_ns = START, passed = 0;
    while (now_ns < START + for_ns) {
        if (ask("get", 1, now_ns) == GATE_PASS) {
            owe(UNIT_BYTES_OUT, piece, now_ns);
            passed += piece;
        } else {
            now_ns += (uint64_t)verdict.wait_ns;
        }
    }
    return passed;
}

static void rates_are_met(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        double per_s;
        uint64_t burst, piece, for_ns;
        double tolerance;
    } cases[] = {
        {"10mb/s", 10485760, 10485760, 100, 5 * S, 0.01},
        {"10mb/s", 10485760, 10485760, 65536, 5 * S, 0.01},
        {"10mb/s burst 4kb", 10485760, 4096, 1500, 5 * S, 0.01},
        {"10mb/s burst 1", 10485760, 1, 4000000, 20 * S, 0.03}, /* a piece takes 0.4 s */
        {"1gb/s", 1073741824, 1073741824, 16384, S, 0.001},
        {"1gb/s burst 64kb", 1073741824, 65536, 1500, S / 10, 0.001},
        {"9gb/s burst 1mb", 9663676416, 1048576, 65536, S / 4, 0.001},
        {"7/s burst 7", 7, 7, 1, 1000 * S, 0.001},
        {"1kb/m burst 1kb", 1024 / 60.0, 1024, 3, 36000 * S, 0.001},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        new_rules();
        limit("bytes-out", cases[i].line);
        open_gate();
        atomic_store(&subject_funnel(target.holders[PER_SUBJECT], policy->limits[0].slot)->tat_ns,
                     0);
        double passed = (double)stream(cases[i].piece, cases[i].for_ns) - (double)cases[i].burst;
        double due = cases[i].per_s * (double)cases[i].for_ns / (double)S;
        /* Never more than the limit allows, but for the last piece. */
        if (passed > due + (double)cases[i].piece ||
            passed < due * (1 - cases[i].tolerance) - (double)cases[i].piece)
            fail_msg("%s in pieces of %u: %.0f for %.0f", cases[i].line, (unsigned)cases[i].piece,
                     passed, due);
        if (cases[i].piece * 100 < (uint64_t)due && (passed > due * 1.01 || passed < due * 0.99))
            fail_msg("%s in pieces of %u: %.0f for %.0f", cases[i].line, (unsigned)cases[i].piece,
                     passed, due);
    }
}

/* A debt is capped at RATE_LONGEST_NS, a hundred years. */
static void monstrous_bytes(void **state)
{
    (void)state;
    limit("bytes-in", "1/d burst 1");
    open_gate();
    for (int i = 0; i < 5; i++)
        owe(UNIT_BYTES_IN, UINT64_MAX, START);
    assert_int_equal(word(0), START + RATE_LONGEST_NS);
    assert_false(pass("get", START));
}

static enum gate ask_debtor(uint64_t now_ns)
{
    return gate_ask_debtor(&target, now_ns, limit_counters, &verdict);
}

/*
 * A command that is never refused waits until no limit on bytes is in debt, whatever the action of
 * the limit.
 */
static void what_is_never_refused_waits(void **state)
{
    (void)state;
    limit("bytes-in", "1000/s burst 1000");
    limit("bytes-out", "1000/s burst 2000 over delay 1ms, 10/s burst 5000 over shadow");
    limit("all", "1/h");
    open_gate();
    assert_int_equal(ask_debtor(START), GATE_PASS);
    owe(UNIT_BYTES_IN, 999, START);
    owe(UNIT_BYTES_OUT, 1999, START);
    assert_int_equal(ask_debtor(START), GATE_PASS);
    owe(UNIT_BYTES_IN, 1001, START);
    assert_int_equal(ask_debtor(START), GATE_WAIT);
    assert_string_equal(verdict.limit->label, "free/bytes-in");
    assert_int_equal(verdict.wait_ns, S + MS);
    owe(UNIT_BYTES_OUT, 4001, START);
    assert_int_equal(ask_debtor(START), GATE_WAIT);
    assert_string_equal(verdict.limit->label, "free/bytes-out");
    assert_int_equal(verdict.wait_ns, 4 * S + MS);
    assert_true(pass("ping", START)); /* not bound by the limits on bytes */
    assert_int_equal(gate_ask_debtor(&target, START + 4 * S, NULL, &verdict), GATE_WAIT);
    assert_int_equal(ask_debtor(START + 4 * S + MS), GATE_PASS);
    assert_counters(0, 2000, 1, 0, 0);
    assert_counters(1, 6000, 1, 0, 0);

    const struct command *ping = kit_command(table, "ping");
    const struct command *get = kit_command(table, "get");
    assert_true(gate_delays(policy, ping, PART_ALL));
    assert_true(gate_delays(policy, get, PART_ALL));
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(gate_binds(policy, i, ping), i < 2);
        assert_true(gate_binds(policy, i, get));
    }
}

/* A command that has waited passes when the debt is at most a burst, and is not counted again. */
static void what_has_waited_waits_for_an_overdraft(void **state)
{
    (void)state;
    limit("bytes-in", "1000/s burst 1000");
    limit("bytes-out", "1000/s burst 1000, 10/s burst 10 over shadow");
    open_gate();
    owe(UNIT_BYTES_IN, 2000, START);
    assert_int_equal(gate_ask_overdrawn(&target, START, &verdict), GATE_PASS);
    owe(UNIT_BYTES_IN, 500, START);
    owe(UNIT_BYTES_OUT, 2700, START);
    assert_int_equal(gate_ask_overdrawn(&target, START, &verdict), GATE_WAIT);
    assert_string_equal(verdict.limit->label, "free/bytes-out");
    assert_int_equal(verdict.wait_ns, 700 * MS);
    assert_int_equal(gate_ask_overdrawn(&target, START + 700 * MS, &verdict), GATE_PASS);
    assert_counters(0, 2500, 0, 0, 0);
    assert_counters(1, 2700, 0, 0, 0);
}

static void a_handshake_owes_no_more_than_a_burst(void **state)
{
    (void)state;
    limit("bytes-out", "1000/s burst 1000");
    open_gate();
    for (int i = 0; i < 10; i++)
        gate_owe_bytes(&target, UNIT_BYTES_OUT, 600, GREETING, START, limit_counters);
    assert_int_equal(gate_overdraft_ns(&target, UNIT_BYTES_OUT, START), 400 * MS);
    owe(UNIT_BYTES_OUT, 600, START);
    assert_int_equal(gate_overdraft_ns(&target, UNIT_BYTES_OUT, START), S);
}

/*
 * The funnels of a closed connection end with the connection. Later charges go to the subject and
 * the policy alone.
 */
static void a_connection_that_has_gone_owes_still(void **state)
{
    (void)state;
    limit("bytes-out",
          "1000/s burst 1000 per connection, 1000/s burst 1000, 1000/s burst 1000 per policy");
    limit("inflight", "10 per connection, 10, 10 per policy");
    open_gate();
    struct charge_target gone = target;
    gone.holders[PER_CONNECTION] = NULL;
    gate_calls_begin(&target, 3, 0);
    gate_owe_bytes(&gone, UNIT_BYTES_OUT, 500, 0, START, limit_counters);
    gate_calls_end(&gone, 2, 0);
    static const uint64_t words[] = {0, START + S / 2, START + S / 2, 3, 1, 1};
    for (unsigned i = 0; i < sizeof words / sizeof words[0]; i++)
        assert_int_equal(word(i), words[i]);
}

static void more_than_one_burst_is_overdrawn(void **state)
{
    (void)state;
    limit("bytes-in", "1000/s burst 1000, 10/s burst 10 over shadow");
    limit("bytes-out", "1/d");
    open_gate();
    owe(UNIT_BYTES_IN, 2000, START);
    assert_int_equal(gate_overdraft_ns(&target, UNIT_BYTES_IN, START), 0);
    owe(UNIT_BYTES_IN, 500, START);
    assert_int_equal(gate_overdraft_ns(&target, UNIT_BYTES_IN, START), S / 2);
    assert_int_equal(gate_overdraft_ns(&target, UNIT_BYTES_IN, START + S / 2 - 1), 1);
    assert_int_equal(gate_overdraft_ns(&target, UNIT_BYTES_IN, START + S / 2), 0);
    assert_int_equal(gate_overdraft_ns(&target, UNIT_BYTES_OUT, START), 0);
    owe(UNIT_BYTES_OUT, UINT64_MAX, START);
    assert_int_equal(gate_overdraft_ns(&target, UNIT_BYTES_OUT, START),
                     RATE_LONGEST_NS - 2 * 86400 * S);
}

/*
 * Under shadow the debt is at most one burst beyond the limit: an enforced limit would have let no
 * more bytes in.
 */
static void a_dry_run_owes_no_more(void **state)
{
    (void)state;
    limit("bytes-in", "1000/s burst 1000 over shadow, 1000/s burst 1000");
    open_gate();
    for (int i = 0; i < 100; i++)
        owe(UNIT_BYTES_IN, 900, START);
    /* the third piece was on its way when more than 2000 bytes were owed */
    assert_int_equal(word(0), START + 27 * S / 10);
    assert_int_equal(word(1), START + 90 * S);
    assert_counters(0, 2700, 0, 0, 0);
    owe(UNIT_BYTES_IN, 900, START + 7 * S / 10);
    assert_int_equal(word(0), START + 36 * S / 10);
}

/*
 * A client that continues as soon as the overdraft is over gets the rate in pieces. No debt is
 * forgiven.
 */
static void a_slowed_stream_gets_the_rate(void **state)
{
    (void)state;
    limit("bytes-in", "10mb/s burst 100kb");
    open_gate();
    uint64_t now_ns = START, sent = 0;
    while (now_ns < START + 2 * S) {
        owe(UNIT_BYTES_IN, 65536, now_ns);
        sent += 65536;
        now_ns += gate_overdraft_ns(&target, UNIT_BYTES_IN, now_ns);
        assert_true(word(0) <= now_ns + 20 * MS); /* two bursts */
    }
    assert_in_range(sent, 2 * 10485760, 2 * 10485760 + 2 * 102400 + 65536);
}

static void bytes_of_scopes(void **state)
{
    (void)state;
    limit("bytes-in", "1/h burst 10 per connection, 1/h burst 20, 1/h burst 30 per policy");
    open_gate();
    struct charge_target same = kit_target(subjects, policy, "user:a", START);
    struct charge_target other = kit_target(subjects, policy, "user:b", START);
    const struct gate_request wish = ask_of("get", 1, START);
    owe(UNIT_BYTES_IN, 10, START);
    assert_false(pass("get", START));
    assert_int_equal(gate_ask(&same, &wish, limit_counters, &verdict), GATE_PASS);
    gate_owe_bytes(&same, UNIT_BYTES_IN, 10, 0, START, limit_counters);
    assert_int_equal(gate_ask(&other, &wish, limit_counters, &verdict), GATE_PASS);
    gate_owe_bytes(&other, UNIT_BYTES_IN, 10, 0, START, limit_counters);
    assert_int_equal(word(0), START + 10 * 3600 * S);
    assert_int_equal(word(1), START + 20 * 3600 * S);
    assert_int_equal(word(2), START + 30 * 3600 * S);
    kit_target_put(subjects, &same);
    kit_target_put(subjects, &other);
}

/* ---- calls in flight ---- */

static void calls_in_flight(void **state)
{
    (void)state;
    limit("inflight", "3");
    open_gate();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ask("get", 1, START), GATE_PASS);
        assert_int_equal(verdict.counted, COUNTED);
    }
    /* time does not help: the limit is on a number */
    assert_int_equal(ask("get", 1, START + 1000 * S), GATE_REFUSE);
    assert_int_equal(verdict.wait_ns, 0);
    assert_int_equal(verdict.counted, 0);
    assert_true(pass("ping", START));
    assert_int_equal(verdict.counted, 0);
    assert_true(pass("blpop", START)); /* a blocking call does not count as in flight */
    assert_int_equal(verdict.counted, 0);
    gate_calls_end(&target, 2, 0);
    assert_int_equal(word(0), 1);
    assert_true(pass("get", START));
    gate_calls_end(&target, 2, 0);
    assert_int_equal(word(0), 0);
    assert_counters(0, 4, 0, 1, 0);
}

static void who_may_block_says_so(void **state)
{
    (void)state;
    limit("inflight", "1");
    open_gate();
    struct gate_request wish = ask_of("xread", 1, START);
    wish.blocks = true;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(gate_ask(&target, &wish, limit_counters, &verdict), GATE_PASS);
        assert_int_equal(verdict.counted, 0);
    }
    wish.blocks = false;
    assert_int_equal(gate_ask(&target, &wish, limit_counters, &verdict), GATE_PASS);
    assert_int_equal(verdict.counted, COUNTED);
    assert_int_equal(gate_ask(&target, &wish, limit_counters, &verdict), GATE_REFUSE);
    gate_calls_end(&target, 1, 0);
}

static void calls_move_between_subjects(void **state)
{
    (void)state;
    limit("inflight", "5, 8 per policy, 2 per policy over shadow");
    open_gate();
    uint64_t counted = 0, counted_shadow = 0;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(ask("get", 1, START), GATE_PASS);
        counted += (verdict.counted & COUNTED) != 0;
        counted_shadow += (verdict.counted & COUNTED_SHADOW) != 0;
    }
    assert_int_equal(counted, 5);
    assert_int_equal(counted_shadow, 2);
    assert_int_equal(ask("get", 1, START), GATE_REFUSE);
    assert_string_equal(verdict.limit->label, "free/inflight");

    struct charge_target other = kit_target(subjects, policy, "user:b", START);
    gate_calls_end(&target, counted, counted_shadow);
    gate_calls_begin(&other, counted, counted_shadow);
    assert_int_equal(word(0), 0);
    assert_int_equal(kit_word(&other, 0), 5);
    assert_int_equal(kit_word(&other, 1), 5);
    assert_int_equal(kit_word(&other, 2), 2);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ask("get", 1, START), GATE_PASS);
    assert_int_equal(ask("get", 1, START), GATE_REFUSE);
    assert_ptr_equal(verdict.limit, &policy->limits[1]);
    gate_calls_end(&target, 3, 0);
    gate_calls_end(&other, counted, counted_shadow);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(kit_word(&other, i), 0);
    assert_counters(2, 2, 0, 0, 6);
    kit_target_put(subjects, &other);
}

/* A policy without a limit on calls does not decrement them. */
static void moves_to_a_policy_without_such_limits(void **state)
{
    (void)state;
    limit("inflight", "5");
    struct policy *paid = kit_policy(policies, "paid");
    kit_limit(policies, paid, table, "all", "1/h");
    open_gate();
    struct charge_target other = kit_target(subjects, paid, "user:a", START);
    assert_true(pass("get", START));
    gate_calls_end(&target, 1, 0);
    gate_calls_begin(&other, 1, 0);
    gate_calls_end(&other, 1, 0);
    assert_int_equal(word(0), 0);
    assert_int_equal(kit_word(&other, 0), 0);
    kit_target_put(subjects, &other);
}

/* Random calls and replies of three subjects, against numbers kept by the test. */
static void what_is_counted_is_taken_back(void **state)
{
    (void)state;
    limit("inflight", "4, 9 per policy, 5 per policy over shadow, 2 per connection over shadow");
    open_gate();
    struct charge_target targets[3] = {target, kit_target(subjects, policy, "user:b", START),
                                       kit_target(subjects, policy, "user:c", START)};
    static uint8_t calls[3][8];
    size_t n[3] = {0};
    uint64_t seed = 3;
    for (int i = 0; i < 20000; i++) {
        size_t who = dice_below(&seed, 3);
        uint64_t total = n[0] + n[1] + n[2], shadows = 0;
        assert_int_equal(kit_word(&targets[who], 0), n[who]);
        assert_int_equal(kit_word(&targets[who], 1), total);
        for (size_t k = 0; k < 3; k++)
            for (size_t m = 0; m < n[k]; m++)
                shadows += (calls[k][m] & COUNTED_SHADOW) != 0;
        assert_int_equal(kit_word(&targets[who], 2), shadows);
        assert_true(n[who] <= 4 && total <= 9 && shadows <= 5);
        if (dice_below(&seed, 2)) {
            const struct gate_request wish = ask_of("get", 1, START);
            enum gate gate = gate_ask(&targets[who], &wish, limit_counters, &verdict);
            assert_int_equal(gate == GATE_PASS, n[who] < 4 && total < 9);
            if (gate == GATE_PASS)
                calls[who][n[who]++] = verdict.counted;
        } else if (n[who] > 0) {
            uint8_t counted = calls[who][--n[who]];
            gate_calls_end(&targets[who], (counted & COUNTED) != 0,
                           (counted & COUNTED_SHADOW) != 0);
        }
    }
    kit_target_put(subjects, &targets[1]);
    kit_target_put(subjects, &targets[2]);
}

/* ---- connections ---- */

static enum gate connect_as(const struct charge_target *who, uint64_t now_ns)
{
    return gate_connect(who, CONNECT_UNITS, now_ns, limit_counters, &verdict);
}

static void connects_first_and_connections_later(void **state)
{
    const unsigned connects = 1U << UNIT_CONNECTS, connections = 1U << UNIT_CONNECTIONS;
    (void)state;
    limit("connections", "1");
    limit("connects", "1/s burst 2");
    open_gate();
    assert_int_equal(gate_connect(&target, connects, START, limit_counters, &verdict), GATE_PASS);
    assert_int_equal(gate_connect(&target, connects, START, limit_counters, &verdict), GATE_PASS);
    assert_int_equal(word(0), 0); /* no connection was counted */
    assert_int_equal(gate_connect(&target, connects, START, limit_counters, &verdict), GATE_CLOSE);
    assert_ptr_equal(verdict.limit, &policy->limits[1]);
    assert_int_equal(gate_connect(&target, connections, START, limit_counters, &verdict),
                     GATE_PASS);
    assert_int_equal(word(1), START + 2 * S); /* no connect was charged */
    assert_int_equal(gate_connect(&target, connections, START, limit_counters, &verdict),
                     GATE_CLOSE);
    assert_ptr_equal(verdict.limit, &policy->limits[0]);
    gate_disconnect(&target, COUNTED | COUNTED_SHADOW);
    assert_int_equal(word(0), 0);
    assert_counters(0, 1, 0, 1, 0);
    assert_counters(1, 2, 0, 1, 0);
}

static void connections_and_connects(void **state)
{
    (void)state;
    limit("connections", "3");
    limit("connects", "1/s burst 4");
    open_gate();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(connect_as(&target, START), GATE_PASS);
        assert_int_equal(verdict.counted, COUNTED | COUNTED_SHADOW);
    }
    assert_int_equal(connect_as(&target, START), GATE_CLOSE);
    assert_ptr_equal(verdict.limit, &policy->limits[0]);
    assert_int_equal(verdict.wait_ns, 0);
    assert_int_equal(verdict.counted, 0);
    assert_int_equal(word(0), 3);
    assert_int_equal(word(1), START + 3 * S); /* no connect was charged */
    gate_disconnect(&target, COUNTED | COUNTED_SHADOW);
    assert_int_equal(connect_as(&target, START), GATE_PASS);
    gate_disconnect(&target, COUNTED | COUNTED_SHADOW);
    assert_int_equal(connect_as(&target, START), GATE_CLOSE);
    assert_ptr_equal(verdict.limit, &policy->limits[1]);
    assert_int_equal(verdict.wait_ns, S);
    assert_int_equal(word(0), 2); /* no connection was counted */
    assert_int_equal(connect_as(&target, START + S), GATE_PASS);
    assert_int_equal(word(0), 3);
    assert_true(pass("get", START)); /* the limits do not bind commands */
    assert_counters(0, 5, 0, 1, 0);
    assert_counters(1, 5, 0, 1, 0);
}

static void connections_in_shadow(void **state)
{
    (void)state;
    limit("connections", "2 over shadow, 3");
    limit("connects", "1/h burst 100");
    open_gate();
    uint8_t counted[3];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(connect_as(&target, START), GATE_PASS);
        counted[i] = verdict.counted;
    }
    assert_int_equal(counted[1], COUNTED | COUNTED_SHADOW);
    assert_int_equal(counted[2], COUNTED);
    assert_int_equal(connect_as(&target, START), GATE_CLOSE);
    assert_int_equal(word(0), 2);
    assert_int_equal(word(1), 3);
    for (int i = 2; i >= 0; i--)
        gate_disconnect(&target, counted[i]);
    assert_int_equal(word(0), 0);
    assert_int_equal(word(1), 0);
    assert_int_equal(word(2), START + 3 * 3600 * S);
    assert_counters(0, 2, 0, 0, 1);
    assert_counters(1, 3, 0, 1, 0);
}

/* After a reload or a login an open connection is counted, even beyond the limit. */
static void who_is_here_is_not_asked(void **state)
{
    (void)state;
    limit("connections", "1, 1 per policy over shadow");
    limit("connects", "1/h burst 1");
    open_gate();
    assert_int_equal(connect_as(&target, START), GATE_PASS);
    assert_int_equal(gate_reconnect(&target), COUNTED | COUNTED_SHADOW);
    assert_int_equal(gate_reconnect(&target), COUNTED | COUNTED_SHADOW);
    assert_int_equal(word(0), 3);
    assert_int_equal(word(1), 3);
    assert_int_equal(word(2), START + 3600 * S); /* the client did not connect anew */
    for (int i = 0; i < 3; i++)
        gate_disconnect(&target, COUNTED | COUNTED_SHADOW);
    assert_int_equal(word(0), 0);
    assert_int_equal(word(1), 0);

    new_rules();
    limit("connects", "1/h burst 1");
    open_gate();
    assert_int_equal(gate_reconnect(&target), COUNTED | COUNTED_SHADOW);
    gate_disconnect(&target, COUNTED | COUNTED_SHADOW);
}

static void connections_of_a_whole_policy(void **state)
{
    (void)state;
    limit("connections", "2, 3 per policy over refuse");
    limit("connects", "100/s per policy");
    open_gate();
    struct charge_target other = kit_target(subjects, policy, "user:b", START);
    assert_int_equal(connect_as(&target, START), GATE_PASS);
    assert_int_equal(connect_as(&other, START), GATE_PASS);
    assert_int_equal(connect_as(&other, START), GATE_PASS);
    assert_int_equal(connect_as(&target, START), GATE_CLOSE);
    assert_ptr_equal(verdict.limit, &policy->limits[1]);
    assert_int_equal(word(0), 1);
    gate_disconnect(&other, COUNTED);
    assert_int_equal(connect_as(&target, START), GATE_PASS);
    assert_int_equal(word(1), 3);
    kit_target_put(subjects, &other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(debt_up_to_the_burst_passes),
        TEST(rest_is_no_credit),
        TEST(rates_are_met),
        TEST(monstrous_bytes),
        TEST(what_is_never_refused_waits),
        TEST(what_has_waited_waits_for_an_overdraft),
        TEST(a_handshake_owes_no_more_than_a_burst),
        TEST(a_connection_that_has_gone_owes_still),
        TEST(more_than_one_burst_is_overdrawn),
        TEST(a_dry_run_owes_no_more),
        TEST(a_slowed_stream_gets_the_rate),
        TEST(bytes_of_scopes),
        TEST(calls_in_flight),
        TEST(who_may_block_says_so),
        TEST(calls_move_between_subjects),
        TEST(moves_to_a_policy_without_such_limits),
        TEST(what_is_counted_is_taken_back),
        TEST(connects_first_and_connections_later),
        TEST(connections_and_connects),
        TEST(connections_in_shadow),
        TEST(who_is_here_is_not_asked),
        TEST(connections_of_a_whole_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
