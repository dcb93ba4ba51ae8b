/* Tests of the pauses between attempts to reach a server that is down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/clock.h"
#include "upstream/node/backoff.h"

static void test_pauses_grow_to_a_second(void **state)
{
    (void)state;
    struct backoff backoff = {0};
    uint64_t now_ns = NS_PER_S;
    uint64_t most_ns[] = {50 * NS_PER_MS,  100 * NS_PER_MS, 200 * NS_PER_MS,
                          400 * NS_PER_MS, 800 * NS_PER_MS, NS_PER_S};
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t most = most_ns[i < 6 ? i : 5];
        backoff_fail(&backoff, now_ns);
        assert_in_range(backoff.due_ns - now_ns, most / 2, most);
        now_ns = backoff.due_ns;
    }
    backoff_reset(&backoff);
    assert_int_equal(backoff.due_ns, 0);
    backoff_fail(&backoff, now_ns);
    assert_in_range(backoff.due_ns - now_ns, most_ns[0] / 2, most_ns[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pauses_grow_to_a_second)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
