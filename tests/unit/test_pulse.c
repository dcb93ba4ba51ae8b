/* Tests of the check whether a node answers, with the test's own clock. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/clock.h"
#include "upstream/node/pulse.h"

#define FIRST_NS (100 * NS_PER_S)

/* A tick at_s seconds after the first, with its expected act and state. */
static void tick(struct pulse *pulse, unsigned at_s, enum pulse_act expected,
                 enum pulse_state state)
{
    assert_int_equal(pulse_tick(pulse, FIRST_NS + at_s * NS_PER_S), expected);
    assert_int_equal(pulse->state, state);
}

static void test_silent_after_three_periods(void **state)
{
    (void)state;
    struct pulse pulse = {0};
    assert_int_equal(pulse_silence_ns(&pulse, FIRST_NS), 0);
    tick(&pulse, 0, PULSE_ASK, PULSE_WELL);
    tick(&pulse, 1, PULSE_WAIT, PULSE_WELL);
    tick(&pulse, 2, PULSE_LOOK, PULSE_WELL);
    tick(&pulse, 3, PULSE_LOOK, PULSE_SILENT);
    for (unsigned at_s = 4; at_s < 400; at_s++)
        tick(&pulse, at_s, PULSE_LOOK, PULSE_SILENT);
    assert_int_equal(pulse_silence_ns(&pulse, FIRST_NS + 400 * NS_PER_S), 400 * NS_PER_S);
}

static void test_one_answer_is_enough(void **state)
{
    (void)state;
    struct pulse pulse = {0};
    tick(&pulse, 0, PULSE_ASK, PULSE_WELL);
    tick(&pulse, 1, PULSE_WAIT, PULSE_WELL);
    tick(&pulse, 2, PULSE_LOOK, PULSE_WELL);
    tick(&pulse, 3, PULSE_LOOK, PULSE_SILENT);
    pulse_answer(&pulse, false);
    assert_int_equal(pulse.state, PULSE_WELL);
    assert_int_equal(pulse_silence_ns(&pulse, FIRST_NS + 9 * NS_PER_S), 0);
    tick(&pulse, 9, PULSE_ASK, PULSE_WELL);
}

/* Each answer is late, and none late enough to count. */
static void test_misses_do_not_add_up(void **state)
{
    (void)state;
    struct pulse pulse = {0};
    for (unsigned at_s = 0; at_s < 300; at_s += 3) {
        tick(&pulse, at_s, PULSE_ASK, PULSE_WELL);
        tick(&pulse, at_s + 1, PULSE_WAIT, PULSE_WELL);
        tick(&pulse, at_s + 2, PULSE_LOOK, PULSE_WELL);
        pulse_answer(&pulse, false);
    }
}

static void test_a_script_runs(void **state)
{
    (void)state;
    struct pulse pulse = {0};
    tick(&pulse, 0, PULSE_ASK, PULSE_WELL);
    pulse_answer(&pulse, true);
    assert_int_equal(pulse.state, PULSE_BUSY);
    tick(&pulse, 1, PULSE_ASK, PULSE_BUSY);
    pulse_answer(&pulse, false);
    assert_int_equal(pulse.state, PULSE_WELL);
}

static void test_held_as_long_as_somebody_finds_it_there(void **state)
{
    (void)state;
    struct pulse pulse = {0};
    tick(&pulse, 0, PULSE_ASK, PULSE_WELL);
    tick(&pulse, 1, PULSE_WAIT, PULSE_WELL);
    for (unsigned at_s = 2; at_s < 200; at_s += 2) {
        tick(&pulse, at_s, PULSE_LOOK, at_s == 2 ? PULSE_WELL : PULSE_HELD);
        pulse_look(&pulse);
        assert_int_equal(pulse.state, PULSE_HELD);
        tick(&pulse, at_s + 1, PULSE_WAIT, PULSE_HELD);
    }
    tick(&pulse, 200, PULSE_LOOK, PULSE_HELD);
    tick(&pulse, 201, PULSE_LOOK, PULSE_SILENT);
    pulse_look(&pulse);
    assert_int_equal(pulse.state, PULSE_HELD);
    pulse_answer(&pulse, false);
    assert_int_equal(pulse.state, PULSE_WELL);
}

/* The answer has arrived in the meantime: the look from elsewhere is ignored. */
static void test_a_look_that_comes_too_late(void **state)
{
    (void)state;
    struct pulse pulse = {0};
    tick(&pulse, 0, PULSE_ASK, PULSE_WELL);
    pulse_answer(&pulse, false);
    pulse_look(&pulse);
    assert_int_equal(pulse.state, PULSE_WELL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silent_after_three_periods),
        cmocka_unit_test(test_one_answer_is_enough),
        cmocka_unit_test(test_misses_do_not_add_up),
        cmocka_unit_test(test_a_script_runs),
        cmocka_unit_test(test_held_as_long_as_somebody_finds_it_there),
        cmocka_unit_test(test_a_look_that_comes_too_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
