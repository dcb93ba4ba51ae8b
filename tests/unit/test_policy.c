/* Policies: lines in, binds and matches out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "limit/policy.h"
#include "policy_kit.h"

#define S UINT64_C(1000000000)

static char why[256];
static struct command_table *table;
static struct policies *policies;

static int set_up(void **state)
{
    (void)state;
    table = command_table_builtin();
    policies = policies_new(classes_new());
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    policies_put(policies);
    command_table_put(table);
    return 0;
}

static void assert_says(const char *part)
{
    if (!strstr(why, part))
        fail_msg("\"%s\" does not say \"%s\"", why, part);
}

static uint64_t binds(const struct policy *policy, const char *command)
{
    return policy->binds[kit_command(table, command)->id];
}

static void names(void **state)
{
    (void)state;
    struct policy *free_policy = kit_policy(policies, "Free");
    assert_string_equal(free_policy->name, "free");
    assert_ptr_equal(kit_policy(policies, "FREE"), free_policy);
    assert_int_equal(kit_policy(policies, "a.b-c_9")->index, 1);
    assert_int_equal(policies_count(policies), 2);
    assert_ptr_equal(policies_at(policies, 0), free_policy);

    static const char *const bad[] = {"", "a b", "a/b", "a\r", "\xc3\xa9", "012345678901234567890123456789012"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_null(policies_add(policies, slice_str(bad[i]), why, sizeof why));
        assert_says("is not a policy's name");
    }
    kit_policy(policies, "01234567890123456789012345678901");
}

static void policies_have_an_end(void **state)
{
    (void)state;
    char name[20];
    struct policy *first = kit_policy(policies, "p0");
    for (int i = 1; i < 1024; i++) {
        snprintf(name, sizeof name, "p%d", i);
        kit_policy(policies, name);
    }
    assert_null(policies_add(policies, SLICE("more"), why, sizeof why));
    assert_says("already 1024 policies");
    assert_ptr_equal(kit_policy(policies, "p0"), first);
}

static void limits_are_labelled(void **state)
{
    (void)state;
    struct policy *policy = kit_policy(policies, "Free");
    kit_limit(policies, policy, table, "WRITE", "200/s burst 400, 10000/h");
    kit_limit(policies, policy, table, "cmd.PUBLISH", "50/s");
    kit_limit(policies, policy, table, "@slow", "5/s");
    assert_int_equal(policy->n_limits, 4);
    assert_string_equal(policy->limits[0].label, "free/write");
    assert_string_equal(policy->limits[1].label, "free/write");
    assert_string_equal(policy->limits[2].label, "free/cmd.publish");
    assert_string_equal(policy->limits[3].label, "free/@slow");
    assert_int_equal(policy->limits[0].rate.burst, 400);
    assert_int_equal(policy->limits[1].rate.period_ns, 3600 * S);
}

static void wrong_limits_change_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *what, *expression, *says;
    } bad[] = {
        {"write", "200/s, 10/x", "is not a time"},
        {"write", "200/s,", "a limit is missing"},
        {"write", "", "a limit is missing"},
        {"write", "deny", "\"deny\" is not yet supported"},
        {"write", " DENY ", "\"deny\" is not yet supported"},
        {"wirte", "1/s", "write"},
        {"cost", "1/s", "limits in unit cost are not yet supported"},
        {"bytes-in", "1mb/s", "limits in unit bytes-in are not yet supported"},
        {"bytes-out", "1mb/s", "limits in unit bytes-out are not yet supported"},
        {"inflight", "64", "limits in unit inflight are not yet supported"},
        {"connections", "50", "limits in unit connections are not yet supported"},
        {"Connects", "10/s", "limits in unit Connects are not yet supported"},
        {"control", "5/s", "class control is never refused"},
        {"cmd.ping", "5/s", "class control is never refused, and cmd.ping"},
        {"read", "5/s over delay 1s", "\"over delay\" is not yet supported"},
    };
    struct policy *policy = kit_policy(policies, "free");
    kit_limit(policies, policy, table, "read", "1/s");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (policy_add_limits(policies, policy, table, slice_str(bad[i].what), slice_str(bad[i].expression), why,
                              sizeof why))
            fail_msg("%s = %s passed", bad[i].what, bad[i].expression);
        assert_says(bad[i].says);
        assert_int_equal(policy->n_limits, 1);
    }
}

static void limits_have_an_end(void **state)
{
    (void)state;
    struct policy *policy = kit_policy(policies, "free");
    for (int i = 0; i < 21; i++)
        kit_limit(policies, policy, table, "read", "1/s, 2/s, 3/s");
    assert_false(policy_add_limits(policies, policy, table, SLICE("read"), SLICE("1/s, 2/s"), why, sizeof why));
    assert_says("more than 64 limits");
    assert_int_equal(policy->n_limits, 63);
    kit_limit(policies, policy, table, "read", "1/s");
    policies_bind(policies, table);
    assert_int_equal(binds(policy, "get"), UINT64_MAX);
}

static void limits_bind_their_class(void **state)
{
    (void)state;
    struct policy *policy = kit_policy(policies, "free");
    kit_limit(policies, policy, table, "read", "1000/s");
    kit_limit(policies, policy, table, "write", "200/s, 10000/h");
    kit_limit(policies, policy, table, "all", "1/s");
    policies_bind(policies, table);
    assert_int_equal(policy->n_binds, command_table_count(table));
    assert_int_equal(binds(policy, "get"), 1 | 8);
    assert_int_equal(binds(policy, "set"), 2 | 4 | 8);
    assert_int_equal(binds(policy, "config|get"), 8);
    assert_int_equal(policy->binds[0], 8); /* unknown commands are in all */
    assert_true(policy->is_joint);
}

