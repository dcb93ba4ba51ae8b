#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "run/topology/failover_story.h"

#define A "10.0.0.1:6379"
#define B "10.0.0.2:6379"

static const struct fates some = {{100, 10, 20, 30}};

static void test_another_master(void **state)
{
    (void)state;
    char line[FAILOVER_STORY_ROOM];
    struct failover_story story = {.missed_ns = 0};
    const struct fates now = {{112, 13, 25, 31}};
    failover_story_rest(&story, &some);
    failover_story_miss(&story, A, 5 * NS_PER_S);
    failover_story_rest(&story, &now);
    failover_story_miss(&story, A, 6 * NS_PER_S);
    assert_int_equal(failover_story_due_ns(&story, NS_PER_S), 0);
    failover_story_find(&story, B, 7 * NS_PER_S);
    failover_story_find(&story, B, 8 * NS_PER_S);
    assert_int_equal(failover_story_due_ns(&story, NS_PER_S), 8 * NS_PER_S);
    assert_true(failover_story_tell(&story, &now, line));
    assert_string_equal(
        line, "failover: upstream " B " is the master in place of " A
              ", after 2.000 s without a master; commands that waited: 12, refused: 3, retried: 5; "
              "connections lost with commands in flight: 1");
    assert_int_equal(failover_story_due_ns(&story, NS_PER_S), 0);
}

/*
 * A failover to the same master is logged only if a request missed the master, or if it took long.
 */
static void test_the_same_master(void **state)
{
    (void)state;
    char line[FAILOVER_STORY_ROOM];
    struct failover_story story = {.missed_ns = 0};
    struct fates now = some;
    failover_story_rest(&story, &some);
    failover_story_find(&story, A, 1);
    assert_int_equal(failover_story_due_ns(&story, 0), 0);
    failover_story_miss(&story, A, NS_PER_S);
    failover_story_find(&story, A, NS_PER_S + 5);
    assert_false(failover_story_tell(&story, &now, line));
    failover_story_miss(&story, A, NS_PER_S);
    failover_story_find(&story, A, 3 * NS_PER_S);
    assert_true(failover_story_tell(&story, &now, line));
    assert_non_null(strstr(line, "upstream " A " is the master again"));
    failover_story_miss(&story, A, NS_PER_S);
    failover_story_find(&story, A, NS_PER_S + 5);
    now.n[FATE_LOST]++;
    assert_true(failover_story_tell(&story, &now, line));
}

/* The first master found is lost again: the story continues. */
static void test_two_in_a_row(void **state)
{
    (void)state;
    char line[FAILOVER_STORY_ROOM];
    struct failover_story story = {.missed_ns = 0};
    failover_story_rest(&story, &some);
    failover_story_miss(&story, A, NS_PER_S);
    failover_story_find(&story, B, 2 * NS_PER_S);
    failover_story_miss(&story, B, 3 * NS_PER_S);
    assert_int_equal(failover_story_due_ns(&story, 0), 0);
    failover_story_find(&story, A, 4 * NS_PER_S);
    assert_true(failover_story_tell(&story, &some, line));
    assert_non_null(strstr(line, "again, after 3.000 s without a master"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_master),
        cmocka_unit_test(test_the_same_master),
        cmocka_unit_test(test_two_in_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
