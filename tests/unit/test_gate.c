/* Tests of the gate: which limit decides, what is charged, what the client reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "dice.h"
#include "gate_kit.h"
#include "limit/refusal.h"

static void what_no_limit_binds_passes(void **state)
{
    (void)state;
    limit("write", "1/s");
    open_gate();
    for (int i = 0; i < 100; i++)
        assert_true(pass("get", START));
    assert_int_equal(word(0), 0);
    assert_counters(0, 0, 0, 0, 0);
}

static void one_limit_decides_on_its_word(void **state)
{
    (void)state;
    limit("write", "10/s burst 2");
    open_gate();
    assert_false(policy->is_joint);
    assert_true(policy->is_plain);
    assert_true(pass("set", START));
    assert_true(pass("del", START));
    assert_int_equal(ask("set", 1, START), GATE_REFUSE);
    assert_ptr_equal(verdict.limit, &policy->limits[0]);
    assert_int_equal(verdict.wait_ns, 100 * MS);
    assert_false(pass("set", START + 100 * MS - 1));
    assert_int_equal(verdict.wait_ns, 1);
    assert_true(pass("set", START + 100 * MS));
    assert_counters(0, 3, 0, 2, 0);
}

static void the_longest_wait_is_told(void **state)
{
    (void)state;
    limit("all", "10/s burst 1");
    limit("write", "1/s burst 1");
    limit("cmd.set", "5/s burst 1");
    open_gate();
    assert_true(policy->is_joint && policy->is_plain);
    assert_true(pass("set", START));
    assert_false(pass("set", START));
    assert_string_equal(verdict.limit->label, "free/write");
    assert_int_equal(verdict.wait_ns, S);
    assert_false(pass("get", START));
    assert_string_equal(verdict.limit->label, "free/all");
    assert_int_equal(verdict.wait_ns, 100 * MS);
    assert_true(pass("get", START + 100 * MS));
    assert_counters(0, 2, 0, 1, 0);
    assert_counters(1, 1, 0, 1, 0);
    assert_counters(2, 1, 0, 0, 0);
}

/* Limits of different kinds, which take the gate's slow path. */
static void the_longest_wait_of_all_kinds(void **state)
{
    (void)state;
    limit("all", "10/s burst 1");
    limit("cost", "1/s burst 5");
    limit("write", "2/s burst 1 per policy");
    limit("cmd.set", "4/s burst 1 per connection");
    open_gate();
    assert_false(policy->is_plain);
    assert_int_equal(ask("set", 5, START), GATE_PASS);
    assert_int_equal(ask("set", 2, START), GATE_REFUSE);
    assert_string_equal(verdict.limit->label, "free/cost");
    assert_int_equal(verdict.wait_ns, 2 * S);
    assert_int_equal(ask("set", 1, START + 700 * MS), GATE_REFUSE);
    assert_string_equal(verdict.limit->label, "free/cost");
    assert_int_equal(verdict.wait_ns, 300 * MS);
    assert_int_equal(ask("set", 6, START + 10 * S), GATE_REFUSE);
    assert_true(verdict.wait_ns == GATE_NEVER);
    assert_int_equal(ask("set", 1, START + 10 * S), GATE_PASS);
    assert_int_equal(ask("set", 1, START + 10 * S), GATE_REFUSE);
    assert_string_equal(verdict.limit->label, "free/write");
    assert_int_equal(verdict.wait_ns, 500 * MS);
    assert_counters(0, 2, 0, 0, 0);
    assert_counters(1, 6, 0, 3, 0); /* units, not commands */
    assert_counters(2, 2, 0, 1, 0);
    assert_counters(3, 2, 0, 0, 0);
}

