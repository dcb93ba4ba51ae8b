/* The gate: which limit decides, what is charged, what the client reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dice.h"
#include "limit/gate.h"
#include "policy_kit.h"

#define S UINT64_C(1000000000)
#define MS UINT64_C(1000000)

static struct command_table *table;
static struct policies *policies;
static struct policy *policy;
static struct subjects *subjects;
static struct subject *subject;
static struct verdict verdict;

static int set_up(void **state)
{
    (void)state;
    table = command_table_builtin();
    policies = policies_new(classes_new());
    policy = kit_policy(policies, "free");
    subjects = subjects_new(10);
    memset(&verdict, 0, sizeof verdict);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    subjects_free(subjects);
    policies_put(policies);
    command_table_put(table);
    return 0;
}

static void limit(const char *what, const char *expression)
{
    kit_limit(policies, policy, table, what, expression);
}

static void open_gate(void)
{
    policies_bind(policies, table);
    subject = subject_get(subjects, policy, SLICE("user:a"), 0);
}

static bool pass(const char *command, uint64_t cost, uint64_t now_ns)
{
    return gate_pass(policy, subject, kit_command(table, command), cost, now_ns, &verdict);
}

static uint64_t word(size_t funnel)
{
    return atomic_load(&subject->funnels[funnel].tat_ns);
}

static void what_no_limit_binds_passes(void **state)
{
    (void)state;
    limit("write", "1/s");
    open_gate();
    for (int i = 0; i < 100; i++)
        assert_true(pass("get", 1, 0));
    assert_int_equal(word(0), 0);
}

static void one_limit_decides_on_its_word(void **state)
{
    (void)state;
    limit("write", "10/s burst 2");
    open_gate();
    assert_false(policy->is_joint);
    assert_true(pass("set", 1, 0));
    assert_true(pass("del", 1, 0));
    assert_false(pass("set", 1, 0));
    assert_ptr_equal(verdict.limit, &policy->limits[0]);
    assert_int_equal(verdict.wait_ns, 100 * MS);
    assert_false(pass("set", 1, 100 * MS - 1));
    assert_int_equal(verdict.wait_ns, 1);
    assert_true(pass("set", 1, 100 * MS));
}

static void the_longest_wait_is_told(void **state)
{
    (void)state;
    limit("all", "10/s burst 1");
    limit("write", "1/s burst 1");
    limit("cmd.set", "5/s burst 1");
    open_gate();
    assert_true(policy->is_joint);
    assert_true(pass("set", 1, 0));
    assert_false(pass("set", 1, 0));
    assert_string_equal(verdict.limit->label, "free/write");
    assert_int_equal(verdict.wait_ns, S);
    assert_false(pass("get", 1, 0));
    assert_string_equal(verdict.limit->label, "free/all");
    assert_int_equal(verdict.wait_ns, 100 * MS);
    assert_true(pass("get", 1, 100 * MS));
}

static void a_refusal_charges_nobody(void **state)
{
    (void)state;
    limit("all", "1000/s");
    limit("write", "1/s burst 1");
    open_gate();
    assert_true(pass("set", 1, 5));
    uint64_t all = word(0), write = word(1);
    for (int i = 0; i < 10; i++)
        assert_false(pass("set", 1, 6));
    assert_int_equal(word(0), all);
    assert_int_equal(word(1), write);
    assert_int_equal(atomic_load(&subject->lock), 0);
}

static void costs_beyond_the_burst_never_pass(void **state)
{
    (void)state;
    limit("write", "1/s burst 3");
    limit("all", "1000/s");
    open_gate();
    assert_false(pass("set", 4, 0));
    assert_string_equal(verdict.limit->label, "free/write");
    assert_true(verdict.wait_ns == GATE_NEVER);
    assert_true(pass("set", 3, 0));
    assert_int_equal(word(0), 3 * S);
    assert_int_equal(word(1), 3 * MS);
}

static void control_passes_always(void **state)
{
    (void)state;
    limit("all", "1/d burst 1");
    open_gate();
    assert_true(pass("get", 1, 0));
    for (int i = 0; i < 100; i++) {
        assert_true(pass("ping", 1, 0));
        assert_true(pass("exec", 1, 0));
    }
    assert_false(pass("get", 1, 0));
}

static void newer_commands_count_as_unknown(void **state)
{
    (void)state;
    limit("all", "1/s burst 1");
    open_gate();
    struct command newer = {.id = UINT16_MAX};
    assert_true(gate_pass(policy, subject, &newer, 1, 0, &verdict));
    assert_false(gate_pass(policy, subject, &newer, 1, 0, &verdict));
    assert_false(gate_pass(policy, subject, command_table_row(table, 0), 1, 0, &verdict));
}

/* Joint limits are the same as each limit by itself, asked first. */
static void joint_limits_equal_single_ones(void **state)
{
    (void)state;
    limit("all", "100/s burst 20");
    limit("write", "30/s burst 10, 1000/m burst 100");
    open_gate();
    struct funnel model[3] = {{0}};
    static const char *const commands[] = {"get", "set", "del"};
    uint64_t seed = 9, now_ns = 0;
    for (int i = 0; i < 20000; i++) {
        uint64_t longest_ns = 0, cost = 1 + dice_below(&seed, 4);
        size_t command = dice_below(&seed, 3), n = command == 0 ? 1 : 3;
        now_ns += dice_below(&seed, 30 * MS);
        for (size_t k = 0; k < n; k++) {
            uint64_t wait_ns = funnel_ask(&model[k], &policy->limits[k].rate, now_ns, cost);
            longest_ns = wait_ns > longest_ns ? wait_ns : longest_ns;
        }
        for (size_t k = 0; k < n && longest_ns == 0; k++)
            assert_int_equal(funnel_take(&model[k], &policy->limits[k].rate, now_ns, cost), 0);
        assert_int_equal(pass(commands[command], cost, now_ns), longest_ns == 0);
        if (longest_ns > 0)
            assert_int_equal(verdict.wait_ns, longest_ns);
    }
}

