/*
 * Tests of building replies: every type in both protocols, the scanner's view of them, and running
 * out of memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "dice.h"
#include "resp/build.h"
#include "resp/scan.h"

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])

/* A refused allocation is an expected result here. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static struct build build;

static void start(bool is_resp3)
{
    build_fini(&build);
    build_init(&build, is_resp3);
}

static int tear_down(void **state)
{
    (void)state;
    build_fini(&build);
    return 0;
}

static void assert_built(const char *wanted)
{
    assert_false(build.is_broken);
    if (!slice_eq(slice_of(build.at, build.len), slice_str(wanted)))
        fail_msg("%.*s is not %s", (int)build.len, build.at, wanted);
    start(build.is_resp3);
}

static void nothing_at_first(void **state)
{
    (void)state;
    start(true);
    assert_true(build.is_resp3);
    assert_int_equal(build.len, 0);
    assert_false(build.is_broken);
}

static void heads(void **state)
{
    (void)state;
    start(false);
    build_map(&build, 2);
    assert_built("*4\r\n");
    build_set(&build, 2);
    assert_built("*2\r\n");
    build_array(&build, 0);
    assert_built("*0\r\n");
    start(true);
    build_map(&build, 2);
    assert_built("%2\r\n");
    build_set(&build, 2);
    assert_built("~2\r\n");
    build_array(&build, 3);
    assert_built("*3\r\n");
}

static void values_of_either_version(void **state)
{
    (void)state;
    for (int is_resp3 = 0; is_resp3 <= 1; is_resp3++) {
        start(is_resp3);
        build_bulk(&build, SLICE("a\r\nb"));
        assert_built("$4\r\na\r\nb\r\n");
        build_bulk(&build, slice_of(NULL, 0));
        assert_built("$0\r\n\r\n");
        build_bulk_str(&build, "text");
        assert_built("$4\r\ntext\r\n");
        build_printf_bulk(&build, "%s=%d", "x", 17);
        assert_built("$4\r\nx=17\r\n");
        build_printf_bulk(&build, "%s", "");
        assert_built("$0\r\n\r\n");
        build_int(&build, INT64_MIN);
        assert_built(":-9223372036854775808\r\n");
        build_status(&build, SLICE("OK"));
        assert_built("+OK\r\n");
        build_error(&build, SLICE("ERR no\r\nsuch\nlimit"));
        assert_built("-ERR no  such limit\r\n");
        build_status(&build, SLICE("a\r\nb"));
        assert_built("+a  b\r\n");
    }
}

static void nil(void **state)
{
    (void)state;
    start(false);
    build_nil(&build);
    assert_built("$-1\r\n");
    start(true);
    build_nil(&build);
    assert_built("_\r\n");
}

static void build_any(uint64_t *seed, int depth)
{
    size_t n = dice_below(seed, 4);
    switch (dice_below(seed, depth > 0 ? 9 : 6)) {
    case 0:
        build_bulk(&build, SLICE("bulk\r\n"));
        return;
    case 1:
        build_printf_bulk(&build, "%*d", 1 + (int)dice_below(seed, 600), 1);
        return;
    case 2:
        build_int(&build, (int64_t)dice(seed));
        return;
    case 3:
        build_status(&build, SLICE("O\nK"));
        return;
    case 4:
        build_nil(&build);
        return;
    case 5:
        build_error(&build, SLICE("ERR\r\n"));
        return;
    case 6:
        build_map(&build, n);
        n *= 2;
        break;
    case 7:
        build_set(&build, n);
        break;
    default:
        build_array(&build, n);
        break;
    }
    while (n-- > 0)
        build_any(seed, depth - 1);
}

static void whatever_is_built_is_one_frame(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (int round = 0; round < 20000; round++) {
        start(round % 2);
        build_any(&seed, 4);
        struct reply_scan scan = {0};
        size_t used;
        assert_false(build.is_broken);
        assert_true(build.len <= build.room);
        assert_int_equal(reply_scan(&scan, build.at, build.len, &used), SCAN_FRAME);
        assert_int_equal(used, build.len);
    }
}

static void large_replies_grow(void **state)
{
    (void)state;
    start(true);
    build_array(&build, 100000);
    for (int i = 0; i < 100000; i++)
        build_int(&build, 1000 + i % 9000);
    assert_false(build.is_broken);
    assert_int_equal(build.len, sizeof "*100000\r\n" - 1 + 100000 * (sizeof ":1000\r\n" - 1));
    assert_true(build.room < 4 * build.len);
}

/* Lengths that do not fit in memory. None of the bytes is read. */
static void what_does_not_fit_breaks_it(void **state)
{
    (void)state;
    static const size_t lens[] = {SIZE_MAX, SIZE_MAX - 100, SIZE_MAX / 2 + 1, SIZE_MAX / 4};
    for (size_t i = 0; i < COUNT_OF(lens); i++) {
        start(true);
        build_status(&build, SLICE("OK"));
        build_bulk(&build, slice_of("x", lens[i]));
        assert_true(build.is_broken);
        size_t len = build.len;
        build_int(&build, 1);
        build_nil(&build);
        build_error(&build, SLICE("ERR"));
        build_printf_bulk(&build, "%d", 1);
        assert_true(build.is_broken);
        assert_int_equal(build.len, len);
    }
}

static void fini_makes_it_new(void **state)
{
    (void)state;
    start(true);
    build_bulk(&build, slice_of("x", SIZE_MAX));
    build_fini(&build);
    build_nil(&build);
    assert_built("_\r\n");
    build_fini(&build);
    build_fini(&build);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(nothing_at_first, tear_down),
        cmocka_unit_test_teardown(heads, tear_down),
        cmocka_unit_test_teardown(values_of_either_version, tear_down),
        cmocka_unit_test_teardown(nil, tear_down),
        cmocka_unit_test_teardown(whatever_is_built_is_one_frame, tear_down),
        cmocka_unit_test_teardown(large_replies_grow, tear_down),
        cmocka_unit_test_teardown(what_does_not_fit_breaks_it, tear_down),
        cmocka_unit_test_teardown(fini_makes_it_new, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
