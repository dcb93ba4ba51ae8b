/*
 * Tests of references to a connection: only of the same user, and only while the connection has an
 * owner.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "upstream/lane/owned.h"

#define MANY 5000

static void only_of_the_same_user(void **state)
{
    (void)state;
    struct owned *owned = owned_new();
    struct login *ann = login_new(SLICE("ann"), SLICE("pw"));
    struct login *same = login_new(SLICE("ann"), SLICE("else"));
    struct login *other = login_new(SLICE("bob"), SLICE("pw"));
    struct login *shifted = login_new(SLICE("an"), SLICE("npw"));
    owned_enter(owned, 7, ann);
    owned_enter(owned, 8, NULL);
    assert_false(owned_point(owned, 7, other) || owned_point(owned, 7, shifted) ||
                 owned_point(owned, 7, NULL));
    assert_false(owned_point(owned, 8, ann) || owned_point(owned, 9, ann) ||
                 owned_point(owned, 0, ann));
    assert_false(owned_point(owned, -7, ann) || owned_is_pointed_at(owned, 7));
    assert_true(owned_point(owned, 7, same) && owned_is_pointed_at(owned, 7) &&
                owned_point(owned, 8, NULL));
    assert_true(owned_leave(owned, 7));
    assert_false(owned_leave(owned, 7) || owned_point(owned, 7, ann));
    owned_enter(owned, 7, ann);
    assert_false(owned_is_pointed_at(owned, 7));
    owned_free(owned);
    login_put(ann);
    login_put(same);
    login_put(other);
    login_put(shifted);
}

static void many_come_and_go(void **state)
{
    (void)state;
    struct owned *owned = owned_new();
    for (int64_t id = 1; id <= MANY; id++) {
        owned_enter(owned, id, NULL);
        if (id % 3 == 0)
            assert_false(owned_leave(owned, id / 3));
    }
    for (int64_t id = 1; id <= MANY; id++)
        assert_int_equal(owned_point(owned, id, NULL), id > MANY / 3);
    for (int64_t id = MANY; id >= 1; id--)
        assert_int_equal(owned_leave(owned, id), id > MANY / 3);
    owned_free(owned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_of_the_same_user),
        cmocka_unit_test(many_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
