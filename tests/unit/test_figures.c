/* figures: numbers as people read them, at the bounds between their forms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "admin/figures.h"

static char *finish(struct text *text)
{
    text_add(text, slice_of("", 1));
    return text->at;
}

#define CHECK(figure, value, wanted)                                                                                   \
    do {                                                                                                               \
        struct text text = {0};                                                                                        \
        figure(&text, value);                                                                                          \
        assert_string_equal(finish(&text), wanted);                                                                    \
        text_fini(&text);                                                                                              \
    } while (0)

static void test_counts(void **state)
{
    (void)state;
    CHECK(figure_count, 0, "0");
    CHECK(figure_count, 999, "999");
    CHECK(figure_count, 1000, "1,000");
    CHECK(figure_count, 1234567, "1,234,567");
    CHECK(figure_count, UINT64_MAX, "18,446,744,073,709,551,615");
}

static void test_rates(void **state)
{
    (void)state;
    CHECK(figure_rate, 0, "0");
    CHECK(figure_rate, 3.52, "3.5");
    CHECK(figure_rate, 4.02, "4");
    CHECK(figure_rate, 9.96, "10");
    CHECK(figure_rate, 9999.4, "9,999");
    CHECK(figure_rate, 9999.6, "10.0k");
    CHECK(figure_rate, 999960, "1.00M");
}

static void test_bytes(void **state)
{
    (void)state;
    CHECK(figure_bytes, 0, "0 B/s");
    CHECK(figure_bytes, 1023.4, "1023 B/s");
    CHECK(figure_bytes, 1023.6, "1 KB/s");
    CHECK(figure_bytes, 1536, "1.5 KB/s");
    CHECK(figure_bytes, 300.0 * 1024 * 1024, "300 MB/s");
    CHECK(figure_bytes, 5e15, "4656613 GB/s");
}

static void test_percents(void **state)
{
    (void)state;
    CHECK(figure_percent, 0, "0 %");
    CHECK(figure_percent, 0.0912, "9.1 %");
    CHECK(figure_percent, 0.97, "97 %");
    CHECK(figure_percent, 1, "100 %");
}

static void test_times(void **state)
{
    (void)state;
    CHECK(figure_duration, 0, "\u2013");
    CHECK(figure_duration, 0.0000041, "4.1 \u00b5s");
    CHECK(figure_duration, 0.0009994, "999 \u00b5s");
    CHECK(figure_duration, 0.0009996, "1 ms");
    CHECK(figure_duration, 0.25, "250 ms");
    CHECK(figure_duration, 2.5, "2.5 s");
    CHECK(figure_span, 59, "59 s");
    CHECK(figure_span, 61, "1 min 1 s");
    CHECK(figure_span, 3 * 3600 + 720, "3 h 12 min");
    CHECK(figure_span, 4 * 86400 + 3600, "4 d 1 h");
    CHECK(figure_time, 1795305612345, "<time datetime=\"2026-11-22T00:00:12Z\">2026-11-22 00:00:12 UTC</time>");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),   cmocka_unit_test(test_rates), cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_percents), cmocka_unit_test(test_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
