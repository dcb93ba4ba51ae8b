/* Tests of policies: lines in, binds and matches out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/slice.h"
#include "limit/policy/policy.h"
#include "limit/queue.h"
#include "policy_kit.h"
#include "resp/emit.h"

#define S UINT64_C(1000000000)

static char why[256];
static struct command_table *table;
static struct policies *policies;
static struct registry *registry;

static int set_up(void **state)
{
    (void)state;
    table = command_table_builtin();
    policies = policies_new(classes_new());
    registry = registry_new();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    policies_put(policies);
    registry_free(registry);
    command_table_put(table);
    return 0;
}

static void bind(void)
{
    kit_bind(policies, registry, table);
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

    static const char *const bad[] = {"",    "a b",      "a/b",
                                      "a\r", "\xc3\xa9", "012345678901234567890123456789012"};
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
    assert_says("at most 1024");
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
        {"write", "deny, 5/s", "deny refuses everything"},
        {"write", "5/s, deny", "deny refuses everything"},
        {"read", "deny", "deny refuses everything"}, /* there is a limit on the class already */
        {"@list", "5/s", "deny refuses everything"}, /* the class is denied already */
        {"@list", "deny", "deny refuses everything"},
        {"cost", "deny", "only a class of commands can be denied"},
        {"inflight", "deny", "only a class of commands can be denied"},
        {"wirte", "1/s", "write"},
        {"set", "1/s", "did you mean cmd.set?"},
        {"cost", "1mb/s", "count bytes"},
        {"bytes-in", "1m/s", "is not a size"},
        {"inflight", "64/s", "without a period"},
        {"Connections", "50 per connection", "connections cannot be counted per connection"},
        {"connects", "10/s over delay 1s", "connects cannot be limited with over delay"},
        {"auth-failures", "10/s over refuse", "auth-failures cannot be limited with over refuse"},
        {"control", "5/s",
         "control is part of class control, which is never refused: write over delay or over close"},
        {"control", "deny", "which is never refused"},
        {"cmd.ping", "5/s", "cmd.ping is part of class control"},
        {"cmd.ping", "5/s over close, 5/s", "cmd.ping is part of class control"},
        {"cmd.limit|status", "deny", "is part of class control"},
    };
    struct policy *policy = kit_policy(policies, "free");
    kit_limit(policies, policy, table, "read", "1/s");
    kit_limit(policies, policy, table, "@list", "deny");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (policy_add_limits(policies, policy, table, slice_str(bad[i].what),
                              slice_str(bad[i].expression), why, sizeof why))
            fail_msg("%s = %s passed", bad[i].what, bad[i].expression);
        assert_says(bad[i].says);
        assert_int_equal(policy->n_limits, 2);
    }
}

/* Control commands may be delayed, closed and counted, but not refused. */
static void control_may_be_delayed_closed_and_counted(void **state)
{
    (void)state;
    struct policy *policy = kit_policy(policies, "free");
    kit_limit(policies, policy, table, "control",
              "5/s over delay 1s, 5/s over close, 5/s over shadow");
    kit_limit(policies, policy, table, "cmd.ping", "5/s over close");
    bind();
    assert_int_equal(binds(policy, "ping"), 15);
    assert_int_equal(binds(policy, "exec"), 7);
    assert_int_equal(binds(policy, "limit|status"), 7);
    assert_int_equal(binds(policy, "limit|top"), 0);
    assert_int_equal(binds(policy, "get"), 0);
    assert_int_equal(policy->shadows, 4);
}

static void deny_is_a_limit_too(void **state)
{
    (void)state;
    struct policy *policy = kit_policy(policies, "free");
    kit_limit(policies, policy, table, "write", "1/s");
    kit_limit(policies, policy, table, "@scripting", " Deny ");
    bind();
    assert_int_equal(policy->n_limits, 2);
    assert_int_equal(policy->limits[1].action, OVER_DENY);
    assert_int_equal(policy->limits[1].unit, UNIT_COMMANDS);
    assert_string_equal(policy->limits[1].label, "free/@scripting");
    assert_int_equal(binds(policy, "eval"), 2);
    assert_int_equal(policy->of_action[OVER_DENY], 2);
    assert_false(policy->is_plain);
}