static void a_refusal_charges_nobody(void **state)
{
    (void)state;
    limit("all", "1000/s");
    limit("write", "1/s burst 1");
    open_gate();
    assert_true(pass("set", START + 5));
    uint64_t all = word(0), write = word(1);
    for (int i = 0; i < 10; i++)
        assert_false(pass("set", START + 6));
    assert_int_equal(word(0), all);
    assert_int_equal(word(1), write);
    assert_int_equal(atomic_load(&target.holders[PER_SUBJECT]->lock), 0);
}

/* Limits of every kind, one of them without room. */
static void whoever_refuses_nobody_is_charged(void **state)
{
    (void)state;
    static const char *const lines[][2] = {
        {"all", "1000/s"},
        {"cost", "1000/s"},
        {"write", "1000/s per policy"},
        {"inflight", "1000"},
        {"@fast", "1000/s per connection"},
        {"bytes-in", "1000/s"},
        {"@string", "1000/s over delay 1s"},
    };
    static const char *const tight[][2] = {
        {"all", "1/h"},
        {"cost", "1/h"},
        {"cmd.set", "1/h per policy"},
        {"inflight", "1 per connection"},
        {"write", "1/h per connection"},
        {"bytes-out", "1/h"},
        {"cmd.set", "1/h over delay 1s"},
        {"write", "1/h over close"},
        {"cmd.set", "deny"},
    };
    for (size_t i = 0; i < sizeof tight / sizeof tight[0]; i++) {
        new_rules();
        for (size_t k = 0; k < sizeof lines / sizeof lines[0]; k++)
            limit(lines[k][0], lines[k][1]);
        limit(tight[i][0], tight[i][1]);
        open_gate();
        uint64_t now_ns = START + i * 24 * 3600 * S, before[POLICY_MAX_LIMITS];
        (void)ask("set", 1, now_ns);
        gate_owe_bytes(&target, UNIT_BYTES_OUT, 1, 0, now_ns, limit_counters);
        for (size_t k = 0; k < policy->n_limits; k++)
            before[k] = word(k);
        enum gate gate = ask("set", 1, now_ns + S);
        if (gate == GATE_PASS || gate == GATE_WAIT ||
            verdict.limit != &policy->limits[policy->n_limits - 1])
            fail_msg("%s = %s: %d by %s", tight[i][0], tight[i][1], gate, verdict.limit->label);
        assert_int_equal(verdict.counted, 0);
        for (size_t k = 0; k < policy->n_limits; k++)
            assert_int_equal(word(k), before[k]);
        gate_calls_end(&target, target.policy->of_action[OVER_DENY] ? 0 : 1, 0);
    }
}

static void costs_beyond_the_burst_never_pass(void **state)
{
    (void)state;
    limit("cost", "1/s burst 3");
    limit("all", "1000/s");
    open_gate();
    assert_int_equal(ask("set", 4, START), GATE_REFUSE);
    assert_string_equal(verdict.limit->label, "free/cost");
    assert_true(verdict.wait_ns == GATE_NEVER);
    assert_int_equal(ask("set", UINT64_MAX, START), GATE_REFUSE);
    assert_true(verdict.wait_ns == GATE_NEVER);
    assert_int_equal(ask("set", 3, START), GATE_PASS);
    assert_int_equal(word(0), START + 3 * S);
    /* a limit on commands counts one, whatever the cost */
    assert_int_equal(word(1), START + 1 * MS);
}

static void control_passes_always(void **state)
{
    (void)state;
    limit("all", "1/d burst 1");
    limit("cost", "1/d burst 1");
    limit("inflight", "1");
    limit("bytes-in", "1/d");
    limit("@fast", "deny");
    open_gate();
    assert_true(pass("del", START));
    for (int i = 0; i < 100; i++) {
        assert_true(pass("ping", START));
        assert_int_equal(verdict.counted, 0);
        assert_true(pass("exec", START));
    }
    assert_false(pass("del", START));
}

