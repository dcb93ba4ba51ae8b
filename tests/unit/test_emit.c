/* Tests of writing numbers: the digits, and not a byte more. */
#include "resp/emit.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "dice.h"

static void assert_header(int64_t n)
{
    char want[EMIT_HEADER_MAX + 1], got[EMIT_HEADER_MAX + 1];
    size_t len = (size_t)snprintf(want, sizeof want, ":%" PRId64 "\r\n", n);
    memset(got, 'x', sizeof got);
    assert_int_equal(emit_header(got, ':', n), len);
    assert_memory_equal(got, want, len);
    for (size_t i = len; i < sizeof got; i++)
        assert_int_equal(got[i], 'x');
}

static void headers(void **state)
{
    (void)state;
    int64_t power = 1;
    for (int digits = 1; digits < 19; digits++, power *= 10)
        for (int64_t near = -1; near <= 1; near++) {
            assert_header(power + near);
            assert_header(-power + near);
        }
    assert_header(INT64_MAX);
    assert_header(INT64_MIN);
    uint64_t seed = 1;
    for (int i = 0; i < 20000; i++)
        assert_header((int64_t)dice(&seed) >> dice_below(&seed, 64));
}

static void arrays(void **state)
{
    (void)state;
    char got[128];
    const struct slice args[] = {SLICE("GET"), SLICE(""), SLICE("a longer one")};
    size_t len = emit_array(got, args, 3);
    assert_int_equal(len, strlen("*3\r\n$3\r\nGET\r\n$0\r\n\r\n$12\r\na longer one\r\n"));
    assert_memory_equal(got, "*3\r\n$3\r\nGET\r\n$0\r\n\r\n$12\r\na longer one\r\n", len);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers),
        cmocka_unit_test(arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