static void units_bind_when_they_are_asked(void **state)
{
    (void)state;
    struct policy *policy = kit_policy(policies, "free");
    static const char *const lines[][2] = {
        {"cost", "1/s"},          {"bytes-in", "1kb/s"},
        {"bytes-out", "1kb/s"},   {"inflight", "5"},
        {"connections", "5"},     {"connects", "5/s"},
        {"auth-failures", "5/m"}, {"write", "1/s per policy over shadow"}};
    for (size_t i = 0; i < 8; i++)
        kit_limit(policies, policy, table, lines[i][0], lines[i][1]);
    bind();
    assert_int_equal(binds(policy, "get"), 0x0f);
    assert_int_equal(binds(policy, "set"), 0x8f);
    assert_int_equal(binds(policy, "blpop"), 0x87); /* a blocking command is not in flight */
    assert_int_equal(binds(policy, "ping"), 0);
    assert_int_equal(policy->binds[0], 0x0f);
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(policy->of_unit[i < 7 ? unit_find(slice_str(lines[i][0])) : UNIT_COMMANDS],
                         1 << i);
    assert_int_equal(policy->of_scope[PER_POLICY], 0x80);
    assert_int_equal(policy->of_scope[PER_SUBJECT], 0x7f);
    assert_int_equal(policy->of_action[OVER_REFUSE], 0x0f);
    assert_int_equal(policy->of_action[OVER_CLOSE], 0x70);
    assert_int_equal(policy->shadows, 0x80);
    assert_string_equal(policy->limits[6].label, "free/auth-failures");
}

static void plain_and_joint(void **state)
{
    (void)state;
    static const struct {
        const char *what, *expression;
        bool is_plain, is_joint;
    } cases[] = {
        {"write", "1/s", true, false},
        {"write", "1/s, 5/h", true, true},
        {"write", "1/s per policy", false, false},
        {"write", "1/s per connection", false, false},
        {"write", "1/s over delay 1s", false, false},
        {"write", "1/s over close", false, false},
        {"write", "1/s over shadow", false, false},
        {"write", "deny", false, false},
        {"cost", "1/s", false, false},
        {"inflight", "1", false, false},
        {"bytes-in", "1/s", false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char name[20];
        snprintf(name, sizeof name, "p%zu", i);
        kit_limit(policies, kit_policy(policies, name), table, cases[i].what, cases[i].expression);
    }
    bind();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct policy *policy = policies_at(policies, i);
        if (policy->is_plain != cases[i].is_plain || policy->is_joint != cases[i].is_joint)
            fail_msg("%s = %s", cases[i].what, cases[i].expression);
        assert_int_equal(atomic_load(&policy->policy_state->is_locked),
                         policy->is_joint || !policy->is_plain);
    }
}

static void in_shadow_mode_all_are_shadows(void **state)
{
    (void)state;
    struct policy *policy = kit_policy(policies, "free");
    kit_limit(policies, policy, table, "write", "1/s");
    kit_limit(policies, policy, table, "read", "1/s over delay 1s, 2/s over shadow");
    assert_false(policies_is_shadow(policies));
    bind();
    assert_int_equal(policy->shadows, 4);
    policies_set_shadow(policies, true);
    bind();
    assert_true(policies_is_shadow(policies));
    assert_int_equal(policy->shadows, 7);
    assert_false(policy->is_plain);
    struct policies *copy = policies_rebind(policies, table);
    assert_true(policies_is_shadow(copy));
    assert_int_equal(policies_at(copy, 0)->shadows, 7);
    policies_put(copy);
}

/* ---- the registry ---- */

static void a_reload_finds_the_slots(void **state)
{
    (void)state;
    struct policy *policy = kit_policy(policies, "free");
    kit_limit(policies, policy, table, "write", "200/s, 10000/h");
    kit_limit(policies, policy, table, "inflight", "5");
    bind();
    uint16_t slots[3], ids[3];
    for (size_t i = 0; i < 3; i++) {
        slots[i] = policy->limits[i].slot;
        ids[i] = policy->limits[i].id;
    }
    struct policy_state *policy_state = policy->policy_state;
    assert_string_equal(policy_state->name, "free");
    assert_int_equal(atomic_load(&policy_state->slots[PER_SUBJECT]), 3);
    policies_put(policies);

    policies = policies_new(classes_new());
    kit_policy(policies, "other");
    policy = kit_policy(policies, "FREE");
    kit_limit(policies, policy, table, "inflight", "7 over shadow");
    kit_limit(policies, policy, table, "all", "1/s");
    /* on two lines: positions are numbered across lines */
    kit_limit(policies, policy, table, "Write", "7/s over delay 1s");
    kit_limit(policies, policy, table, "WRITE", "8/m burst 3, 9/m, 1/m per policy");
    bind();
    assert_ptr_equal(policy->policy_state, policy_state);
    assert_int_equal(policy->limits[0].slot, slots[2]);
    assert_int_equal(policy->limits[2].slot, slots[0]);
    assert_int_equal(policy->limits[3].slot, slots[1]);
    assert_int_equal(policy->limits[0].id, ids[2]);
    assert_int_equal(policy->limits[2].id, ids[0]);
    assert_int_equal(policy->limits[3].id, ids[1]);
    assert_int_equal(policy->limits[1].slot, 3);
    /* now a delaying limit: DEPARTURE_WORDS more */
    assert_int_equal(policy->limits[2].departures, 4);
    assert_int_equal(policy->limits[4].slot, 4 + DEPARTURE_WORDS);
    assert_int_equal(policy->limits[5].slot, 0);
    assert_int_equal(policy->limits[5].position, 3);
    assert_non_null(policy_state->everybody);
}

