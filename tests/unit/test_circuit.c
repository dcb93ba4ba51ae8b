/* Tests of the circuit breaker of LIMIT's scripts. All times are arguments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "quota/script_node.h"

#define TIMEOUT_NS (500 * NS_PER_MS)

static void test_a_question_is_due_a_time_out_after_it_was_asked(void **state)
{
    (void)state;
    assert_int_equal(circuit_due_ns(7, TIMEOUT_NS), 7 + TIMEOUT_NS);
    assert_true(circuit_due_ns(7, 0) == UINT64_MAX);
}

static void test_an_answer_closes_it(void **state)
{
    struct circuit circuit = {0};
    (void)state;
    assert_false(circuit.is_open);
    circuit_open(&circuit);
    assert_true(circuit.is_open);
    circuit_fail(&circuit, 100 * NS_PER_S);
    assert_true(circuit.is_open);
    circuit_close(&circuit);
    assert_false(circuit.is_open);
    assert_true(circuit_may_try(&circuit, 100 * NS_PER_S));
}

static void test_another_connection_is_tried_half_a_second_after_a_failure(void **state)
{
    struct circuit circuit = {0};
    (void)state;
    assert_true(circuit_may_try(&circuit, 0));
    circuit_open(&circuit);
    assert_true(circuit_may_try(&circuit, 1)); /* the first attempt after a hang, at once */
    for (uint64_t now_ns = 100 * NS_PER_S; now_ns < 110 * NS_PER_S; now_ns += NS_PER_S) {
        circuit_fail(&circuit, now_ns);
        assert_false(circuit_may_try(&circuit, now_ns));
        assert_false(circuit_may_try(&circuit, now_ns - 1)); /* the loop's time may be older */
        assert_false(circuit_may_try(&circuit, now_ns + CIRCUIT_AGAIN_NS - 1));
        assert_true(circuit_may_try(&circuit, now_ns + CIRCUIT_AGAIN_NS));
    }
}

static void test_an_open_circuit_is_probed_twice_a_second(void **state)
{
    struct circuit circuit = {0};
    uint64_t now_ns = 100 * NS_PER_S;
    (void)state;
    assert_true(circuit_probe_ns(&circuit, now_ns) == UINT64_MAX);
    circuit_open(&circuit);
    for (unsigned i = 0; i < 100; i++) { /* a probe that fails at once, or up to a second later */
        uint64_t failed_ns = now_ns + i * 10 * NS_PER_MS;
        assert_true(circuit_may_try(&circuit, now_ns));
        assert_int_equal(circuit_probe_ns(&circuit, now_ns), now_ns + CIRCUIT_AGAIN_NS);
        while (now_ns < failed_ns)
            now_ns = circuit_probe_ns(&circuit, now_ns);
        circuit_fail(&circuit, failed_ns);
        now_ns = circuit_probe_ns(&circuit, now_ns);
        assert_int_equal(now_ns, failed_ns + CIRCUIT_AGAIN_NS);
    }
    circuit_close(&circuit);
    assert_true(circuit_probe_ns(&circuit, now_ns) == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_question_is_due_a_time_out_after_it_was_asked),
        cmocka_unit_test(test_an_answer_closes_it),
        cmocka_unit_test(test_another_connection_is_tried_half_a_second_after_a_failure),
        cmocka_unit_test(test_an_open_circuit_is_probed_twice_a_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