static void newer_commands_count_as_unknown(void **state)
{
    (void)state;
    limit("all", "1/s burst 1");
    open_gate();
    struct command newer = {.id = UINT16_MAX};
    struct gate_request wish = {.command = &newer, .amount = one_of_each(), .now_ns = START};
    assert_int_equal(gate_ask(&target, &wish, limit_counters, &verdict), GATE_PASS);
    assert_int_equal(gate_ask(&target, &wish, limit_counters, &verdict), GATE_REFUSE);
    wish.command = command_table_row(table, 0);
    assert_int_equal(gate_ask(&target, &wish, limit_counters, &verdict), GATE_REFUSE);
}

/* A policy may have limits of one scope only. Then only that scope needs a holder of funnels. */
static void only_the_scopes_there_are_need_a_holder(void **state)
{
    (void)state;
    static const char *const per[] = {"1/s burst 2 per subject", "1/s burst 2 per connection",
                                      "1/s burst 2 per policy"};
    for (size_t scope = 0; scope < SCOPE_COUNT; scope++) {
        new_rules();
        limit("all", per[scope]);
        open_gate();
        struct charge_target bare = target;
        for (size_t i = 0; i < SCOPE_COUNT; i++)
            bare.holders[i] = i == scope ? target.holders[i] : NULL;
        const struct gate_request wish = ask_of("get", 1, START);
        assert_int_equal(gate_ask(&bare, &wish, limit_counters, &verdict), GATE_PASS);
        assert_int_equal(gate_ask(&bare, &wish, limit_counters, &verdict), GATE_PASS);
        assert_int_equal(gate_ask(&bare, &wish, limit_counters, &verdict), GATE_REFUSE);
    }
    new_rules();
    limit("connections", "1 per policy");
    open_gate();
    struct charge_target bare = target;
    bare.holders[PER_SUBJECT] = NULL;
    assert_int_equal(gate_connect(&bare, CONNECT_UNITS, START, limit_counters, &verdict),
                     GATE_PASS);
    assert_int_equal(gate_connect(&bare, CONNECT_UNITS, START, limit_counters, &verdict),
                     GATE_CLOSE);
}

/* Joint limits decide like single limits asked first and charged after. */
static void joint_limits_equal_single_ones(void **state)
{
    (void)state;
    limit("all", "100/s burst 20");
    limit("write", "30/s burst 10, 1000/m burst 100");
    open_gate();
    struct funnel model[3] = {{0}};
    static const char *const commands[] = {"get", "set", "del"};
    uint64_t seed = 9, now_ns = START;
    for (int i = 0; i < 20000; i++) {
        uint64_t longest_ns = 0;
        size_t command = dice_below(&seed, 3), n = command == 0 ? 1 : 3;
        now_ns += dice_below(&seed, 30 * MS);
        for (size_t k = 0; k < n; k++) {
            uint64_t wait_ns = funnel_ask(&model[k], &policy->limits[k].rate, now_ns, 1);
            longest_ns = wait_ns > longest_ns ? wait_ns : longest_ns;
        }
        for (size_t k = 0; k < n && longest_ns == 0; k++)
            assert_int_equal(funnel_take(&model[k], &policy->limits[k].rate, now_ns, 1), 0);
        assert_int_equal(pass(commands[command], now_ns), longest_ns == 0);
        if (longest_ns > 0)
            assert_int_equal(verdict.wait_ns, longest_ns);
    }
}

