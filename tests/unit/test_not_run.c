/* Replies by which Redis says that it has not run a command: whole, byte for byte, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "upstream/not_run.h"

static enum not_run_sight sight(const char *text)
{
    return not_run_look(slice_str(text)).sight;
}

/* Each row is known once its last byte has come, whatever follows. */
static void test_rows(void **state)
{
    (void)state;
    for (int row = 0; row < NOT_RUN_ROWS; row++) {
        char text[NOT_RUN_ROOM + 8];
        struct slice whole = not_run_text((enum not_run)row);
        assert_in_range(whole.len, 4, NOT_RUN_ROOM);
        assert_memory_equal(whole.at + whole.len - 2, "\r\n", 2);
        for (size_t n = 0; n < whole.len; n++)
            assert_int_equal(not_run_look(slice_of(whole.at, n)).sight, NOT_RUN_MORE);
        snprintf(text, sizeof text, "%.*s+OK\r\n", (int)whole.len, whole.at);
        for (size_t n = whole.len; n <= whole.len + 5; n++) {
            struct not_run_look look = not_run_look(slice_of(text, n));
            assert_int_equal(look.sight, NOT_RUN_YES);
            assert_int_equal(look.row, row);
            assert_int_equal(look.len, whole.len);
        }
    }
}

static void test_others(void **state)
{
    (void)state;
    assert_int_equal(sight("+OK\r\n"), NOT_RUN_NO);
    assert_int_equal(sight("-ERR no such key\r\n"), NOT_RUN_NO);
    assert_int_equal(sight("-READONLY\r\n"), NOT_RUN_NO);
    assert_int_equal(sight("-READONLY You can't write against a read only replica\r\n"), NOT_RUN_NO);
    assert_int_equal(sight("-READONLY You can't write against a read only replica. script: 1\r\n"), NOT_RUN_NO);
    assert_int_equal(sight("-readonly You can't write against a read only replica.\r\n"), NOT_RUN_NO);
    assert_int_equal(sight("-LOADING Redis is loading the dataset in memory.\r\n"), NOT_RUN_NO);
    assert_int_equal(sight("$55\r\n-READONLY You can't write against a read only replica.\r\n\r\n"), NOT_RUN_NO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