static void control_is_never_bound(void **state)
{
    (void)state;
    struct policy *policy = kit_policy(policies, "free");
    kit_limit(policies, policy, table, "all", "1/s");
    kit_limit(policies, policy, table, "@fast", "1/s");
    policies_bind(policies, table);
    static const char *const control[] = {"ping", "auth", "hello", "select", "multi", "exec", "quit", "unwatch"};
    for (size_t i = 0; i < sizeof control / sizeof control[0]; i++)
        assert_int_equal(binds(policy, control[i]), 0);
    assert_int_equal(binds(policy, "get"), 3);
}

static void several_limits_are_joint(void **state)
{
    (void)state;
    struct policy *single = kit_policy(policies, "single");
    kit_limit(policies, single, table, "cmd.get", "1/s");
    struct policy *twice = kit_policy(policies, "twice");
    kit_limit(policies, twice, table, "cmd.get", "1/s, 2/h");
    policies_bind(policies, table);
    assert_false(single->is_joint);
    assert_true(twice->is_joint);
}

static void binding_again_starts_anew(void **state)
{
    (void)state;
    struct policy *policy = kit_policy(policies, "free");
    kit_limit(policies, policy, table, "read", "1000/s");
    policies_bind(policies, table);
    policies_bind(policies, table);
    assert_int_equal(binds(policy, "get"), 1);
    assert_int_equal(binds(policy, "set"), 0);
}

static const char *matched(const char *user, const char *address)
{
    struct facts facts = {.user = slice_str(user)};
    if (*address)
        assert_true(ip_parse(slice_str(address), &facts.ip));
    const struct policy *policy = policies_match(policies, &facts);
    return policy ? policy->name : "none";
}

static void first_match_in_file_order_binds(void **state)
{
    (void)state;
    kit_policy(policies, "default");
    kit_match(kit_policy(policies, "free"), "user:free-*, ip:10.1.0.0/16");
    kit_match(kit_policy(policies, "all-users"), "user:*");
    kit_policy(policies, "nobody");
    assert_string_equal(matched("free-1", ""), "free");
    assert_string_equal(matched("paid-1", "10.1.2.3"), "free");
    assert_string_equal(matched("paid-1", "10.2.2.3"), "all-users");
    assert_string_equal(matched("", "10.2.2.3"), "default");
    assert_string_equal(matched("", ""), "default");
}

static void without_default_the_rest_is_unlimited(void **state)
{
    (void)state;
    assert_string_equal(matched("a", ""), "none");
    kit_match(kit_policy(policies, "free"), "user:free-*");
    assert_string_equal(matched("a", ""), "none");
}

static void matches_add_up_or_change_nothing(void **state)
{
    (void)state;
    struct policy *policy = kit_policy(policies, "free");
    assert_false(policy_can_match(policy));
    assert_true(policy_can_match(kit_policy(policies, "Default")));
    kit_match(policy, "user:a");
    assert_false(policy_add_match(policy, SLICE("user:b, user:c, ip:nonsense"), why, sizeof why));
    assert_says("is not an address");
    assert_false(policy_add_match(policy, SLICE("user:b,"), why, sizeof why));
    assert_says("a term is missing");
    assert_int_equal(policy->n_matches, 1);
    kit_match(policy, "user:d,name:e");
    assert_int_equal(policy->n_matches, 3);
    assert_true(policy_can_match(policy));
    assert_string_equal(matched("d", ""), "free");
    assert_string_equal(matched("b", ""), "default");
}

/* A command table without SET, the rest of which has other ids. */
static struct command_table *other_table(void)
{
    struct command_table *other = command_table_new();
    struct slice categories[] = {SLICE("read")};
    struct command_info info = {SLICE("get"), 2, 1, 1, 1, CMD_READONLY, categories, 1};
    command_table_add(other, &info);
    return other;
}

static void a_copy_serves_another_table(void **state)
{
    (void)state;
    struct policy *policy = kit_policy(policies, "free");
    kit_match(policy, "user:*");
    kit_limit(policies, policy, table, "write", "1/s");
    kit_limit(policies, policy, table, "read", "1/s");
    policies_bind(policies, table);

    struct command_table *other = other_table();
    struct policies *copy = policies_rebind(policies, other);
    struct policies *copy_of_copy = policies_rebind(copy, table);
    const struct policy *copied = policies_at(copy, 0);
    assert_int_equal(copied->n_binds, command_table_count(other));
    assert_int_equal(copied->binds[command_by_name(other, SLICE("get"))->id], 2);
    assert_int_equal(binds(policy, "set"), 1);
    assert_ptr_equal(copied->limits, policy->limits);
    policies_put(copy);

    /* The set it came from may go first. */
    policies_put(policies);
    policies = copy_of_copy;
    assert_int_equal(binds(policies_at(policies, 0), "get"), 2);
    assert_string_equal(matched("anybody", ""), "free");
    command_table_put(other);
}

static void references_are_counted(void **state)
{
    (void)state;
    assert_ptr_equal(policies_get(policies), policies);
    policies_put(policies);
    assert_int_equal(policies_count(policies), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names),
        TEST(policies_have_an_end),
        TEST(limits_are_labelled),
        TEST(wrong_limits_change_nothing),
        TEST(limits_have_an_end),
        TEST(limits_bind_their_class),
        TEST(control_is_never_bound),
        TEST(several_limits_are_joint),
        TEST(binding_again_starts_anew),
        TEST(first_match_in_file_order_binds),
        TEST(without_default_the_rest_is_unlimited),
        TEST(matches_add_up_or_change_nothing),
        TEST(a_copy_serves_another_table),
        TEST(references_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
