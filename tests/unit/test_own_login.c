/* Tests of weir's own login: the newest password first, then the one before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "upstream/login/login.h"

#define AGAIN_NS 10

static bool has(struct own_login *own, uint64_t now_ns, const char *password)
{
    return slice_eq(login_password(own_login_now(own, now_ns)), slice_str(password));
}

static bool refuse(struct own_login *own, uint64_t now_ns)
{
    return own_login_refuse(own, own_login_now(own, now_ns), now_ns, AGAIN_NS);
}

static void set(struct own_login *own, const char *newest, const char *before)
{
    const struct own_login_words words = {SLICE("w"), slice_str(newest), slice_str(before), 1};
    assert_true(own_login_set(own, &words));
    assert_true(own_login_now(own, 0)->is_weirs);
}

static void test_none(void **state)
{
    (void)state;
    struct own_login own = {0};
    assert_null(own_login_now(&own, 0));
    own_login_fini(&own);
}

static void test_one_password(void **state)
{
    (void)state;
    struct own_login own = {0};
    set(&own, "P1", "");
    assert_false(refuse(&own, 0));
    assert_true(has(&own, 0, "P1"));
    own_login_fini(&own);
}

static void test_the_newest_first(void **state)
{
    (void)state;
    struct own_login own = {0};
    set(&own, "P2", "P1");
    assert_true(has(&own, 0, "P2"));
    assert_true(refuse(&own, 1));
    assert_true(has(&own, 1, "P1"));
    assert_true(has(&own, AGAIN_NS, "P1"));
    assert_true(has(&own, 1 + AGAIN_NS, "P2"));
    own_login_fini(&own);
}

static void test_the_one_before_is_refused_later(void **state)
{
    (void)state;
    struct own_login own = {0};
    set(&own, "P2", "P1");
    assert_true(refuse(&own, 1));
    own_login_accept(&own);
    assert_true(has(&own, 2, "P1"));
    assert_true(refuse(&own, 2));
    assert_true(has(&own, 2, "P2"));
    own_login_accept(&own);
    assert_true(has(&own, 3, "P2"));
    own_login_fini(&own);
}

static void test_both_are_refused(void **state)
{
    (void)state;
    struct own_login own = {0};
    set(&own, "P2", "P1");
    assert_true(refuse(&own, 1));
    assert_false(refuse(&own, 2));
    assert_true(has(&own, 2, "P2"));
    assert_true(refuse(&own, 3));
    assert_false(refuse(&own, 3));
    own_login_fini(&own);
}

static void test_an_older_login_is_refused(void **state)
{
    (void)state;
    struct own_login own = {0};
    set(&own, "P1", "");
    struct login *old = login_get(own_login_now(&own, 0));
    set(&own, "P2", "P1");
    assert_true(own_login_refuse(&own, old, 1, AGAIN_NS));
    assert_true(has(&own, 1, "P2"));
    login_put(old);
    own_login_fini(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_one_password),
        cmocka_unit_test(test_the_newest_first),
        cmocka_unit_test(test_the_one_before_is_refused_later),
        cmocka_unit_test(test_both_are_refused),
        cmocka_unit_test(test_an_older_login_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
