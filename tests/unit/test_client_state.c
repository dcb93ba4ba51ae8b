/* The states of a client: which may follow which. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "front/client_state.h"

static void test_a_client_takes_these_steps_and_no_other(void **state)
{
    static const bool is_step[CLIENT_CLOSED + 1][CLIENT_CLOSED + 1] = {
        [CLIENT_SHAKING] = {[CLIENT_OPEN] = true, [CLIENT_CLOSED] = true},
        [CLIENT_OPEN] = {[CLIENT_DRAINING] = true, [CLIENT_CLOSING] = true, [CLIENT_CLOSED] = true},
        [CLIENT_DRAINING] = {[CLIENT_CLOSING] = true, [CLIENT_CLOSED] = true},
        [CLIENT_CLOSING] = {[CLIENT_OPEN] = true, [CLIENT_CLOSED] = true},
    };
    (void)state;
    for (int from = 0; from <= CLIENT_CLOSED; from++)
        for (int to = 0; to <= CLIENT_CLOSED; to++)
            assert_int_equal(client_state_may_follow((enum client_state)from, (enum client_state)to),
                             is_step[from][to]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_client_takes_these_steps_and_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