/* Costs, scopes and an in-flight limit that never binds: the gate's slow path. */
static void any_limits_equal_single_ones(void **state)
{
    (void)state;
    limit("all", "100/s burst 20 per connection");
    limit("write", "30/s burst 10 per policy, 1000/m burst 100");
    limit("cost", "200/s burst 30 over close");
    limit("inflight", "1000000");
    open_gate();
    struct funnel model[4] = {{0}};
    static const char *const commands[] = {"get", "set", "del"};
    uint64_t seed = 10, now_ns = START;
    for (int i = 0; i < 20000; i++) {
        uint64_t longest_ns = 0, cost = 1 + dice_below(&seed, 9);
        size_t command = dice_below(&seed, 3);
        const struct limit *slowest = NULL;
        now_ns += dice_below(&seed, 40 * MS);
        for (size_t k = 0; k < 4; k++) {
            if (command == 0 && (k == 1 || k == 2))
                continue;
            uint64_t wait_ns =
                funnel_ask(&model[k], &policy->limits[k].rate, now_ns, k == 3 ? cost : 1);
            slowest = wait_ns > longest_ns ? &policy->limits[k] : slowest;
            longest_ns = wait_ns > longest_ns ? wait_ns : longest_ns;
        }
        for (size_t k = 0; k < 4 && longest_ns == 0; k++)
            if (command > 0 || (k != 1 && k != 2))
                assert_int_equal(
                    funnel_take(&model[k], &policy->limits[k].rate, now_ns, k == 3 ? cost : 1), 0);
        enum gate expected = !slowest                        ? GATE_PASS
                             : slowest->action == OVER_CLOSE ? GATE_CLOSE
                                                             : GATE_REFUSE;
        assert_int_equal(ask(commands[command], cost, now_ns), expected);
        if (slowest) {
            assert_ptr_equal(verdict.limit, slowest);
            assert_int_equal(verdict.wait_ns, longest_ns);
        }
    }
}

/* ---- deny, close ---- */

static void deny_is_for_ever(void **state)
{
    (void)state;
    limit("write", "1/s");
    limit("@scripting", "deny");
    limit("cmd.keys", "DENY");
    open_gate();
    for (uint64_t now_ns = START; now_ns < START + 100 * S; now_ns += 10 * S) {
        assert_int_equal(ask("eval", 1, now_ns), GATE_DENY);
        assert_ptr_equal(verdict.limit, &policy->limits[1]);
        assert_true(verdict.wait_ns == GATE_NEVER);
    }
    assert_int_equal(ask("keys", 1, START), GATE_DENY);
    assert_ptr_equal(verdict.limit, &policy->limits[2]);
    assert_true(pass("get", START));
    assert_counters(1, 0, 0, 10, 0);
    assert_counters(2, 0, 0, 1, 0);
    assert_int_equal(gate_standing(&target, 1, START).remaining, 0);
}

static void denied_before_anything_else(void **state)
{
    (void)state;
    limit("all", "1/h burst 1 over close");
    limit("cmd.set", "deny");
    limit("write", "1/h burst 1 over delay 1h");
    open_gate();
    assert_true(pass("get", START));
    assert_int_equal(ask("set", 1, START), GATE_DENY);
    assert_int_equal(ask("get", 1, START), GATE_CLOSE);
    assert_int_equal(verdict.wait_ns, 3600 * S);
    assert_counters(0, 1, 0, 1, 0);
}

/* The limit with the longest wait decides the action. */
static void close_and_refuse_together(void **state)
{
    (void)state;
    limit("all", "1/s burst 1 over close");
    limit("write", "1/m burst 1");
    open_gate();
    assert_true(pass("set", START));
    assert_int_equal(ask("set", 1, START), GATE_REFUSE);
    assert_int_equal(ask("get", 1, START), GATE_CLOSE);
    assert_string_equal(verdict.limit->label, "free/all");
    assert_true(pass("get", START + S));
    assert_int_equal(ask("get", 1, START + S), GATE_CLOSE);
}

/* ---- dry ---- */

/*
 * Every kind of limit and random traffic: a dry decision changes nothing, and equals the real
 * decision right after.
 */
