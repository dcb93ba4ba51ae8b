/*
 * Tests of struct text: what is written is there, and escaped text can be read back by a parser of
 * its format.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#include "guard.h"

static struct guard guard;

static void check(void (*add)(struct text *text, struct slice value), const char *value, size_t len,
                  const char *wanted)
{
    struct text text = {0};
    add(&text, slice_of(guard_place(&guard, value, len), len));
    text_add(&text, slice_of("", 1));
    assert_string_equal(text.at, wanted);
    text_fini(&text);
}

static void test_grows(void **state)
{
    (void)state;
    struct text text = {0};
    size_t wanted = 0;
    for (int i = 0; i < 5000; i++) {
        text_print(&text, "%d", i);
        text_add(&text, SLICE(","));
        wanted += i < 10 ? 2U : i < 100 ? 3U : i < 1000 ? 4U : 5U;
    }
    assert_int_equal(text.len, wanted);
    assert_memory_equal(text.at, "0,1,2,3,", 8);
    assert_memory_equal(text.at + text.len - 5, "4999,", 5);
    text_fini(&text);
    assert_null(text.at);
}

static void test_labels(void **state)
{
    (void)state;
    check(text_add_label, "a\"b\\c\nd", 7, "a\\\"b\\\\c\\nd");
    check(text_add_label, "", 0, "");
}

static void test_csv(void **state)
{
    (void)state;
    check(text_add_csv, "a\"b,c", 5, "\"a\"\"b,c\"");
}

static void test_json(void **state)
{
    (void)state;
    check(text_add_json, "", 0, "\"\"");
    check(text_add_json, "a\"\\\n\x7f\0", 6, "\"a\\u0022\\u005c\\u000a\\u007f\\u0000\"");
    check(text_add_json, "</script>&", 10, "\"\\u003c/script\\u003e\\u0026\"");
    check(text_add_json, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9,
          "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
}

static void test_json_of_what_is_no_utf8(void **state)
{
    (void)state;
    check(text_add_json, "\x80", 1, "\"\\ufffd\"");
    check(text_add_json, "\xc3", 1, "\"\\ufffd\"");
    check(text_add_json, "\xc0\xaf", 2, "\"\\ufffd\\ufffd\"");
    check(text_add_json, "\xe0\x80\xaf", 3, "\"\\ufffd\\ufffd\\ufffd\"");
    check(text_add_json, "\xed\xa0\x80", 3, "\"\\ufffd\\ufffd\\ufffd\"");
    check(text_add_json, "\xf4\x90\x80\x80", 4, "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
    check(text_add_json, "\xff\xc3\xa9", 3, "\"\\ufffd\xc3\xa9\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grows),
        cmocka_unit_test(test_labels),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_of_what_is_no_utf8),
    };
    guard = guard_new(64);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    guard_free(&guard);
    return failed;
}
