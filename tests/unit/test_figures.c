/* Tests of printing numbers for people, at the bounds between their forms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "admin/findings.h"

static char *finish(struct text *text)
{
    text_add(text, slice_of("", 1));
    return text->at;
}

#define CHECK(figure, value, wanted)                                                               \
    do {                                                                                           \
        struct text text = {0};                                                                    \
        figure(&text, value);                                                                      \
        assert_string_equal(finish(&text), wanted);                                                \
        text_fini(&text);                                                                          \
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
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_percents),
        cmocka_unit_test(test_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