static void dry_is_the_same_and_touches_nothing(void **state)
{
    (void)state;
    static const char *const rules[][8] = {
        {"write", "20/s burst 3"},
        {"write", "20/s burst 3, 100/m", "all", "30/s"},
        {"all", "20/s burst 4", "cost", "100/s burst 9", "inflight", "5", "bytes-in",
         "100/s burst 50"},
        {"write", "20/s over delay 200ms", "cost", "50/s over delay 1s", "all", "30/s over close",
         "cmd.get", "deny"},
        {"all", "10/s over shadow", "write", "5/s", "inflight", "2 per policy over shadow"},
    };
    static const char *const commands[] = {"get", "set", "blpop", "ping", "eval"};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        new_rules();
        for (size_t k = 0; k < 8 && rules[i][k]; k += 2)
            limit(rules[i][k], rules[i][k + 1]);
        policies_set_shadow(policies, i == 4);
        open_gate();
        uint64_t seed = i, now_ns = START + i * 10000 * S;
        gate_settle(&target, now_ns);
        for (int positions = 0; positions < 2000; positions++) {
            struct limit_counters before[POLICY_MAX_LIMITS];
            uint64_t words[POLICY_MAX_LIMITS];
            struct verdict dry = {0};
            now_ns += dice_below(&seed, 60 * MS);
            struct gate_request wish =
                ask_of(commands[dice_below(&seed, 5)], 1 + dice_below(&seed, 12), now_ns);
            wish.may_wait = dice_below(&seed, 4) > 0;
            wish.waited_for = dice_below(&seed, 4)
                                  ? 0
                                  : 1U + policy->limits[dice_below(&seed, policy->n_limits)].id;
            wish.headed_ns = now_ns - dice_below(&seed, 300 * MS);
            wish.is_dry = true;
            for (size_t k = 0; k < policy->n_limits; k++) {
                words[k] = word(k);
                memcpy(&before[k], counters(k), sizeof before[k]);
            }
            enum gate foretold = gate_ask(&target, &wish, limit_counters, &dry);
            for (size_t k = 0; k < policy->n_limits; k++) {
                assert_int_equal(words[k], word(k));
                assert_memory_equal(&before[k], counters(k), sizeof before[k]);
            }
            wish.is_dry = false;
            verdict.limit = NULL;
            assert_int_equal(gate_ask(&target, &wish, limit_counters, &verdict), foretold);
            if (foretold != GATE_PASS) {
                assert_ptr_equal(verdict.limit, dry.limit);
                assert_int_equal(verdict.wait_ns, dry.wait_ns);
                continue;
            }
            assert_int_equal(verdict.counted, dry.counted);
            gate_owe_bytes(&target, UNIT_BYTES_IN, dice_below(&seed, 9), 0, now_ns, limit_counters);
            /* some calls are never answered: the number of calls reaches its limit */
            if (dice_below(&seed, 10) > 0)
                gate_calls_end(&target, (verdict.counted & COUNTED) != 0,
                               (verdict.counted & COUNTED_SHADOW) != 0);
        }
    }
}

/* ---- failed logins ---- */

static void failed_logins_are_counted(void **state)
{
    (void)state;
    limit("auth-failures", "5/60s");
    open_gate();
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 10; k++) /* an attempt alone costs nothing */
            assert_true(gate_may_login(&target, START, limit_counters));
        gate_login_failed(&target, START, limit_counters);
    }
    assert_false(gate_may_login(&target, START, limit_counters));
    assert_false(gate_may_login(&target, START + 12 * S - 1, limit_counters));
    assert_true(gate_may_login(&target, START + 12 * S, limit_counters));
    assert_counters(0, 5, 0, 2, 0);

    /* Attempts that were under way fail too: the debt keeps growing. */
    for (int i = 0; i < 10; i++)
        gate_login_failed(&target, START + 12 * S, limit_counters);
    assert_false(gate_may_login(&target, START + 12 * S + 120 * S - 1, limit_counters));
    assert_true(gate_may_login(&target, START + 12 * S + 120 * S, limit_counters));
    assert_true(pass("auth", START)); /* not bound by limits on logins */
}

