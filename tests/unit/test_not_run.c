/* Tests of replies by which Redis refuses to run a command: matched in whole, byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "upstream/node/not_run.h"

static enum not_run_sight sight(const char *text)
{
    return not_run_look(slice_str(text), true).sight;
}

/* Each row is known at its last byte, whatever follows. */
static void test_rows(void **state)
{
    (void)state;
    for (int row = 0; row < NOT_RUN_FIXED; row++) {
        char text[NOT_RUN_ROOM + 8];
        struct slice whole = not_run_text((enum not_run)row);
        assert_in_range(whole.len, 4, NOT_RUN_ROOM);
        assert_memory_equal(whole.at + whole.len - 2, "\r\n", 2);
        for (size_t n = 0; n < whole.len; n++)
            assert_int_equal(not_run_look(slice_of(whole.at, n), true).sight, NOT_RUN_MORE);
        snprintf(text, sizeof text, "%.*s+OK\r\n", (int)whole.len, whole.at);
        for (size_t n = whole.len; n <= whole.len + 5; n++) {
            struct not_run_look look = not_run_look(slice_of(text, n), true);
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
    assert_int_equal(sight("-READONLY You can't write against a read only replica\r\n"),
                     NOT_RUN_NO);
    assert_int_equal(sight("-READONLY You can't write against a read only replica. script: 1\r\n"),
                     NOT_RUN_NO);
    assert_int_equal(sight("-readonly You can't write against a read only replica.\r\n"),
                     NOT_RUN_NO);
    assert_int_equal(sight("-LOADING Redis is loading the dataset in memory.\r\n"), NOT_RUN_NO);
    assert_int_equal(sight("$55\r\n-READONLY You can't write against a read only replica.\r\n\r\n"),
                     NOT_RUN_NO);
}

/*
 * MOVED and ASK are known by their first word, at their last byte, whatever follows. Only on a
 * cluster.
 */
static void test_redirects(void **state)
{
    static const char *const texts[] = {"-MOVED 3999 127.0.0.1:6381\r\n",
                                        "-ASK 16383 ::1:7000\r\n",
                                        "-MOVED 0 :7000\r\n",
                                        "-ASK 5 ?:65535\r\n",
                                        "-MOVED 12182 some-host.example:1\r\n",
                                        "-MOVED\r\n",
                                        "-ASK\r\n",
                                        "-MOVED x y\r\n",
                                        "-ASK 99999 a:b\r\n",
                                        "-MOVED 1 a:1 \r\n",
                                        "-MOVED  \r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char more[128];
        struct slice whole = slice_str(texts[i]);
        for (size_t n = 0; n < whole.len; n++)
            assert_int_equal(not_run_look(slice_of(whole.at, n), true).sight, NOT_RUN_MORE);
        snprintf(more, sizeof more, "%s-MOVED 1 a:1\r\n", texts[i]);
        const struct not_run_look look = not_run_look(slice_str(more), true);
        assert_int_equal(look.sight, NOT_RUN_YES);
        assert_int_equal(look.row, texts[i][1] == 'M' ? NOT_RUN_MOVED : NOT_RUN_ASK);
        assert_int_equal(look.len, whole.len);
        assert_int_equal(not_run_look(whole, false).sight, NOT_RUN_NO);
    }
}

static void test_no_redirects(void **state)
{
    char text[NOT_RUN_ROOM + 64] = "-MOVED 1 ";
    (void)state;
    assert_int_equal(sight("-MOVEDX 1 a:1\r\n"), NOT_RUN_NO);
    assert_int_equal(sight("-ASKING\r\n"), NOT_RUN_NO);
    assert_int_equal(sight("-MOVED 1 a:1\rx"), NOT_RUN_NO);
    assert_int_equal(sight("-moved 1 a:1\r\n"), NOT_RUN_NO);
    assert_int_equal(sight("+MOVED 1 a:1\r\n"), NOT_RUN_NO);
    memset(text + 9, 'a', sizeof text - 9);
    for (size_t n = 10; n <= sizeof text; n++)
        assert_int_equal(not_run_look(slice_of(text, n), true).sight,
                         n >= NOT_RUN_ROOM ? NOT_RUN_NO : NOT_RUN_MORE);
    assert_int_equal(
        not_run_look(SLICE("-TRYAGAIN Multiple keys request during rehashing of slot\r\n"), false)
            .sight,
        NOT_RUN_NO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_others),
                                       cmocka_unit_test(test_redirects),
                                       cmocka_unit_test(test_no_redirects)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
