/* Tests of log lines about limits, and of their times, with the test's own clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "limit/command/command.h"
#include "run/watch.h"

#define WORKERS 2

struct scene {
    struct command_table *table;
    struct registry *registry;
    struct policies *policies;
    struct limit_counters *limit_counters[WORKERS];
    struct offenders *all_offenders[WORKERS]; /* NULL: lines name no subjects */
    struct watch *watch;
    _Atomic uint8_t stopping[REGISTRY_LIMITS_MAX];
    char said[1024];
    char about[256]; /* of the last line */
};

static struct scene scene;

static void on_say(void *arg, enum log_level level, const char *kind, const char *about,
                   const char *line)
{
    snprintf(scene.about, sizeof scene.about, "%s", about);
    assert_int_equal(level, strcmp(kind, "subjects") == 0 ? LOG_WARN : LOG_INFO);
    struct scene *s = arg;
    size_t len = strlen(s->said);
    snprintf(s->said + len, sizeof s->said - len, "%s: %s\n", kind, line);
}

static void add_line(struct policy *policy, const char *what, const char *expression)
{
    char why[256];
    assert_true(policy_add_limits(scene.policies, policy, scene.table, slice_str(what),
                                  slice_str(expression), why, sizeof why));
}

static int set_up(void **state)
{
    char why[256];
    (void)state;
    scene = (struct scene){.table = command_table_builtin(), .registry = registry_new()};
    scene.policies = policies_new(classes_new());
    struct policy *policy = policies_add(scene.policies, SLICE("free"), why, sizeof why);
    add_line(policy, "write", "1/s");
    add_line(policy, "connections", "5");
    policies_bind(scene.policies, scene.table);
    assert_true(policies_enroll(scene.policies, scene.registry));
    for (size_t i = 0; i < WORKERS; i++)
        scene.limit_counters[i] = limit_counters_new();
    scene.watch = watch_new(scene.limit_counters, NULL, scene.stopping, WORKERS, on_say, &scene);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    watch_free(scene.watch);
    for (size_t i = 0; i < WORKERS; i++) {
        free(scene.limit_counters[i]);
        offenders_free(scene.all_offenders[i]);
    }
    policies_put(scene.policies);
    registry_free(scene.registry);
    command_table_put(scene.table);
    return 0;
}

static struct limit_counters *counters(size_t worker, size_t limit)
{
    return &scene.limit_counters[worker][policies_at(scene.policies, 0)->limits[limit].id];
}

static void check(uint64_t second, const char *expected)
{
    scene.said[0] = '\0';
    watch_look(scene.watch, scene.policies, NULL, second * NS_PER_S);
    assert_string_equal(scene.said, expected);
}

static void test_nothing_is_told_of_what_passes(void **state)
{
    (void)state;
    counter_add(&counters(0, 0)->admitted, 100);
    check(0, "");
    check(100, "");
}

static void test_the_first_at_once_then_a_summary(void **state)
{
    (void)state;
    counter_add(&counters(0, 0)->refused, 2);
    counter_add(&counters(1, 0)->refused, 1);
    check(5, "refused: limit free/write begins to refuse: 3 commands so far\n");
    counter_add(&counters(1, 0)->refused, 1000);
    check(6, "");
    check(14, "");
    check(15, "refused: limit free/write refused 1000 commands in 10 s\n");
    counter_add(&counters(0, 0)->refused, 1);
    check(24, "");
    check(26, "refused: limit free/write refused 1 command in 11 s\n");
}

static void test_after_a_rest_the_first_is_told_again(void **state)
{
    (void)state;
    counter_add(&counters(0, 0)->refused, 1);
    check(0, "refused: limit free/write begins to refuse: 1 command so far\n");
    check(10, "");
    counter_add(&counters(0, 0)->refused, 1);
    check(11, "refused: limit free/write begins to refuse: 1 command so far\n");
}

static void test_each_kind_and_limit_by_itself(void **state)
{
    (void)state;
    counter_add(&counters(0, 0)->delayed, 1);
    counter_add(&counters(1, 1)->shadowed, 2);
    check(0, "delayed: limit free/write begins to delay: 1 command so far\n"
             "shadowed: limit free/connections would begin to refuse: 2 connections so far\n");
    counter_add(&counters(0, 1)->shadowed, 1);
    counter_add(&counters(0, 0)->delayed, 5);
    check(10, "delayed: limit free/write delayed 5 commands in 10 s\n"
              "shadowed: limit free/connections would have refused 1 connection in 10 s\n");
}

/* A new watch that names subjects. */
static void name_them(void)
{
    watch_free(scene.watch);
    for (size_t i = 0; i < WORKERS; i++)
        scene.all_offenders[i] = offenders_new();
    scene.watch = watch_new(scene.limit_counters, scene.all_offenders, scene.stopping, WORKERS,
                            on_say, &scene);
}

static void stop(size_t worker, size_t limit, const char *name, uint64_t hash)
{
    counter_add(&counters(worker, limit)->refused, 1);
    offenders_note(scene.all_offenders[worker], policies_at(scene.policies, 0)->limits[limit].id,
                   OFFENDER_REFUSED, slice_str(name), hash);
}