static void failed_logins_in_shadow(void **state)
{
    (void)state;
    limit("auth-failures", "2/60s over shadow");
    open_gate();
    for (int i = 0; i < 5; i++) {
        assert_true(gate_may_login(&target, START, limit_counters));
        gate_login_failed(&target, START, limit_counters);
    }
    assert_counters(0, 5, 0, 0, 3);

    new_rules();
    limit("auth-failures", "2/60s");
    policies_set_shadow(policies, true);
    open_gate();
    assert_true(gate_may_login(&target, START, limit_counters));
    assert_counters(0, 5, 0, 0, 4);

    new_rules();
    limit("auth-failures", "2/60s");
    open_gate();
    assert_false(gate_may_login(&target, START, limit_counters));
}

/* ---- the state of limits ---- */

static void standings(void **state)
{
    (void)state;
    limit("write", "200/s burst 400");
    limit("cost", "10/s burst 5");
    limit("bytes-in", "1000/s burst 3000");
    limit("inflight", "3");
    limit("cmd.keys", "deny");
    open_gate();
    struct standing standing = gate_standing(&target, 0, START);
    assert_int_equal(standing.remaining, 400);
    assert_int_equal(standing.retry_after_ns, -1);
    assert_int_equal(standing.reset_after_ns, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ask("set", 1, START), GATE_PASS);
    gate_owe_bytes(&target, UNIT_BYTES_IN, 1000, 0, START, limit_counters);
    standing = gate_standing(&target, 0, START);
    assert_int_equal(standing.remaining, 397);
    assert_int_equal(standing.reset_after_ns, 15 * MS);
    standing = gate_standing(&target, 0, START + 5 * MS);
    assert_int_equal(standing.remaining, 398);
    standing = gate_standing(&target, 2, START);
    assert_int_equal(standing.remaining, 2000);
    assert_int_equal(standing.retry_after_ns, -1);
    assert_int_equal(standing.reset_after_ns, S);
    standing = gate_standing(&target, 3, START);
    assert_int_equal(standing.remaining, 0);
    assert_int_equal(standing.retry_after_ns, 0);
    gate_owe_bytes(&target, UNIT_BYTES_IN, 5000, 0, START, limit_counters);
    standing = gate_standing(&target, 2, START);
    assert_int_equal(standing.remaining, 0);
    assert_int_equal(standing.retry_after_ns, 3 * S + MS);
    standing = gate_standing(&target, 4, START);
    assert_int_equal(standing.remaining, 0);
    assert_true(standing.retry_after_ns == GATE_NEVER);
}

/* `remaining` units pass, and not one more. */
static void what_remains_passes(void **state)
{
    (void)state;
    limit("all", "30/s burst 7");
    open_gate();
    uint64_t seed = 4, now_ns = START;
    for (int i = 0; i < 500; i++) {
        now_ns += dice_below(&seed, 300 * MS);
        struct standing standing = gate_standing(&target, 0, now_ns);
        for (uint64_t k = 0; k < standing.remaining; k++)
            assert_true(pass("get", now_ns));
        assert_false(pass("get", now_ns));
        if (standing.remaining == 0)
            assert_int_equal(standing.retry_after_ns, verdict.wait_ns);
        assert_true(pass("get", now_ns + (uint64_t)verdict.wait_ns));
        now_ns += (uint64_t)verdict.wait_ns;
    }
}

/* ---- many at once ---- */

/* Two clients of one subject and a third of another subject: which funnels they share. */
static void scopes_share_as_they_say(void **state)
{
    (void)state;
    limit("cmd.get", "3/h burst 3 per connection");
    limit("cmd.set", "3/h burst 3");
    limit("cmd.del", "3/h burst 3 per policy");
    open_gate();
    struct charge_target same = kit_target(subjects, policy, "user:a", START);
    struct charge_target other = kit_target(subjects, policy, "user:b", START);
    const struct charge_target *targets[] = {&target, &same, &other};
    static const char *const commands[] = {"get", "set", "del"};
    static const int admitted[] = {9, 6, 3};
    for (size_t c = 0; c < 3; c++) {
        int passed = 0;
        const struct gate_request wish = ask_of(commands[c], 1, START);
        for (int i = 0; i < 10; i++)
            for (size_t k = 0; k < 3; k++)
                passed += gate_ask(targets[k], &wish, limit_counters, &verdict) == GATE_PASS;
        assert_int_equal(passed, admitted[c]);
    }
    kit_target_put(subjects, &same);
    kit_target_put(subjects, &other);
}

