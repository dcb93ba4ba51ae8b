/* Tests of the costs of commands, learnt from INFO commandstats poll by poll. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limit/command/command_costs.h"

#define NS_PER_US 1000
#define S UINT64_C(1000000000)

/* One node with its totals. */
struct fixture {
    struct command_table *table;
    struct command_costs *costs;
    struct command_counts counts;
    uint64_t calls, usec, cpu_ns;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->table = command_table_builtin();
    f->costs = command_costs_new(f->table);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    command_counts_fini(&f->counts);
    command_costs_free(f->costs);
    command_table_put(f->table);
    free(f);
    return 0;
}

static const struct command *row(const struct fixture *f, const char *name)
{
    return command_by_name(f->table, slice_str(name));
}

static uint32_t cost(const struct fixture *f, const char *name)
{
    return command_cost_ns(row(f, name));
}

static void tell(struct fixture *f, const char *text, uint64_t cpu_ns)
{
    command_costs_take(f->costs, &f->counts, slice_str(text), cpu_ns);
    command_costs_end_poll(f->costs);
}

/* A poll in which `name` had so many calls, of `usec` in all. The CPU time does not change. */
static void poll_once(struct fixture *f, const char *name, uint64_t calls, uint64_t usec)
{
    char text[256];
    f->calls += calls;
    f->usec += usec;
    snprintf(
        text, sizeof text,
        "# Commandstats\r\ncmdstat_%s:calls=%lu,usec=%lu,usec_per_call=1.00,rejected_calls=0,failed_calls=0\r\n",
        name, f->calls, f->usec);
    tell(f, text, f->cpu_ns);
}

/* A poll in which the main thread worked for cpu_ns. */
static void work(struct fixture *f, const char *name, uint64_t calls, uint64_t usec,
                 uint64_t cpu_ns)
{
    f->cpu_ns += cpu_ns;
    poll_once(f, name, calls, usec);
}

/* ---- defaults ---- */

static void test_flags_tell_until_redis_does(void **state)
{
    const struct fixture *f = *state;
    assert_int_equal(cost(f, "get"), 2000);
    assert_int_equal(cost(f, "bitcount"), 20000);
    assert_int_equal(cost(f, "keys"), 200000);
    assert_int_equal(cost(f, "exec"), 2000);
    assert_int_equal(command_cost_calls(row(f, "get")), 0);
    assert_int_equal(command_cost_ns(command_table_row(f->table, 0)), 20000);
    for (size_t i = 0; i < command_table_count(f->table); i++)
        assert_true(command_cost_ns(command_table_row(f->table, i)) > 0);
}

/* ---- differences ---- */

static void test_totals_of_the_first_poll_tell_nothing(void **state)
{
    struct fixture *f = *state;
    poll_once(f, "keys", 1000, 5000000);
    assert_int_equal(command_cost_calls(row(f, "keys")), 0);
}

static void test_first_difference_replaces_the_default_at_once(void **state)
{
    struct fixture *f = *state;
    poll_once(f, "keys", 1000, 5000000);
    poll_once(f, "keys", 100, 200);
    assert_int_equal(cost(f, "keys"), COSTS_FIXED_NS + 2 * NS_PER_US);
    assert_int_equal(command_cost_calls(row(f, "keys")), 100);
}

static void test_command_that_was_never_called_before_tells(void **state)
{
    struct fixture *f = *state;
    tell(f, "# Commandstats\r\n", 0);
    poll_once(f, "keys", 10, 500);
    assert_int_equal(cost(f, "keys"), COSTS_FIXED_NS + 50 * NS_PER_US);
}

static void test_few_calls_wait_for_more(void **state)
{
    struct fixture *f = *state;
    poll_once(f, "keys", 0, 0);
    poll_once(f, "keys", 9, 90);
    assert_int_equal(command_cost_calls(row(f, "keys")), 0);
    poll_once(f, "keys", 1, 10);
    assert_int_equal(cost(f, "keys"), COSTS_FIXED_NS + 10 * NS_PER_US);
    assert_int_equal(command_cost_calls(row(f, "keys")), 10);
}

static void test_few_calls_count_that_take_long(void **state)
{
    struct fixture *f = *state;
    poll_once(f, "keys", 0, 0);
    poll_once(f, "keys", 2, 99999);
    assert_int_equal(command_cost_calls(row(f, "keys")), 0);
    poll_once(f, "keys", 2, 100001);
    assert_int_equal(cost(f, "keys"), COSTS_FIXED_NS + 50000 * NS_PER_US);
}