static void a_full_registry_says_so(void **state)
{
    (void)state;
    struct policy_state *policy_state = registry_policy(registry, SLICE("free"));
    for (uint16_t i = 0; i < REGISTRY_SLOTS_MAX; i++) {
        struct limit limit = {.position = i};
        assert_true(registry_enter(registry, policy_state, SLICE("cmd.x"), &limit));
    }
    struct policy *policy = kit_policy(policies, "free");
    kit_limit(policies, policy, table, "cmd.x", "1/s");
    assert_true(policies_enroll(policies, registry));
    kit_limit(policies, policy, table, "write", "1/s");
    assert_false(policies_enroll(policies, registry));
}

/* ---- costs ---- */

/* The cost of GET k, MGET k0 k1 ... */
static uint64_t cost(const char *command, uint32_t keys)
{
    char request[1000];
    int len = snprintf(request, sizeof request, "*%u\r\n$%zu\r\n%s\r\n", keys + 1, strlen(command),
                       command);
    for (uint32_t i = 0; i < keys; i++)
        len += snprintf(request + len, sizeof request - (size_t)len, "$2\r\nk%u\r\n", i % 10);
    return policies_cost(policies, kit_command(table, command), slice_of(request, (size_t)len),
                         keys + 1);
}

static void costs_are_one_without_a_line(void **state)
{
    (void)state;
    bind();
    assert_int_equal(cost("get", 1), 1);
    assert_int_equal(cost("mget", 9), 1);
    kit_cost(policies, table, "keys", "100");
    bind();
    assert_int_equal(cost("get", 1), 1);
    assert_int_equal(cost("keys", 1), 100);
}

static void costs_per_key(void **state)
{
    (void)state;
    kit_cost(policies, table, "mget", "3 per key");
    kit_cost(policies, table, "ping", "7 PER KEY");
    kit_cost(policies, table, "set", "2k");
    bind();
    assert_int_equal(cost("mget", 1), 3);
    assert_int_equal(cost("mget", 9), 27);
    assert_int_equal(cost("ping", 0), 7); /* no key counts as one */
    assert_int_equal(cost("set", 2), 2000);
    struct command newer = {.id = UINT16_MAX};
    assert_int_equal(policies_cost(policies, &newer, SLICE(""), 1), 1);
    assert_int_equal(
        policies_cost(policies, kit_command(table, "mget"), SLICE("*3000000000\r\n"), 3000000000U),
        3 * UINT64_C(2999999999)); /* an incomplete request: computed from argc */
}

static void the_later_line_holds(void **state)
{
    (void)state;
    kit_cost(policies, table, "set", "9");
    kit_cost(policies, table, "all", "2");
    kit_cost(policies, table, "WRITE", "3");
    kit_cost(policies, table, "@string", "4");
    kit_cost(policies, table, "get", "5");
    kit_cost(policies, table, "cmd.getset", "6 per key");
    kit_cost(policies, table, "config|get", "7");
    kit_cost(policies, table, "get", "8");
    bind();
    assert_int_equal(cost("set", 2), 4);
    assert_int_equal(cost("del", 5), 3);
    assert_int_equal(cost("get", 1), 8);
    assert_int_equal(cost("getset", 2), 6);
    assert_int_equal(cost("exists", 2), 2);
    assert_int_equal(cost("config|get", 2), 7);
    assert_int_equal(cost("config|set", 2), 2);
    assert_int_equal(policies_cost(policies, command_table_row(table, 0), SLICE(""), 1), 2);

    struct policies *copy = policies_rebind(policies, table);
    assert_int_equal(policies_cost(copy, kit_command(table, "get"), SLICE(""), 1), 8);
    policies_put(copy);
}

