/*
 * Tests of num_parse against its definition: a text is a number if printing the number gives the
 * text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/num.h"

#include "dice.h"
#include "guard.h"

static struct guard guard;

static void check(const char *text, size_t len, bool is_number, int64_t wanted)
{
    int64_t value = -77;
    bool answer = num_parse(slice_of(guard_place(&guard, text, len), len), &value);
    if (answer != is_number || value != (is_number ? wanted : -77))
        fail_msg("\"%.*s\": %s %" PRId64, (int)len, text, answer ? "is" : "is not", value);
}

static void test_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } rows[] = {
        {"0", 0},
        {"1", 1},
        {"-1", -1},
        {"9", 9},
        {"10", 10},
        {"100", 100},
        {"2147483648", INT64_C(2147483648)},
        {"-10", -10},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
        {"1000000000000000000", INT64_C(1000000000000000000)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check(rows[i].text, strlen(rows[i].text), true, rows[i].value);
}

static void test_what_is_no_number(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",
        "-",
        "+1",
        "01",
        "00",
        "-0",
        "-01",
        "1 ",
        " 1",
        "a",
        "1a",
        "--1",
        "1-",
        "1.0",
        "1e3",
        "0x1",
        "-+1",
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551617",
        "99999999999999999999",
        "000000000000000000001",
        "100000000000000000000",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check(rows[i], strlen(rows[i]), false, 0);
    check("1\0", 2, false, 0);
    check("\x00", 1, false, 0);
}

static void check_by_printing(const char *text)
{
    char again[32];
    errno = 0;
    long long value = strtoll(text, NULL, 10);
    snprintf(again, sizeof again, "%lld", value);
    check(text, strlen(text), errno == 0 && strcmp(text, again) == 0, value);
}

static void test_random_texts(void **state)
{
    (void)state;
    uint64_t seed = 42;
    for (int round = 0; round < 200000; round++) {
        char text[32];
        size_t len = dice_below(&seed, 22);
        const char *letters = round % 2 ? "0123456789" : "01289-+ a";
        for (size_t i = 0; i < len; i++)
            text[i] = letters[dice_below(&seed, strlen(letters))];
        if (len > 0 && dice_below(&seed, 4) == 0)
            text[0] = '-';
        text[len] = '\0';
        check_by_printing(text);
    }
}

static void test_random_numbers(void **state)
{
    (void)state;
    uint64_t seed = 43;
    for (int round = 0; round < 200000; round++) {
        char text[32];
        int64_t value = (int64_t)(dice(&seed) >> dice_below(&seed, 64));
        if (round % 2)
            value = -value;
        int len = snprintf(text, sizeof text, "%" PRId64, value);
        check(text, (size_t)len, true, value);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_what_is_no_number),
        cmocka_unit_test(test_random_texts),
        cmocka_unit_test(test_random_numbers),
    };
    guard = guard_new(64);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    guard_free(&guard);
    return failed;
}
