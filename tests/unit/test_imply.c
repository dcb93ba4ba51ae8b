/*
 * Tests of limits and matches without effect: each claim by example. Random traffic checks limits
 * that are reported as redundant.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "dice.h"
#include "gate_kit.h"
#include "limit/policy/imply.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- terms ---- */

static struct match term(const char *text)
{
    char why[256] = "";
    struct match match;
    if (!match_parse(&match, slice_str(text), why, sizeof why))
        fail_msg("%s: %s", text, why);
    return match;
}

static void terms_cover_others(void **state)
{
    static const struct {
        const char *wide, *narrow;
        bool covers;
    } cases[] = {
        {"user:a", "user:a", true},
        {"user:a", "user:b", false},
        {"user:*", "user:b*", true},
        {"user:b*", "user:*", false},
        {"user:b*", "user:b?c*", true},
        {"user:*a*", "user:[abc]", false}, /* a letter of a set is no letter of the text */
        {"user:*a*", "user:x\\a", false},
        {"user:[abc]", "user:[abc]", true},
        {"user:[ab]*", "user:alice", true},
        {"user:a?", "user:a*", false},
        {"user:*", "name:a", false},
        {"ip:10.0.0.0/8", "ip:10.1.0.0/16", true},
        {"ip:10.1.0.0/16", "ip:10.0.0.0/8", false},
        {"ip:10.0.0.0/8", "ip:11.0.0.1", false},
        {"ip:0.0.0.0/0", "ip:::1", false},
        {"ip:0.0.0.0/0", "listener:*", false},
        {"listener:*", "ip:10.0.0.1", true},
        {"listener:*", "key:*", true},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct match wide = term(cases[i].wide), narrow = term(cases[i].narrow);
        if (match_covers(&wide, &narrow) != cases[i].covers)
            fail_msg("%s, %s", cases[i].wide, cases[i].narrow);
        match_fini(&wide);
        match_fini(&narrow);
    }
}

static void policies_that_bind_nobody(void **state)
{
    (void)state;
    kit_match(policy, "user:a*, ip:10.0.0.0/8");
    struct policy *second = kit_policy(policies, "second");
    kit_match(second, "user:b, name:x");
    struct policy *third = kit_policy(policies, "third");
    kit_match(third, "user:b, ip:10.1.0.0/16, user:abc");
    struct policy *rest = kit_policy(policies, "default");
    assert_null(policies_covering(policies, policy));
    assert_null(policies_covering(policies, second));
    assert_ptr_equal(policies_covering(policies, third), second);
    assert_null(policies_covering(policies, rest));
    kit_match(third, "user:c");
    assert_null(policies_covering(policies, third));
    struct policy *last = kit_policy(policies, "last");
    kit_match(last, "listener:*");
    assert_ptr_equal(policies_covering(policies, rest), last);
}

static void whom_another_policy_binds(void **state)
{
    (void)state;
    const struct policy *other;
    struct facts bob = {.user = SLICE("bob")}, zoe = {.user = SLICE("zoe")};
    kit_match(policy, "user:b*");
    struct policy *hosts = kit_policy(policies, "hosts");
    kit_match(hosts, "ip:10.0.0.0/8");
    struct policy *users = kit_policy(policies, "users");
    kit_match(users, "user:*");
    struct policy *rest = kit_policy(policies, "default");
    kit_bind(policies, registry, table);
    assert_true(policies_bind_elsewhere(policies, users, &bob, SLICE("user"), &other) &&
                other == policy);
    assert_true(policies_bind_elsewhere(policies, hosts, &bob, SLICE("user"), &other) &&
                other == policy);
    assert_true(policies_bind_elsewhere(policies, rest, &zoe, SLICE("user"), &other) &&
                other == users);
    assert_true(policies_bind_elsewhere(policies, policy, &zoe, SLICE("user"), &other) &&
                other == users);
    /* matched by address */
    assert_false(policies_bind_elsewhere(policies, hosts, &zoe, SLICE("user"), &other));
    assert_false(policies_bind_elsewhere(policies, users, &zoe, SLICE("user"), &other));
    struct facts nobody = {.name = SLICE("etl")};
    /* the client may log in */
    assert_false(policies_bind_elsewhere(policies, users, &nobody, SLICE("name"), &other));
}

/* ---- limits ---- */

/* True if the second line's limit is reported to be redundant beside the first's. */
static bool is_idle(const char *what, const char *expression, const char *other,
                    const char *other_expression)
{
    new_rules();
    limit(what, expression);
    limit(other, other_expression);
    kit_bind(policies, registry, table);
    return policy_stricter(policy, 1) != NULL;
}