/* The cost of the call `line`. */
static uint64_t cost_of(const char *line)
{
    static char request[1024];
    struct slice words[20], rest = slice_str(line);
    size_t n = 0;
    while (n < 20 && split_word(&rest, &words[n]))
        n++;
    size_t len = emit_array(request, words, n);
    return policies_cost(policies, command_find(table, words[0], words[1]), slice_of(request, len),
                         (uint32_t)n);
}

static void costs_per_cost(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        uint64_t cost;
    } calls[] = {
        {"LIMIT FUNNEL k 5/s", 2},
        {"LIMIT FUNNEL k 5/s COST 7", 14},
        {"limit funnel COST 5/s burst 9 peek cost 7", 14},
        {"LIMIT BUCKET k 5/s BURST 3 7/h COST 10 WAIT 5", 20},
        {"LIMIT SLIDING k 5/s APPROX COST 20000", 40000},
        {"LIMIT FIXED k 5/s COST 3", 6},
        {"LIMIT CHECK cost COST COST 3", 6},
        {"LIMIT CHECK cost COST", 2},
        {"LIMIT THROTTLE k 5 5 1", 2},
        {"LIMIT THROTTLE k 5 5 1 12", 24},
        {"CL.THROTTLE k 5 5 1 +0012", 24},
        {"CL.THROTTLE k 5 5 1 0", 2},
        {"CL.THROTTLE k 5 5 1 -12", 2},
        {"LIMIT ACQUIRE k 5 1000", 2},
        {"LIMIT RESET a b cost 9", 2},
        {"LIMIT STATUS", 2},
        {"GET cost 9", 2},
        /* a wrong command has a cost */
        {"LIMIT FUNNEL k 5/s COST", 2},
        {"LIMIT FUNNEL k 5/s COST 0", 2},
        {"LIMIT FUNNEL k 5/s COST x", 2},
        {"LIMIT FUNNEL", 2},
        {"LIMIT FUNNEL k 5/s COST 99999999999999999999999", INT64_MAX},
        {"LIMIT FUNNEL k 5/s COST 4611686018427387904", INT64_MAX},
    };
    kit_cost(policies, table, "all", "2 PER Cost");
    kit_bind(policies, registry, table);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if (cost_of(calls[i].line) != calls[i].cost)
            fail_msg("%s: %llu", calls[i].line, (unsigned long long)cost_of(calls[i].line));
    const struct command *funnel = kit_command(table, "limit|funnel");
    assert_int_equal(policies_cost(policies, funnel, SLICE("*6\r\n$5\r\nLIMIT\r\n$6\r\nFUN"), 6),
                     2);
}

static void wrong_costs_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *what, *cost, *says;
    } bad[] = {
        {"get", "", "a cost is missing"},
        {"get", "1 per cots",
         "\"per cots\" is not a cost: write a number, or a number and \"per key\" or \"per cost\""},
        {"get", "0", "from 1 to"},
        {"get", "5g", "from 1 to"},
        {"get", "-1", "is not a count"},
        {"get", "1kb", "count bytes"},
        {"get", "1 per", "is not a cost"},
        {"get", "1 per argument", "is not a cost"},
        {"get", "1 per key 2", "is not a cost"},
        {"get", "per key", "is not a count"},
        {"gett", "1", "unknown class gett"},
        {"", "1", "unknown class"},
        {"nonsense", "1", "unknown class nonsense"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (policies_add_cost(policies, table, slice_str(bad[i].what), slice_str(bad[i].cost), why,
                              sizeof why))
            fail_msg("%s = %s passed", bad[i].what, bad[i].cost);
        assert_says(bad[i].says);
    }
    bind();
    assert_int_equal(cost("get", 1), 1);
}

static void limits_have_an_end(void **state)
{
    (void)state;
    struct policy *policy = kit_policy(policies, "free");
    for (int i = 0; i < 21; i++)
        kit_limit(policies, policy, table, "read", "1/s, 2/s, 3/s");
    assert_false(policy_add_limits(policies, policy, table, SLICE("read"), SLICE("1/s, 2/s"), why,
                                   sizeof why));
    assert_says("more than 64 limits");
    assert_int_equal(policy->n_limits, 63);
    kit_limit(policies, policy, table, "read", "1/s");
    bind();
    assert_int_equal(binds(policy, "get"), UINT64_MAX);
}

static void limits_bind_their_class(void **state)
{
    (void)state;
    struct policy *policy = kit_policy(policies, "free");
    kit_limit(policies, policy, table, "read", "1000/s");
    kit_limit(policies, policy, table, "write", "200/s, 10000/h");
    kit_limit(policies, policy, table, "all", "1/s");
    bind();
    assert_int_equal(policy->n_binds, command_table_count(table));
    assert_int_equal(binds(policy, "get"), 1 | 8);
    assert_int_equal(binds(policy, "set"), 2 | 4 | 8);
    assert_int_equal(binds(policy, "config|get"), 8);
    assert_int_equal(policy->binds[0], 8); /* unknown commands are in `all` */
    assert_true(policy->is_joint);
}