static void test_reset_is_left_out(void **state)
{
    struct fixture *f = *state;
    poll_once(f, "get", 1000, 1000);
    poll_once(f, "get", 1000, 1000);
    f->calls = 500;
    f->usec = 500000;
    poll_once(f, "get", 0, 0);
    assert_int_equal(cost(f, "get"), COSTS_FIXED_NS + NS_PER_US);
    poll_once(f, "get", 1000, 1000);
    assert_int_equal(cost(f, "get"), COSTS_FIXED_NS + NS_PER_US);
}

/*
 * CONFIG RESETSTAT: Redis leaves the rows out, so all CPU time of that poll would count as fixed
 * part.
 */
static void test_reset_tells_no_fixed_part(void **state)
{
    struct fixture *f = *state;
    work(f, "get", 1, 1, S);
    work(f, "get", 10000, 0, S / 100);
    assert_int_equal(command_costs_fixed_ns(f->costs), 1000);
    for (int i = 0; i < 5; i++) {
        f->calls = 0;
        work(f, "get", 10000 - (uint64_t)i, 0, S);
        assert_int_equal(command_costs_fixed_ns(f->costs), 1000);
    }
    work(f, "get", 10000, 0, S / 50);
    assert_in_range(command_costs_fixed_ns(f->costs), 1300, 1400);
}

static void test_restart_begins_anew(void **state)
{
    struct fixture *f = *state;
    work(f, "get", 1000, 1000, 10 * S);
    work(f, "get", 1000, 1000, S / 1000);
    uint32_t before = cost(f, "get");
    f->cpu_ns = S;
    poll_once(f, "get", 100000, 90000000); /* more than the other server had counted */
    assert_int_equal(cost(f, "get"), before);
}

static void test_nodes_are_apart(void **state)
{
    struct fixture *f = *state;
    struct command_counts other = {0};
    poll_once(f, "get", 1000000, 9000000);
    command_costs_take(f->costs, &other, slice_str("cmdstat_get:calls=5,usec=5\r\n"), 0);
    command_costs_take(f->costs, &other, slice_str("cmdstat_get:calls=15,usec=25\r\n"), 0);
    poll_once(f, "get", 10, 60);
    assert_int_equal(cost(f, "get"), COSTS_FIXED_NS + 4 * NS_PER_US);
    command_counts_fini(&other);
}

/* ---- smoothing ---- */

/* A cost moves by a third of the way, however many calls the poll has. */
static void test_each_poll_moves_a_cost_by_a_third_of_the_way(void **state)
{
    struct fixture *f = *state;
    poll_once(f, "get", 0, 0);
    poll_once(f, "get", 1000000, 10000000);
    poll_once(f, "get", 100, 1300);
    assert_int_equal(cost(f, "get"), COSTS_FIXED_NS + 11000);
    assert_int_equal(command_cost_calls(row(f, "get")), 100);
    poll_once(f, "get", 100, 500);
    assert_int_equal(cost(f, "get"), COSTS_FIXED_NS + 9000);
}

static void test_cost_rises_eightfold_and_halves_at_most(void **state)
{
    struct fixture *f = *state;
    poll_once(f, "get", 0, 0);
    poll_once(f, "get", 1000, 1000);
    uint32_t before = cost(f, "get");
    for (int i = 0; i < 2; i++, before *= 8) {
        poll_once(f, "get", 1000, 1000000);
        assert_int_equal(cost(f, "get"), before * 8);
    }
    for (int i = 0; i < 30; i++) {
        before = cost(f, "get");
        poll_once(f, "get", 1000000, 100000);
        assert_true(cost(f, "get") >= before / 2);
    }
    assert_in_range(cost(f, "get"), COSTS_FIXED_NS + 100, COSTS_FIXED_NS + 200);
}

static void test_cost_falls_by_a_third_at_most(void **state)
{
    struct fixture *f = *state;
    poll_once(f, "get", 0, 0);
    poll_once(f, "get", 10, 1000);
    uint32_t before = cost(f, "get");
    poll_once(f, "get", 1000000, 0);
    assert_in_range(cost(f, "get"), before * 2 / 3, before * 2 / 3 + COSTS_FIXED_NS);
}

/* ---- the fixed part ---- */