static void every_ask_is_counted_once(void **state)
{
    (void)state;
    limit("all", "50/s burst 5");
    limit("write", "10/s burst 2, 100/m over close");
    limit("cmd.set", "15/s over delay 100ms");
    limit("@list", "deny");
    limit("cmd.get", "5/s over shadow");
    open_gate();
    static const char *const commands[] = {"get", "set", "del", "lpush", "ping"};
    uint64_t seed = 6, now_ns = START, gates[5] = {0}, of_control = 0;
    for (int i = 0; i < 20000; i++) {
        now_ns += dice_below(&seed, 25 * MS);
        size_t command = dice_below(&seed, 5);
        struct gate_request wish = ask_of(commands[command], 1, now_ns);
        of_control += command == 4;
        enum gate gate = gate_ask(&target, &wish, limit_counters, &verdict);
        gates[gate]++;
        if (gate != GATE_WAIT)
            continue;
        wish.now_ns += (uint64_t)verdict.wait_ns;
        wish.waited_for = 1U + verdict.limit->id;
        gates[gate_ask(&target, &wish, limit_counters, &verdict)]++;
    }
    uint64_t refused = 0, delayed = 0;
    for (size_t k = 0; k < policy->n_limits; k++) {
        refused += atomic_load(&counters(k)->refused);
        delayed += atomic_load(&counters(k)->delayed);
    }
    assert_int_equal(refused, gates[GATE_REFUSE] + gates[GATE_CLOSE] + gates[GATE_DENY]);
    assert_int_equal(delayed, gates[GATE_WAIT]);
    assert_int_equal(atomic_load(&counters(0)->admitted), gates[GATE_PASS] - of_control);
    assert_int_equal(atomic_load(&counters(4)->refused), gates[GATE_DENY]);
    assert_int_equal(atomic_load(&counters(5)->refused), 0);
    for (size_t k = 0; k < 5; k++)
        assert_true(gates[k] > 0);
    assert_true(atomic_load(&counters(5)->shadowed) > 0);
}

/* ---- what the client reads ---- */

static void assert_refusal(enum action action, int64_t wait_ns, const char *expected)
{
    static struct limit write = {.label = "free/write"};
    write.action = (uint8_t)action;
    struct verdict refused = {.limit = &write, .wait_ns = wait_ns};
    char *out = malloc(REFUSAL_ROOM);
    size_t len = refusal_text(out, SLICE("THROTTLED"), &refused);
    if (!slice_eq(slice_of(out, len), slice_str(expected)))
        fail_msg("%.*s is not %s", (int)len, out, expected);
    free(out);
}

/* Near one limit, near several, and near a limit on calls. */
static void who_is_near_a_limit_is_counted(void **state)
{
    (void)state;
    limit("cmd.get", "10/s");
    limit("cmd.set", "10/s");
    limit("cmd.set", "100/m burst 5");
    limit("cmd.del", "20/s");
    limit("inflight", "5");
    open_gate();
    for (int i = 0; i < 5; i++)
        assert_true(pass("set", START));
    assert_false(pass("set", START));
    assert_int_equal(atomic_load(&counters(1)->near), 0);
    assert_int_equal(atomic_load(&counters(2)->near), 1); /* the last of five */
    assert_int_equal(atomic_load(&counters(4)->near), 1);
    gate_calls_end(&target, 5, 0);
    for (int i = 0; i < 10; i++) {
        assert_true(pass("get", START));
        gate_calls_end(&target, 1, 0);
    }
    assert_int_equal(atomic_load(&counters(0)->near), 2);
    assert_int_equal(atomic_load(&counters(3)->near), 0);
}

