/*
 * Tests of recent offenders: each subject once, in order, cut if there are too many or a name is
 * too long.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "limit/figures/offenders.h"

static struct offenders *offenders;
static struct offender rows[OFFENDERS_MAX];

static int set_up(void **state)
{
    (void)state;
    offenders = offenders_new();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    offenders_free(offenders);
    return 0;
}

static void note(unsigned limit, enum offender_kind kind, const char *name)
{
    offenders_note(offenders, limit, kind, slice_str(name),
                   (uint64_t)name[0] << 56 | (uint64_t)strlen(name));
}

static size_t take(bool is_cut)
{
    bool was_cut = !is_cut;
    size_t n = offenders_take(offenders, rows, &was_cut);
    assert_int_equal(was_cut, is_cut);
    return n;
}

static void assert_row(size_t i, unsigned limit, enum offender_kind kind, const char *name)
{
    assert_int_equal(rows[i].limit, limit);
    assert_int_equal(rows[i].kind, kind);
    assert_int_equal(rows[i].name_len, strlen(name));
    assert_memory_equal(rows[i].name, name, strlen(name));
}

static void each_is_noted_once(void **state)
{
    (void)state;
    assert_int_equal(take(false), 0);
    note(16383, OFFENDER_REFUSED, "b");
    note(16383, OFFENDER_REFUSED, "b");
    note(16383, OFFENDER_DELAYED, "b");
    note(1, OFFENDER_REFUSED, "b");
    note(16383, OFFENDER_REFUSED, "a");
    note(16383, OFFENDER_REFUSED, "b");
    assert_int_equal(take(false), 4);
    assert_row(0, 16383, OFFENDER_REFUSED, "b");
    assert_row(1, 16383, OFFENDER_DELAYED, "b");
    assert_row(2, 1, OFFENDER_REFUSED, "b");
    assert_row(3, 16383, OFFENDER_REFUSED, "a");
}

static void what_was_taken_is_noted_anew(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        note(5, OFFENDER_SHADOWED, "a");
        note(5, OFFENDER_SHADOWED, "a");
        assert_int_equal(take(false), 1);
        assert_row(0, 5, OFFENDER_SHADOWED, "a");
        assert_int_equal(take(false), 0);
    }
}

static void too_many_are_told(void **state)
{
    (void)state;
    char name[32];
    for (uint64_t i = 0; i < OFFENDERS_MAX + 7; i++) {
        snprintf(name, sizeof name, "user:%u", (unsigned)i);
        offenders_note(offenders, 3, OFFENDER_REFUSED, slice_str(name), i * 0x123456789abcdefULL);
    }
    assert_int_equal(take(true), OFFENDERS_MAX);
    assert_row(0, 3, OFFENDER_REFUSED, "user:0");
    assert_row(OFFENDERS_MAX - 1, 3, OFFENDER_REFUSED, "user:511");
    note(3, OFFENDER_REFUSED, "b");
    assert_int_equal(take(false), 1);
}

static void long_names_are_cut(void **state)
{
    (void)state;
    char name[OFFENDER_NAME_MAX + 2] = "";
    memset(name, 'x', OFFENDER_NAME_MAX + 1);
    note(0, OFFENDER_REFUSED, name);
    name[OFFENDER_NAME_MAX] = '\0';
    note(0, OFFENDER_REFUSED, name);
    assert_int_equal(take(false), 2);
    assert_row(1, 0, OFFENDER_REFUSED, name);
    memcpy(name + OFFENDER_NAME_MAX - 3, "...", 3);
    assert_row(0, 0, OFFENDER_REFUSED, name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_is_noted_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_taken_is_noted_anew, set_up, tear_down),
        cmocka_unit_test_setup_teardown(too_many_are_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(long_names_are_cut, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