static void assert_refusal(int64_t wait_ns, const char *expected)
{
    static struct limit write = {.label = "free/write"};
    struct verdict refused = {&write, wait_ns};
    char *out = malloc(GATE_REFUSAL_ROOM);
    size_t len = gate_refusal(out, SLICE("THROTTLED"), &refused);
    if (!slice_eq(slice_of(out, len), slice_str(expected)))
        fail_msg("%.*s is not %s", (int)len, out, expected);
    free(out);
}

static void refusals_are_read_as_printed(void **state)
{
    (void)state;
    assert_refusal(1, "-THROTTLED retry_in_ms=1 limit=free/write\r\n");
    assert_refusal(999999, "-THROTTLED retry_in_ms=1 limit=free/write\r\n");
    assert_refusal(1000000, "-THROTTLED retry_in_ms=1 limit=free/write\r\n");
    assert_refusal(1000001, "-THROTTLED retry_in_ms=2 limit=free/write\r\n");
    assert_refusal(37000000, "-THROTTLED retry_in_ms=37 limit=free/write\r\n");
    assert_refusal(0, "-THROTTLED retry_in_ms=0 limit=free/write\r\n");
    assert_refusal(GATE_NEVER, "-THROTTLED retry_in_ms=-1 limit=free/write\r\n");
    assert_refusal(GATE_NEVER - 1, "-THROTTLED retry_in_ms=9223372036855 limit=free/write\r\n");
}

static void the_longest_refusal_fits(void **state)
{
    (void)state;
    struct limit longest;
    struct verdict refused = {&longest, GATE_NEVER - 1};
    char prefix[100], *out = malloc(GATE_REFUSAL_ROOM);
    memset(prefix, 'P', sizeof prefix);
    memset(longest.label, 'l', sizeof longest.label);
    longest.label[sizeof longest.label - 1] = '\0';
    size_t len = gate_refusal(out, slice_of(prefix, sizeof prefix), &refused);
    assert_true(len <= GATE_REFUSAL_ROOM);
    assert_memory_equal(out + len - 3, "l\r\n", 3);
    free(out);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_no_limit_binds_passes),        TEST(one_limit_decides_on_its_word),
        TEST(the_longest_wait_is_told),          TEST(a_refusal_charges_nobody),
        TEST(costs_beyond_the_burst_never_pass), TEST(control_passes_always),
        TEST(newer_commands_count_as_unknown),   TEST(joint_limits_equal_single_ones),
        TEST(refusals_are_read_as_printed),      TEST(the_longest_refusal_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
