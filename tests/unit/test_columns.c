/* Tests of columns of text: as wide as the widest cell, numbers right-aligned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/text.h"

static void check(const char *cells, const char *wanted)
{
    struct text out = {0};
    columns_write(&out, slice_str(cells));
    assert_false(out.is_broken);
    assert_int_equal(out.len, strlen(wanted));
    assert_memory_equal(out.at != NULL ? out.at : "", wanted, out.len);
    text_fini(&out);
}

static void words_left_and_numbers_right(void **state)
{
    (void)state;
    check("limit\trate\tn\tnow\nfree/read\t5/s\t10\t-\na\t1000/s\t9\trefuses\n",
          "limit        rate   n  now\r\n"
          "free/read     5/s  10  -\r\n"
          "a          1000/s   9  refuses\r\n");
    check("127.0.0.1\n10\n", "127.0.0.1\r\n10\r\n");
    check("a\tn\nb\t1\nc\t-\n", "a  n\r\nb  1\r\nc  -\r\n");
}

static void what_is_missing_or_empty(void **state)
{
    (void)state;
    check("", "");
    check("\n", "\r\n");
    check("a\tb\n\t\nccc", "a    b\r\n     \r\nccc\r\n");
}

static void columns_beyond_the_most(void **state)
{
    (void)state;
    char cells[2 * COLUMNS_MAX + 6] = "";
    char wanted[3 * COLUMNS_MAX + 16] = "";
    for (int i = 0; i < COLUMNS_MAX + 2; i++) {
        strcat(cells, i > 0 ? "\tx" : "x");
        strcat(wanted, i > 0 ? "  x" : "x");
    }
    strcat(cells, "\n");
    strcat(wanted, "\r\n");
    check(cells, wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_left_and_numbers_right),
        cmocka_unit_test(what_is_missing_or_empty),
        cmocka_unit_test(columns_beyond_the_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
