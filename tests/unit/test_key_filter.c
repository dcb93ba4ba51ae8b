/*
 * Tests of the filter of keys in flight: no key in the filter is missed, and false positives are
 * rare.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "limit/command/keys.h"

static struct slice key_of(char text[16], const char *what, int n)
{
    return slice_of(text, (size_t)snprintf(text, 16, "%s%d", what, n));
}

static void a_key_bars_what_might_see_the_order(void **state)
{
    (void)state;
    struct key_filter filter = {0};
    struct slice read = SLICE("read"), written = SLICE("written");
    assert_false(key_filter_bars(&filter, read, false));
    key_filter_add(&filter, read, true);
    key_filter_add(&filter, written, false);
    assert_false(key_filter_bars(&filter, read, true));
    assert_true(key_filter_bars(&filter, read, false));
    assert_true(key_filter_bars(&filter, written, true));
    assert_true(key_filter_bars(&filter, written, false));
    key_filter_clear(&filter);
    assert_false(key_filter_bars(&filter, written, false));
}

static void few_keys_are_barred_by_chance(void **state)
{
    (void)state;
    struct key_filter filter = {0};
    char text[16];
    int n_barred = 0;
    for (int i = 0; i < 32; i++)
        key_filter_add(&filter, key_of(text, "k", i), false);
    for (int i = 0; i < 32; i++)
        assert_true(key_filter_bars(&filter, key_of(text, "k", i), true));
    for (int i = 0; i < 10000; i++)
        n_barred += key_filter_bars(&filter, key_of(text, "other", i), false);
    assert_in_range(n_barred, 0, 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_bars_what_might_see_the_order),
        cmocka_unit_test(few_keys_are_barred_by_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
