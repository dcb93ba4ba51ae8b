/* What happens often is said once in a while, and nothing is lost from the count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/seldom.h"

static void test_said_once_in_a_while(void **state)
{
    struct seldom seldom = {0};
    uint64_t held_back = 7;
    (void)state;
    assert_true(seldom_may(&seldom, 5, &held_back));
    assert_int_equal(held_back, 0);
    assert_false(seldom_may(&seldom, 5, &held_back));
    assert_false(seldom_may(&seldom, 4 + SELDOM_NS, &held_back));
    assert_true(seldom_may(&seldom, 5 + SELDOM_NS, &held_back));
    assert_int_equal(held_back, 2);
    assert_true(seldom_may(&seldom, 5 + 2 * SELDOM_NS, &held_back));
    assert_int_equal(held_back, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_said_once_in_a_while)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