static void who_is_near_plain_limits_is_counted(void **state)
{
    (void)state;
    limit("read", "10/s");
    limit("all", "10/s burst 20");
    open_gate();
    assert_true(policy->is_plain);
    for (int i = 0; i < 10; i++)
        assert_true(pass("get", START));
    for (int i = 0; i < 8; i++)
        assert_true(pass("set", START));
    assert_int_equal(atomic_load(&counters(0)->near), 2);
    assert_int_equal(atomic_load(&counters(1)->near), 2); /* the 17th and the 18th of 20 */
}

static void refusals_are_read_as_printed(void **state)
{
    (void)state;
    assert_refusal(OVER_REFUSE, 1, "-THROTTLED retry_in_ms=1 limit=free/write\r\n");
    assert_refusal(OVER_REFUSE, 999999, "-THROTTLED retry_in_ms=1 limit=free/write\r\n");
    assert_refusal(OVER_REFUSE, 1000000, "-THROTTLED retry_in_ms=1 limit=free/write\r\n");
    assert_refusal(OVER_REFUSE, 1000001, "-THROTTLED retry_in_ms=2 limit=free/write\r\n");
    assert_refusal(OVER_REFUSE, 37000000, "-THROTTLED retry_in_ms=37 limit=free/write\r\n");
    assert_refusal(OVER_DELAY, 0, "-THROTTLED retry_in_ms=0 limit=free/write\r\n");
    assert_refusal(OVER_CLOSE, GATE_NEVER, "-THROTTLED retry_in_ms=-1 limit=free/write\r\n");
    assert_refusal(OVER_REFUSE, GATE_NEVER - 1,
                   "-THROTTLED retry_in_ms=9223372036855 limit=free/write\r\n");
    assert_refusal(OVER_DENY, GATE_NEVER, "-NOPERM denied by policy free\r\n");
}

static void the_longest_refusal_fits(void **state)
{
    (void)state;
    struct limit longest = {.action = OVER_REFUSE};
    struct verdict refused = {.limit = &longest, .wait_ns = GATE_NEVER - 1};
    char prefix[100], *out = malloc(REFUSAL_ROOM);
    memset(prefix, 'P', sizeof prefix);
    memset(longest.label, 'l', sizeof longest.label);
    longest.label[sizeof longest.label - 1] = '\0';
    size_t len = refusal_text(out, slice_of(prefix, sizeof prefix), &refused);
    assert_true(len <= REFUSAL_ROOM);
    assert_memory_equal(out + len - 3, "l\r\n", 3);
    longest.action = OVER_DENY;
    assert_true(refusal_text(out, slice_of(prefix, sizeof prefix), &refused) <= REFUSAL_ROOM);
    free(out);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_no_limit_binds_passes),
        TEST(one_limit_decides_on_its_word),
        TEST(the_longest_wait_is_told),
        TEST(the_longest_wait_of_all_kinds),
        TEST(a_refusal_charges_nobody),
        TEST(whoever_refuses_nobody_is_charged),
        TEST(costs_beyond_the_burst_never_pass),
        TEST(control_passes_always),
        TEST(newer_commands_count_as_unknown),
        TEST(only_the_scopes_there_are_need_a_holder),
        TEST(joint_limits_equal_single_ones),
        TEST(any_limits_equal_single_ones),
        TEST(deny_is_for_ever),
        TEST(denied_before_anything_else),
        TEST(close_and_refuse_together),
        TEST(dry_is_the_same_and_touches_nothing),
        TEST(failed_logins_are_counted),
        TEST(failed_logins_in_shadow),
        TEST(standings),
        TEST(what_remains_passes),
        TEST(scopes_share_as_they_say),
        TEST(every_ask_is_counted_once),
        TEST(who_is_near_a_limit_is_counted),
        TEST(who_is_near_plain_limits_is_counted),
        TEST(refusals_are_read_as_printed),
        TEST(the_longest_refusal_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
