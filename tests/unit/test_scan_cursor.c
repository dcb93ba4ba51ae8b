/*
 * Tests of cursors of SCAN over several masters: a whole scan, other masters in between, invalid
 * cursors, and bounds.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "limit/command/scan_cursor.h"

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])

static const struct slice three[] = {SLICE("10.0.0.1:7000"), SLICE("10.0.0.1:7001"),
                                     SLICE("10.0.0.1:7002")};
static const struct slice turned[] = {SLICE("10.0.0.1:7002"), SLICE("10.0.0.1:7000"),
                                      SLICE("10.0.0.1:7001")};
static const struct slice others[] = {SLICE("10.0.0.1:7000"), SLICE("10.0.0.1:7001"),
                                      SLICE("10.0.0.1:7003")};

static struct scan_order order_of(const struct slice *names, uint32_t n)
{
    struct scan_order order;
    assert_true(scan_order_init(&order, names, n));
    return order;
}

static struct slice text_of(uint64_t number, char *out)
{
    return slice_of(out, (size_t)sprintf(out, "%" PRIu64, number));
}

/* Each master replies with cursor 5, then with 0. */
static void a_whole_scan(void **state)
{
    (void)state;
    struct scan_order order = order_of(three, 3);
    uint64_t cursor = 0;
    for (uint32_t step = 0; step < 6; step++) {
        char text[24];
        struct scan_position position;
        assert_true(scan_cursor_read(&order, text_of(cursor, text), &position));
        assert_int_equal(position.master, step / 2);
        assert_int_equal(position.cursor, step % 2 == 0 ? 0 : 5);
        assert_true(
            scan_cursor_next(&order, &position, step % 2 == 0 ? SLICE("5") : SLICE("0"), &cursor));
        assert_int_equal(cursor == 0, step == 5);
        assert_true(cursor < UINT64_C(1) << 20);
    }
    scan_order_fini(&order);
}

static void the_order_is_of_names(void **state)
{
    (void)state;
    struct scan_order a = order_of(three, 3);
    struct scan_order b = order_of(turned, 3);
    assert_int_equal(a.check, b.check);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(slice_eq(three[a.rows[i]], turned[b.rows[i]]));
    scan_order_fini(&a);
    scan_order_fini(&b);
}

static void other_masters_begin_anew(void **state)
{
    (void)state;
    struct scan_order a = order_of(three, 3);
    struct scan_order b = order_of(others, 3);
    struct scan_order c = order_of(three, 2);
    struct scan_position position = {0};
    uint64_t cursor;
    char text[24];
    assert_true(scan_cursor_next(&a, &position, SLICE("77"), &cursor));
    assert_true(scan_cursor_read(&a, text_of(cursor, text), &position));
    assert_int_equal(position.cursor, 77);
    assert_true(scan_cursor_read(&b, text_of(cursor, text), &position));
    assert_int_equal(position.cursor + position.master, 0);
    assert_true(scan_cursor_read(&c, text_of(cursor, text), &position));
    assert_int_equal(position.cursor + position.master, 0);
    scan_order_fini(&a);
    scan_order_fini(&b);
    scan_order_fini(&c);
}

static void nonsense(void **state)
{
    (void)state;
    struct scan_order order = order_of(three, 3);
    struct scan_position position;
    static const char *const none[] = {
        "", "-1", "a", "1a", " 1", "18446744073709551616", "99999999999999999999999"};
    for (size_t i = 0; i < COUNT_OF(none); i++)
        assert_false(scan_cursor_read(&order, slice_str(none[i]), &position));
    assert_true(scan_cursor_read(&order, SLICE("18446744073709551615"), &position));
    assert_true(scan_cursor_read(&order, SLICE("007"), &position));
    scan_order_fini(&order);
}

static void bounds(void **state)
{
    (void)state;
    struct scan_order order = order_of(three, 3);
    struct scan_position position = {0, 2};
    uint64_t cursor;
    char text[24];
    uint64_t most = ((UINT64_C(1) << 52) - 3) / 3;
    assert_true(scan_cursor_next(&order, &position, text_of(most, text), &cursor));
    assert_true(scan_cursor_read(&order, text_of(cursor, text), &position));
    assert_int_equal(position.cursor, most);
    assert_int_equal(position.master, 2);
    assert_false(scan_cursor_next(&order, &position, SLICE("18446744073709551615"), &cursor));
    assert_false(scan_cursor_next(&order, &position, text_of(most + 1, text), &cursor));
    assert_false(scan_cursor_next(&order, &position, SLICE("x"), &cursor));
    scan_order_fini(&order);
}

static void replies(void **state)
{
    (void)state;
    static const char *const none[] = {
        "", "*2\r\n", "*2\r\n$-1\r\n", "-ERR\r\n", "*2\r\n$9\r\n17\r\n", "*2\r\n:1\r\n*0\r\n"};
    struct slice cursor;
    struct slice rest;
    assert_true(scan_reply_read(SLICE("*2\r\n$2\r\n17\r\n*1\r\n$1\r\na\r\n"), &cursor, &rest));
    assert_true(slice_eq(cursor, SLICE("17")));
    assert_true(slice_eq(rest, SLICE("*1\r\n$1\r\na\r\n")));
    for (size_t i = 0; i < COUNT_OF(none); i++)
        assert_false(scan_reply_read(slice_str(none[i]), &cursor, &rest));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_scan),
        cmocka_unit_test(the_order_is_of_names),
        cmocka_unit_test(other_masters_begin_anew),
        cmocka_unit_test(nonsense),
        cmocka_unit_test(bounds),
        cmocka_unit_test(replies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
