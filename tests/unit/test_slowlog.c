/* Tests of the slow log: newest first, bounded, and what remains when the bound changes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "limit/figures/slowlog.h"

static struct slowlog *slowlog;
static struct slow_entry entries[16];

static int set_up(void **state)
{
    (void)state;
    slowlog = slowlog_new();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    slowlog_free(slowlog);
    return 0;
}

static void add(uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i <= to; i++)
        slowlog_add(slowlog, &(struct slow_entry){.id = 999, .total_us = i});
}

/* The log has the entries `from` (the newest) down to `to`. The id of an entry is its time. */
static void check(uint64_t from, uint64_t to)
{
    size_t n = (size_t)(from - to + 1);
    assert_int_equal(slowlog_length(slowlog), n);
    assert_int_equal(slowlog_last(slowlog, entries, 16), n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(entries[i].id, from - i);
        assert_int_equal(entries[i].total_us, from - i);
    }
}

static void without_room_nothing_is_kept(void **state)
{
    (void)state;
    add(0, 2);
    assert_int_equal(slowlog_length(slowlog), 0);
    assert_int_equal(slowlog_last(slowlog, entries, 16), 0);
    slowlog_keep(slowlog, 4);
    add(3, 3);
    check(3, 3);
}

static void the_newest_are_kept(void **state)
{
    (void)state;
    slowlog_keep(slowlog, 4);
    add(0, 2);
    check(2, 0);
    add(3, 9);
    check(9, 6);
    assert_int_equal(slowlog_last(slowlog, entries, 2), 2);
    assert_int_equal(entries[1].id, 8);
    assert_int_equal(slowlog_last(slowlog, NULL, 0), 0);
}

static void other_room_keeps_what_it_can(void **state)
{
    (void)state;
    slowlog_keep(slowlog, 4);
    add(0, 5);
    slowlog_keep(slowlog, 7);
    check(5, 2);
    add(6, 9);
    check(9, 3);
    slowlog_keep(slowlog, 3);
    check(9, 7);
    add(10, 10);
    check(10, 8);
    slowlog_keep(slowlog, 0);
    assert_int_equal(slowlog_length(slowlog), 0);
    slowlog_keep(slowlog, SIZE_MAX);
    add(11, 11);
    check(11, 11);
}

static void numbers_go_on_after_a_reset(void **state)
{
    (void)state;
    slowlog_keep(slowlog, 4);
    add(0, 1);
    slowlog_reset(slowlog);
    assert_int_equal(slowlog_length(slowlog), 0);
    add(2, 3);
    check(3, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_room_nothing_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_newest_are_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_room_keeps_what_it_can, set_up, tear_down),
        cmocka_unit_test_setup_teardown(numbers_go_on_after_a_reset, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