static void control_is_never_bound(void **state)
{
    (void)state;
    struct policy *policy = kit_policy(policies, "free");
    kit_limit(policies, policy, table, "all", "1/s");
    kit_limit(policies, policy, table, "@fast", "1/s");
    bind();
    static const char *const control[] = {"ping",  "auth", "hello", "select",
                                          "multi", "exec", "quit",  "unwatch"};
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
    bind();
    assert_false(single->is_joint);
    assert_true(twice->is_joint);
}

static void binding_again_starts_anew(void **state)
{
    (void)state;
    struct policy *policy = kit_policy(policies, "free");
    kit_limit(policies, policy, table, "read", "1000/s");
    bind();
    bind();
    assert_int_equal(binds(policy, "get"), 1);
    assert_int_equal(binds(policy, "set"), 0);
}

static const char *matched(const char *user, const char *address)
{
    struct facts facts = {.user = slice_str(user)};
    if (*address)
        assert_true(ip_parse(slice_str(address), &facts.ip));
    bind();
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
    (void)kit_policy(policies, "Default");
    kit_match(policy, "user:a");
    assert_false(policy_add_match(policy, SLICE("user:b, user:c, ip:nonsense"), why, sizeof why));
    assert_says("is not an address");
    assert_false(policy_add_match(policy, SLICE("user:b,"), why, sizeof why));
    assert_says("a term is missing");
    assert_int_equal(policy->n_matches, 1);
    kit_match(policy, "user:d,name:e");
    assert_int_equal(policy->n_matches, 3);
    assert_string_equal(matched("d", ""), "free");
    assert_string_equal(matched("b", ""), "default");
}

static void found_by_name(void **state)
{
    (void)state;
    struct policy *policy = kit_policy(policies, "Free");
    assert_ptr_equal(policies_find(policies, SLICE("FREE")), policy);
    assert_null(policies_find(policies, SLICE("fre")));
}

static void keys_and_listeners_match(void **state)
{
    (void)state;
    kit_match(kit_policy(policies, "free"), "user:a");
    kit_match(kit_policy(policies, "inside"), "listener:unix:*");
    bind();
    assert_false(policies_match_keys(policies));
    kit_match(kit_policy(policies, "acme"), "key:acme:*");
    kit_policy(policies, "default");
    bind();
    assert_true(policies_match_keys(policies));
    struct facts facts = {.key = SLICE("acme:1")};
    assert_string_equal(policies_match(policies, &facts)->name, "acme");
    facts.listener = SLICE("unix:/run/weir.sock");
    assert_string_equal(policies_match(policies, &facts)->name, "inside");
    facts = (struct facts){.key = SLICE("other:1"), .listener = SLICE("127.0.0.1:6380")};
    assert_string_equal(policies_match(policies, &facts)->name, "default");
}

/* A command table without SET, and with other ids. */
static struct command_table *other_table(void)
{
    struct command_table *other = command_table_new();
    struct slice categories[] = {SLICE("read")};
    struct command_info info = {SLICE("get"), 2, 1, 1, 1, CMD_READONLY, categories, 1, {0}};
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
    bind();

    struct command_table *other = other_table();
    struct policies *copy = policies_rebind(policies, other);
    struct policies *copy_of_copy = policies_rebind(copy, table);
    const struct policy *copied = policies_at(copy, 0);
    assert_int_equal(copied->n_binds, command_table_count(other));
    assert_int_equal(copied->binds[command_by_name(other, SLICE("get"))->id], 2);
    assert_int_equal(binds(policy, "set"), 1);
    assert_ptr_equal(copied->limits, policy->limits);
    policies_put(copy);

    /* The original set may be freed first. */
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
        TEST(control_may_be_delayed_closed_and_counted),
        TEST(deny_is_a_limit_too),
        TEST(units_bind_when_they_are_asked),
        TEST(plain_and_joint),
        TEST(in_shadow_mode_all_are_shadows),
        TEST(a_reload_finds_the_slots),
        TEST(a_full_registry_says_so),
        TEST(costs_are_one_without_a_line),
        TEST(costs_per_key),
        TEST(costs_per_cost),
        TEST(the_later_line_holds),
        TEST(wrong_costs_are_named),
        TEST(found_by_name),
        TEST(keys_and_listeners_match),
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