static void limits_that_never_bind(void **state)
{
    (void)state;
    assert_true(is_idle("all", "10/s", "read", "10/s"));
    assert_true(is_idle("all", "10/s", "read", "20/s"));
    assert_true(is_idle("all", "10/s", "read", "601/m"));
    assert_true(is_idle("all", "10/s over close", "read", "20/s over delay 1s burst 10"));
    assert_true(is_idle("all", "10/s per policy", "read", "20/s"));
    assert_true(is_idle("@dangerous", "deny", "cmd.keys", "1/s"));
    assert_true(is_idle("inflight", "10", "inflight", "11"));
    assert_true(is_idle("bytes-in", "1kb/s", "bytes-in", "1mb/s"));
    assert_true(is_idle("cost", "5/s", "cost", "6/s"));
    assert_true(is_idle("connections", "5", "connections", "6"));
}

static void limits_that_may_bind(void **state)
{
    (void)state;
    assert_false(is_idle("all", "10/s", "read", "9/s"));
    assert_false(is_idle("all", "10/s", "read", "11/s burst 9"));
    assert_false(is_idle("read", "10/s", "all", "20/s"));
    assert_false(is_idle("read", "10/s", "write", "20/s"));
    assert_false(is_idle("all", "10/s over shadow", "read", "20/s"));
    assert_false(is_idle("all", "10/s over delay 1s", "read", "20/s"));
    assert_false(is_idle("all", "10/s", "read", "20/s over shadow"));
    assert_false(is_idle("all", "10/s", "read", "20/s per policy"));
    assert_false(is_idle("all", "10/s per connection", "read", "20/s"));
    assert_false(is_idle("all", "10/s", "cost", "20/s"));
    assert_false(is_idle("all", "10/s", "control", "20/s over close"));
    assert_false(is_idle("@dangerous", "deny", "all", "10/s"));
    assert_false(is_idle("all", "10/s", "cmd.keys", "deny"));
}

/* Of two equal limits one stays. */
static void of_equals_the_first_stays(void **state)
{
    (void)state;
    limit("read", "10/s, 10/s");
    kit_bind(policies, registry, table);
    assert_null(policy_stricter(policy, 0));
    assert_ptr_equal(policy_stricter(policy, 1), &policy->limits[0]);
}

/* ---- beside traffic ---- */

static void random_limit(uint64_t *seed, char *text, size_t size)
{
    static const char *const actions[] = {"refuse", "close", "delay 1s"};
    static const char *const scopes[] = {"subject", "connection", "policy"};
    unsigned long long count = dice_scale(seed, 50000000), burst = dice_scale(seed, 50);
    const char *period = dice_below(seed, 2) ? "s" : "m";
    const char *scope = scopes[dice_below(seed, 3)], *action = actions[dice_below(seed, 3)];
    snprintf(text, size, "%llu/%s burst %llu per %s over %s", count, period, burst, scope, action);
}

/* The policy "free" has both limits, "alone" only the stricter one: the decisions are equal. */
static void compare(uint64_t seed, const struct policy *alone)
{
    static const char *const commands[] = {"get", "set", "keys"};
    struct charge_target both = kit_target(subjects, policy, "user:a", START);
    struct charge_target one = kit_target(subjects, alone, "user:a", START);
    uint64_t now = START;
    for (int i = 0; i < 300; i++) {
        const struct gate_request wish =
            ask_of(commands[dice_below(&seed, 3)], 1, now += dice_scale(&seed, S));
        enum gate here = gate_ask(&both, &wish, limit_counters, &verdict);
        if (here != gate_ask(&one, &wish, limit_counters, &verdict))
            fail_msg("seed %llu, step %d", (unsigned long long)seed, i);
    }
    kit_target_put(subjects, &both);
    kit_target_put(subjects, &one);
}

static void what_is_implied_never_refuses(void **state)
{
    static const char *const classes[] = {"all", "read", "write", "@keyspace"};
    unsigned found = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= dice_rounds(400); seed++) {
        uint64_t dice_state = seed;
        char strict[128], loose[128];
        char free_name[32], alone_name[32];
        random_limit(&dice_state, strict, sizeof strict);
        random_limit(&dice_state, loose, sizeof loose);
        const char *wide = classes[dice_below(&dice_state, 4)],
                   *narrow = classes[dice_below(&dice_state, 4)];
        struct policies *set = policies_new(classes_new());
        snprintf(free_name, sizeof free_name, "free%u", (unsigned)(seed % 100));
        snprintf(alone_name, sizeof alone_name, "alone%u", (unsigned)(seed % 100));
        policy = kit_policy(set, free_name);
        struct policy *alone = kit_policy(set, alone_name);
        kit_limit(set, alone, table, wide, strict);
        kit_limit(set, policy, table, wide, strict);
        kit_limit(set, policy, table, narrow, loose);
        kit_bind(set, registry, table);
        if (policy_stricter(policy, 1) == &policy->limits[0]) {
            found++;
            compare(seed, alone);
        }
        policies_put(set);
    }
    assert_true(found > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terms_cover_others),
        cmocka_unit_test_setup_teardown(policies_that_bind_nobody, set_up, tear_down),
        cmocka_unit_test_setup_teardown(whom_another_policy_binds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(limits_that_never_bind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(limits_that_may_bind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(of_equals_the_first_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_implied_never_refuses, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
