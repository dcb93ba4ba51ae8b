/* Tests of struct bytes: pieces are appended in order, up to a bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bytes.h"

static void pieces_stand_one_behind_the_other(void **state)
{
    (void)state;
    struct bytes bytes = {0};
    for (unsigned i = 0; i < 3000; i++) {
        char piece[] = {(char)i, (char)(i >> 8), 'x'};
        assert_true(bytes_add(&bytes, slice_of(piece, i % 4), 10000));
    }
    assert_int_equal(bytes.len, 3000 / 4 * (0 + 1 + 2 + 3));
    assert_true(bytes.room >= bytes.len);
    assert_memory_equal(bytes.at, "\1\2\0\3\0x\5", 7);
    bytes_fini(&bytes);
    assert_null(bytes.at);
}

static void the_bound_is_kept(void **state)
{
    (void)state;
    struct bytes bytes = {0};
    assert_true(bytes_add(&bytes, SLICE("abcd"), 5));
    assert_false(bytes_add(&bytes, SLICE("ef"), 5));
    assert_true(bytes_add(&bytes, SLICE("e"), 5));
    assert_true(bytes_add(&bytes, SLICE(""), 5));
    assert_false(bytes_add(&bytes, SLICE(""), 4));
    assert_null(bytes_reserve(&bytes, SIZE_MAX, SIZE_MAX));
    assert_int_equal(bytes.len, 5);
    assert_memory_equal(bytes.at, "abcde", 5);
    bytes_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_stand_one_behind_the_other),
        cmocka_unit_test(the_bound_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