static void test_fixed_part_is_the_rest_of_the_cpu(void **state)
{
    struct fixture *f = *state;
    work(f, "get", 1, 1, S);
    work(f, "get", 10000, 2000, S / 50); /* 20 ms, of which GET takes 2 */
    assert_int_equal(command_costs_fixed_ns(f->costs), 1800);
    assert_int_equal(cost(f, "get"), 1800 + 200);
}

static void test_fixed_part_has_bounds(void **state)
{
    struct fixture *f = *state;
    work(f, "get", 1, 1, S);
    work(f, "get", 10000, 0, S);
    assert_int_equal(command_costs_fixed_ns(f->costs), 20000);
    for (int i = 0; i < 40; i++)
        work(f, "get", 100000, 1000000, S / 100000);
    assert_int_equal(command_costs_fixed_ns(f->costs), 100);
}

static void test_fixed_part_is_smoothed(void **state)
{
    struct fixture *f = *state;
    work(f, "get", 1, 1, S);
    work(f, "get", 10000, 0, S / 100);
    assert_int_equal(command_costs_fixed_ns(f->costs), 1000);
    work(f, "get", 10000, 0, S);
    assert_int_equal(command_costs_fixed_ns(f->costs), 2000);
    work(f, "get", 10000, 0, S / 200);
    assert_int_equal(command_costs_fixed_ns(f->costs), 1500);
}

static void test_idle_redis_tells_no_fixed_part(void **state)
{
    struct fixture *f = *state;
    work(f, "get", 1, 1, S);
    work(f, "get", 9999, 0, S / 10);
    assert_int_equal(command_costs_fixed_ns(f->costs), COSTS_FIXED_NS);
}

static void test_server_without_cpu_tells_no_fixed_part(void **state)
{
    struct fixture *f = *state;
    poll_once(f, "get", 1, 1);
    poll_once(f, "get", 10000, 1000);
    assert_int_equal(command_costs_fixed_ns(f->costs), COSTS_FIXED_NS);
}

/* The totals of GET and of a script command. */
static void tell_two(struct fixture *f, const char *script, uint64_t script_usec, uint64_t calls,
                     uint64_t usec)
{
    char text[256];
    snprintf(text, sizeof text,
             "cmdstat_get:calls=%lu,usec=%lu\r\ncmdstat_%s:calls=%lu,usec=%lu\r\n", calls, usec,
             script, calls, script_usec);
    tell(f, text, f->cpu_ns);
}

/*
 * Polls with scripts underestimate the fixed part. Such an estimate holds until there is a better
 * one.
 */
static void test_scripts_tell_little_of_the_fixed_part(void **state)
{
    static const char *const scripts[] = {"eval",    "evalsha",    "fcall",
                                          "eval_ro", "evalsha_ro", "fcall_ro"};
    (void)state;
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        struct fixture *f;
        set_up((void **)&f);
        f->cpu_ns = S;
        tell_two(f, scripts[i], 0, 1, 0);
        f->cpu_ns += S / 100; /* 20,000 calls in 10 ms, and 5 ms in scripts */
        tell_two(f, scripts[i], 5000, 10001, 1000);
        assert_int_equal(command_costs_fixed_ns(f->costs), 200);
        f->cpu_ns += S / 10;
        tell_two(f, scripts[i], 5100, 30001, 41000);
        /* a better estimate: (100 - 40.1) ms / 40,000 */
        assert_int_equal(command_costs_fixed_ns(f->costs), 1497);
        f->cpu_ns += S / 100;
        tell_two(f, scripts[i], 10100, 40001, 42000);
        assert_int_equal(command_costs_fixed_ns(f->costs), 1497);
        tear_down((void **)&f);
    }
}

static void test_transactions_cost_the_fixed_part_alone(void **state)
{
    static const char *const names[] = {"multi", "exec", "discard"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct fixture *f;
        set_up((void **)&f);
        poll_once(f, names[i], 0, 0);
        poll_once(f, names[i], 100, 1000000);
        assert_int_equal(cost(f, names[i]), COSTS_FIXED_NS);
        tear_down((void **)&f);
    }
}

/* The time of EXEC is in the rows of its queued commands. */
static void test_exec_is_not_counted_twice(void **state)
{
    struct fixture *f = *state;
    f->cpu_ns = S;
    tell(f, "cmdstat_exec:calls=1,usec=1\r\n", f->cpu_ns);
    f->cpu_ns += 30000000; /* 30 ms, 10 of them in GETs */
    tell(f, "cmdstat_exec:calls=1,usec=10000\r\ncmdstat_get:calls=10000,usec=10000\r\n", f->cpu_ns);
    assert_int_equal(command_costs_fixed_ns(f->costs), 2000);
}