static void test_names_offenders(void **state)
{
    (void)state;
    name_them();
    stop(0, 0, "user:a", 1);
    stop(1, 0, "user:a", 1);
    check(0, "refused: limit free/write begins to refuse: 2 commands so far, of user:a\n");
    stop(0, 0, "user:b", 2);
    check(1, "");
    stop(1, 0, "user:a", 1);
    stop(0, 0, "user:b", 2);
    check(10,
          "refused: limit free/write refused 3 commands in 10 s, of 2 subjects: user:b, user:a\n");
    for (uint64_t i = 0; i < 5; i++)
        stop(0, 0, (const char[]){'x', (char)('0' + i), '\0'}, i);
    check(20,
          "refused: limit free/write refused 5 commands in 10 s, of 5 subjects: x0, x1, x2 ...\n");
    stop(0, 0, "user:b", 2);
    check(30, "refused: limit free/write refused 1 command in 10 s, of user:b\n");
}

static void test_at_least_so_many(void **state)
{
    (void)state;
    name_them();
    for (uint64_t i = 0; i < WATCH_SUBJECTS_MAX + 1; i++)
        stop(0, 0, "user:a", i);
    check(
        0,
        "refused: limit free/write begins to refuse: 257 commands so far, of at least 256 subjects: user:a, "
        "user:a, user:a ...\n");
    stop(0, 0, "user:b", 2);
    check(10, "refused: limit free/write refused 1 command in 10 s, of user:b\n");
}

static void test_which_limits_stop_somebody_now(void **state)
{
    (void)state;
    uint16_t id = policies_at(scene.policies, 0)->limits[0].id;
    watch_look(scene.watch, scene.policies, NULL, 0);
    assert_int_equal(scene.stopping[id], 0);
    counter_add(&counters(0, 0)->refused, 1);
    counter_add(&counters(0, 0)->delayed, 1);
    watch_look(scene.watch, scene.policies, NULL, NS_PER_S);
    assert_int_equal(scene.stopping[id], 1 << OFFENDER_REFUSED | 1 << OFFENDER_DELAYED);
    counter_add(&counters(0, 0)->refused, 1);
    watch_look(scene.watch, scene.policies, NULL, NS_PER_S + WATCH_NS);
    assert_int_equal(scene.stopping[id], 1 << OFFENDER_REFUSED);
    watch_look(scene.watch, scene.policies, NULL, NS_PER_S + 2 * WATCH_NS);
    assert_int_equal(scene.stopping[id], 0);
}

/*
 * Lines about the same limit and subjects have the same `about`, whatever the numbers and the
 * order.
 */
static void test_what_lines_are_about(void **state)
{
    (void)state;
    char first[sizeof scene.about];
    name_them();
    stop(0, 0, "user:a", 1);
    watch_look(scene.watch, scene.policies, NULL, 0);
    const uint64_t hashes[][3] = {{1, 2, 2}, {2, 1, 1}, {1, 1, 2}};
    for (uint64_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < 3; j++)
            stop(0, 0, hashes[i][j] == 1 ? "user:a" : "user:b", hashes[i][j]);
        watch_look(scene.watch, scene.policies, NULL, (i + 1) * WATCH_NS);
        if (i == 0)
            memcpy(first, scene.about, sizeof first);
        assert_string_equal(scene.about, first);
    }
    stop(0, 0, "user:c", 3);
    watch_look(scene.watch, scene.policies, NULL, 4 * WATCH_NS);
    assert_string_not_equal(scene.about, first);
}

/* The counter is seen first. Without a name at the next look, the line names no subject. */
static void test_who_it_is_may_come_a_look_later(void **state)
{
    (void)state;
    name_them();
    counter_add(&counters(0, 0)->refused, 2);
    check(0, "");
    offenders_note(scene.all_offenders[0], policies_at(scene.policies, 0)->limits[0].id,
                   OFFENDER_REFUSED, SLICE("user:a"), 1);
    check(1, "refused: limit free/write begins to refuse: 2 commands so far, of user:a\n");
    counter_add(&counters(0, 1)->refused, 1);
    check(2, "");
    check(
        3,
        "refused: limit free/connections begins to refuse: 1 connection so far (clients get: max number of "
        "clients reached)\n");
}

/* Limits that no longer exist take no room from other limits. */
static void test_limits_that_are_gone(void **state)
{
    (void)state;
    name_them();
    for (unsigned id = 100; id < 100 + 2 * WATCH_CROWDS_MAX; id++)
        offenders_note(scene.all_offenders[0], id, OFFENDER_REFUSED, SLICE("user:a"), 1);
    check(0, "");
    stop(0, 0, "user:a", 1);
    check(1, "refused: limit free/write begins to refuse: 1 command so far, of user:a\n");
}

static void check_subjects(uint64_t second, uint64_t overflows, bool is_told)
{
    scene.said[0] = '\0';
    watch_look_at_subjects(scene.watch, overflows, second * NS_PER_S);
    assert_string_equal(
        scene.said,
        is_told ? "subjects: max-subjects is reached: new subjects share one state for each "
                  "policy; raise max-subjects in [weir]\n"
                : "");
}

/* A full table is reported once, and again after a minute without overflow. */
static void test_full_tables_are_told_once_a_spell(void **state)
{
    (void)state;
    check_subjects(0, 0, false);
    check_subjects(1, 1, true);
    check_subjects(2, 1000, false);
    check_subjects(60, 1001, false);
    check_subjects(119, 1001, false);
    check_subjects(119, 1002, false);
    check_subjects(179, 1002, false);
    check_subjects(180, 1002, false);
    check_subjects(500, 1003, true);
    check_subjects(501, 1004, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_is_told_of_what_passes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_first_at_once_then_a_summary, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_after_a_rest_the_first_is_told_again, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_each_kind_and_limit_by_itself, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_names_offenders, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_at_least_so_many, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_which_limits_stop_somebody_now, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_lines_are_about, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_it_is_may_come_a_look_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_limits_that_are_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_full_tables_are_told_once_a_spell, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
