/* Tests of the times at which weir asks the nodes of a cluster for the topology. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dice.h"
#include "run/topology/question_pace.h"

#define MS NS_PER_MS
#define START NS_PER_S

static uint64_t rolled;

static uint64_t roll(uint64_t n)
{
    return dice_below(&rolled, n);
}

/* Time from `from` until the next request is due. */
static uint64_t wait_of(const struct cluster_pace *pace, uint64_t from)
{
    return cluster_pace_due(pace, CLUSTER_PACE_CALM_NS, from) - from;
}

static void assert_about(uint64_t ns, uint64_t least_ns)
{
    assert_in_range(ns, least_ns, least_ns + least_ns / 5);
}

static void test_the_first_question_is_due(void **state)
{
    struct cluster_pace pace = {.random = 1};
    (void)state;
    assert_int_equal(wait_of(&pace, START), 0);
}

static void test_in_calm_a_question_is_due_every_ten_seconds(void **state)
{
    struct cluster_pace pace = {.random = 1};
    (void)state;
    cluster_pace_note_question(&pace, START);
    cluster_pace_note_answer(&pace, PACE_NEWS);
    assert_about(wait_of(&pace, START), 10 * NS_PER_S);
    /* the shortest pause, even with a calm pause of 0 */
    assert_about(cluster_pace_due(&pace, 0, START) - START, 100 * MS);
}

static void test_what_is_wanted_is_asked_after_100_ms_and_later_if_nothing_changes(void **state)
{
    static const uint64_t pauses[] = {100, 200, 400, 800, 1000, 1000};
    struct cluster_pace pace = {.random = 1};
    uint64_t now = START;
    (void)state;
    for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
        cluster_pace_note_question(&pace, now);
        cluster_pace_want(&pace);
        assert_about(wait_of(&pace, now), pauses[i] * MS);
        cluster_pace_note_answer(&pace, PACE_SAME);
        now += 2 * NS_PER_S;
    }
    cluster_pace_note_question(&pace, now);
    cluster_pace_note_answer(&pace, PACE_NEWS);
    cluster_pace_want(&pace);
    assert_about(wait_of(&pace, now), 100 * MS);
}

static void test_a_silent_node_has_another_asked(void **state)
{
    static const enum cluster_pace_news news[] = {PACE_SILENT, PACE_AGAIN};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct cluster_pace pace = {.random = 1};
        cluster_pace_note_question(&pace, START);
        cluster_pace_note_answer(&pace, news[i]);
        assert_about(wait_of(&pace, START), 100 * MS);
    }
}

static void test_while_a_node_is_missing_questions_go_on(void **state)
{
    struct cluster_pace pace = {.random = 1, .is_urgent = true};
    uint64_t now = START;
    (void)state;
    for (int i = 0; i < 20; i++) {
        cluster_pace_note_question(&pace, now);
        cluster_pace_note_answer(&pace, PACE_SAME);
        assert_about(wait_of(&pace, now), 250 * MS);
        now += wait_of(&pace, now);
    }
}

/* At most ten requests in any second, whatever events and answers arrive. */
static void test_there_are_never_more_than_ten_a_second(void **state)
{
    enum { ROUNDS = 20000 };
    static uint64_t asked[ROUNDS];
    struct cluster_pace pace = {.random = 1};
    uint64_t now = START;
    (void)state;
    for (size_t n = 0; n < ROUNDS; n++) {
        uint64_t due = cluster_pace_due(&pace, roll(2) ? CLUSTER_PACE_CALM_NS : 0, now);
        now = due > now ? due : now;
        asked[n] = now;
        assert_true(n < 10 || now - asked[n - 10] > NS_PER_S);
        assert_true(n == 0 || now - asked[n - 1] >= 100 * MS);
        cluster_pace_note_question(&pace, now);
        if (roll(3) > 0)
            cluster_pace_note_answer(&pace, (enum cluster_pace_news)roll(4));
        if (roll(2) > 0)
            cluster_pace_want(&pace);
        pace.is_urgent = roll(2) > 0;
        now += roll(3) * 10 * MS;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_question_is_due),
        cmocka_unit_test(test_in_calm_a_question_is_due_every_ten_seconds),
        cmocka_unit_test(test_what_is_wanted_is_asked_after_100_ms_and_later_if_nothing_changes),
        cmocka_unit_test(test_a_silent_node_has_another_asked),
        cmocka_unit_test(test_while_a_node_is_missing_questions_go_on),
        cmocka_unit_test(test_there_are_never_more_than_ten_a_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