/* ---- names ---- */

static void test_subcommands_have_costs_of_their_own(void **state)
{
    struct fixture *f = *state;
    uint32_t before = cost(f, "config|set");
    poll_once(f, "config|get", 0, 0);
    poll_once(f, "config|get", 10, 70);
    assert_int_equal(cost(f, "config|get"), COSTS_FIXED_NS + 7 * NS_PER_US);
    assert_int_equal(cost(f, "config|set"), before);
}

static void test_container_tells_for_its_subcommands(void **state)
{
    struct fixture *f = *state;
    poll_once(f, "config", 0, 0);
    poll_once(f, "config", 10, 70);
    assert_int_equal(cost(f, "config|get"), COSTS_FIXED_NS + 7 * NS_PER_US);
    assert_int_equal(cost(f, "config|set"), COSTS_FIXED_NS + 7 * NS_PER_US);
    assert_int_equal(command_cost_calls(row(f, "config|set")), 10);
    assert_int_equal(command_cost_calls(row(f, "client|list")), 0);
}

/* No real server reports both rows. */
static void test_subcommand_moves_once_in_a_poll(void **state)
{
    struct fixture *f = *state;
    tell(f, "cmdstat_config:calls=1,usec=1\r\ncmdstat_config|get:calls=1,usec=1\r\n", 0);
    tell(f, "cmdstat_config:calls=21,usec=21\r\ncmdstat_config|get:calls=21,usec=21\r\n", 0);
    uint32_t before = cost(f, "config|get");
    tell(f, "cmdstat_config:calls=41,usec=4000021\r\ncmdstat_config|get:calls=41,usec=4000021\r\n",
         0);
    assert_int_equal(cost(f, "config|get"), 8 * before);
}

static void test_modules_commands_have_costs(void **state)
{
    struct fixture *f = *state;
    struct command_table *table = command_table_builtin();
    command_table_add(
        table, &(struct command_info){.name = SLICE("json.set"), .arity = -4, .flags = CMD_MODULE});
    command_costs_set_table(f->costs, table);
    poll_once(f, "JSON.SET", 0, 0);
    poll_once(f, "JSON.SET", 10, 70);
    const struct command *json = command_by_name(table, SLICE("json.set"));
    assert_int_equal(command_cost_ns(json), COSTS_FIXED_NS + 7 * NS_PER_US);
    command_table_put(table);
}

/* ---- another table ---- */

static void test_new_table_knows_what_the_old_one_knew(void **state)
{
    struct fixture *f = *state;
    poll_once(f, "keys", 0, 0);
    poll_once(f, "keys", 10, 70);
    struct command_table *table = command_table_new();
    command_table_add(table, &(struct command_info){.name = SLICE("keys"), .arity = 2});
    command_table_add(table, &(struct command_info){.name = SLICE("get"), .arity = 2});
    command_table_carry_costs(table, f->table);
    command_costs_set_table(f->costs, table);
    const struct command *keys = command_by_name(table, SLICE("keys"));
    assert_int_equal(command_cost_ns(keys), COSTS_FIXED_NS + 7 * NS_PER_US);
    assert_int_equal(command_cost_calls(keys), 10);
    assert_int_equal(command_cost_calls(command_by_name(table, SLICE("get"))), 0);
    poll_once(f, "keys", 1000, 1000000); /* the first poll with the rows of this table */
    assert_int_equal(command_cost_ns(keys), COSTS_FIXED_NS + 7 * NS_PER_US);
    poll_once(f, "keys", 1000, 1000000);
    assert_int_equal(command_cost_ns(keys), 8 * (COSTS_FIXED_NS + 7 * NS_PER_US));
    command_table_put(table);
}

/* ---- texts ---- */

static void test_cpu_is_read(void **state)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } texts[] = {
        {"# CPU\r\nused_cpu_sys:1.000000\r\nused_cpu_user:2.500000\r\nused_cpu_sys_children:9.000000\r\n"
         "used_cpu_user_children:9.000000\r\nused_cpu_sys_main_thread:0.250001\r\n"
         "used_cpu_user_main_thread:0.500000\r\n",
         750001000},
        {"# CPU\r\nused_cpu_sys:1.000000\r\nused_cpu_user:2.500000\r\nused_cpu_sys_children:9.000000\r\n",
         3500000000},
        {"used_cpu_sys:1.25\nused_cpu_user:3\n", 4250000000},
        {"used_cpu_sys:1.2500000001\r\n", 1000000000},
        {"used_cpu_sys:-1.0\r\nused_cpu_user:nan\r\n", 0},
        {"used_cpu_sys:99999999999999999999.0\r\nused_cpu_user:9999999999.0\r\n", 0},
        {"used_cpu_sys", 0},
        {"", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_true(command_costs_read_cpu(slice_str(texts[i].text)) == texts[i].ns);
}

/* Redis 6.0 has two fields less. */
static void test_old_lines_are_read(void **state)
{
    struct fixture *f = *state;
    tell(f, "# Commandstats\r\n", 0);
    tell(f, "# Commandstats\r\ncmdstat_get:calls=10,usec=30,usec_per_call=3.00\r\n", 0);
    assert_int_equal(cost(f, "get"), COSTS_FIXED_NS + 3 * NS_PER_US);
}

static void test_other_lines_are_left_out(void **state)
{
    static const char *const lines[] = {
        "",
        "cmdstat_",
        "cmdstat_get",
        "cmdstat_get:",
        "cmdstat_get:calls=",
        "cmdstat_get:calls=100",
        "cmdstat_get:calls=100,usec=",
        "cmdstat_get:calls=100,usec=x",
        "cmdstat_get:calls=-100,usec=5",
        "cmdstat_get:usec=5,calls=100",
        "cmdstat_get:calls=100,usec=99999999999999999999",
        "cmdstat_get:calls=99999999999999999999,usec=100",
        "cmdstat_no_such:calls=100,usec=100",
        "cmdstat_:calls=100,usec=100",
        "errorstat_ERR:count=1",
        "get:calls=100,usec=100",
    };
    struct fixture *f = *state;
    tell(f, "# Commandstats\r\n", 0);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        tell(f, lines[i], 0);
        assert_int_equal(command_cost_calls(row(f, "get")), 0);
    }
}

static void test_lies_have_bounds(void **state)
{
    struct fixture *f = *state;
    tell(f, "cmdstat_get:calls=0,usec=0\r\n", 1);
    tell(f, "cmdstat_get:calls=999999999999999999,usec=999999999999999999\r\n", UINT64_MAX);
    assert_int_equal(command_cost_calls(row(f, "get")), 0);
    tell(f, "cmdstat_keys:calls=10,usec=999999999999\r\n", UINT64_MAX);
    assert_int_equal(cost(f, "keys"), COSTS_MOST_NS);
    for (int i = 0; i < 100; i++)
        tell(f,
             i % 2 == 0 ? "cmdstat_keys:calls=1000000000000,usec=0\r\n"
                        : "cmdstat_keys:calls=1,usec=0\r\n",
             0);
    assert_true(cost(f, "keys") >= COSTS_LEAST_NS);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_flags_tell_until_redis_does),
        T(test_totals_of_the_first_poll_tell_nothing),
        T(test_first_difference_replaces_the_default_at_once),
        T(test_command_that_was_never_called_before_tells),
        T(test_few_calls_wait_for_more),
        T(test_few_calls_count_that_take_long),
        T(test_reset_is_left_out),
        T(test_reset_tells_no_fixed_part),
        T(test_restart_begins_anew),
        T(test_nodes_are_apart),
        T(test_each_poll_moves_a_cost_by_a_third_of_the_way),
        T(test_cost_rises_eightfold_and_halves_at_most),
        T(test_cost_falls_by_a_third_at_most),
        T(test_fixed_part_is_the_rest_of_the_cpu),
        T(test_fixed_part_has_bounds),
        T(test_fixed_part_is_smoothed),
        T(test_idle_redis_tells_no_fixed_part),
        T(test_server_without_cpu_tells_no_fixed_part),
        T(test_scripts_tell_little_of_the_fixed_part),
        T(test_transactions_cost_the_fixed_part_alone),
        T(test_exec_is_not_counted_twice),
        T(test_subcommands_have_costs_of_their_own),
        T(test_container_tells_for_its_subcommands),
        T(test_subcommand_moves_once_in_a_poll),
        T(test_modules_commands_have_costs),
        T(test_new_table_knows_what_the_old_one_knew),
        T(test_cpu_is_read),
        T(test_old_lines_are_read),
        T(test_other_lines_are_left_out),
        T(test_lies_have_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
