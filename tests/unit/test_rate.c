/* Tests of numbers with units: parsing, errors, and printing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "dice.h"
#include "limit/policy/rate.h"

#define S UINT64_C(1000000000)

static char why[256];

static void assert_says(const char *part)
{
    if (!strstr(why, part))
        fail_msg("\"%s\" does not say \"%s\"", why, part);
}

static void counts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t count;
    } good[] = {
        {"0", 0},        {"1", 1},           {"1000", 1000}, {"10k", 10000},
        {"2m", 2000000}, {"1g", 1000000000}, {"3K", 3000},   {"9223372036854775807", INT64_MAX},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint64_t count = 77;
        assert_true(rate_parse_count(slice_str(good[i].text), &count, why, sizeof why));
        assert_int_equal(count, good[i].count);
    }
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "is not a count"},
        {"k", "is not a count"},
        {"-1", "is not a count"},
        {"1.5k", "is not a count"},
        {"10x", "is not a count"},
        {"10 k", "is not a count"},
        {"007", "starts with 0"},
        {"99999999999999999999", "too large"},
        {"9223372036854775807k", "too large"},
        {"10kb", "kb, mb and gb count bytes"},
        {"1MB", "count bytes"},
        {"1gb", "count bytes"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t count = 77;
        assert_false(rate_parse_count(slice_str(bad[i].text), &count, why, sizeof why));
        assert_int_equal(count, 77);
        assert_says(bad[i].says);
    }
}

static void times(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t ns;
    } good[] = {
        {"0", 0},
        {"0s", 0},
        {"s", S},
        {"60s", 60 * S},
        {"500ms", S / 2},
        {"ms", S / 1000},
        {"m", 60 * S},
        {"5m", 300 * S},
        {"h", 3600 * S},
        {"d", 86400 * S},
        {"36525d", RATE_LONGEST_NS},
        {"2H", 7200 * S},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint64_t ns = 77;
        assert_true(rate_parse_time(slice_str(good[i].text), &ns, why, sizeof why));
        assert_int_equal(ns, good[i].ns);
    }
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "is not a time"},
        {"60", "is not a time"},
        {"1w", "is not a time"},
        {"-1s", "is not a time"},
        {"05s", "starts with 0"},
        {"1.5s", "is not a time"},
        {"36526d", "longer than 100 years"},
        {"999999999999999d", "too large"},
        {"us", "is not a time"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t ns = 77;
        assert_false(rate_parse_time(slice_str(bad[i].text), &ns, why, sizeof why));
        assert_int_equal(ns, 77);
        assert_says(bad[i].says);
    }
}

static void sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"0", 0},
        {"1", 1},
        {"65536", 65536},
        {"64kb", 65536},
        {"64KB", 65536},
        {"1mb", 1048576},
        {"3Gb", UINT64_C(3) << 30},
        {"9223372036854775807", INT64_MAX},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint64_t bytes = 77;
        assert_true(rate_parse_bytes(slice_str(good[i].text), &bytes, why, sizeof why));
        assert_int_equal(bytes, good[i].bytes);
    }
    static const char *const bad[] = {
        "",     "kb", "-1", "1.5mb", "1k",   "1m",           "1g",
        "1 kb", "01", "b",  "1tb",   "1kbs", "9999999999gb", "9223372036854775808"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t bytes = 77;
        if (rate_parse_bytes(slice_str(bad[i]), &bytes, why, sizeof why))
            fail_msg("%s passed", bad[i]);
        assert_int_equal(bytes, 77);
        assert_says("is not a size");
    }
}

static void amounts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_bytes;
        uint64_t count, period_ns;
    } good[] = {
        {"1000/s", false, 1000, S},
        {"5/60s", false, 5, 60 * S},
        {"2k/500ms", false, 2000, S / 2},
        {"1/d", false, 1, 86400 * S},
        {"10mb/s", true, 10 << 20, S},
        {"1KB/M", true, 1024, 60 * S},
        {"1/36525d", true, 1, RATE_LONGEST_NS},
        {"0.3/s", false, 3, 10 * S},
        {"0.25/s", false, 1, 4 * S},
        {"0.30/S", false, 3, 10 * S},
        {"2.5/s", false, 5, 2 * S},
        {"2.0/s", false, 2, S},
        {"0.5/2s", false, 1, 4 * S},
        {"1.5k/s", false, 1500, S},
        {"0.0005k/s", false, 1, 2 * S},
        {"0.000001g/h", false, 1000, 3600 * S},
        {"0.000001/ms", false, 1, 1000 * S},
        {"0.123456/m", false, 1929, UINT64_C(15625) * 60 * S},
        {"0.5mb/s", true, 1 << 19, S},
        {"0.3kb/s", true, 1536, 5 * S},
        {"0.5/18262d", true, 1, UINT64_C(36524) * 86400 * S},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct rate_text rate;
        enum rate_form form = good[i].is_bytes ? RATE_OF_BYTES : RATE_OF_UNITS;
        for (int k = 0; k < 2; k++, form = good[i].is_bytes ? RATE_OF_BYTES : RATE_OF_CALENDAR) {
            assert_true(rate_parse(slice_str(good[i].text), form, &rate, why, sizeof why));
            assert_int_equal(rate.count, good[i].count);
            assert_int_equal(rate.period_ns, good[i].period_ns);
            assert_int_equal(rate.calendar, CALENDAR_NONE);
            assert_int_equal(rate.burst, 0);
        }
    }
    static const struct {
        const char *text;
        bool is_bytes;
        const char *says;
    } bad[] = {
        {"", false, "write COUNT/PERIOD, like 1000/s"},
        {"", true, "write COUNT/PERIOD, like 10mb/s"},
        {"10mb", true, "is not a rate"},
        {"10m/s", true, "is not a size"},
        {"10mb/s", false, "count bytes"},
        {"/s", true, "is not a size"},
        {"/s", false, "is not a count"},
        {"1/", false, "is not a time"},
        {"1/s/s", false, "is not a time"},
        {"0/s", true, "a rate of 0"},
        {"1/0ms", true, "longer than 0"},
        {"1/40000d", false, "100 years"},
        {"0./s", false,
         "\"0.\" is not a count: a point has a number before it and 1 to 6 digits after it, like 0.3 or 1.5k"},
        {".5/s", false, "a point has a number before it"},
        {"./s", false, "a point has"},
        {"0.1234567/s", false, "1 to 6 digits after it"},
        {"00.5/s", false, "a point has"},
        {"1.2.3/s", false, "a point has"},
        {"0.5e1/s", false, "a point has"},
        {"0.5x/s", false, "a point has"},
        {"0.5 k/s", false, "a point has"},
        {"0.5kb/s", false, "a point has"},
        {"0.5k/s", true, "like 0.5mb"},
        {"-0.5/s", false, "write a whole number"},
        {"+0.5/s", false, "write a whole number"},
        {"1e3/s", false, "write a whole number"},
        {"9223372036854775807.5/s", false, "a point has"},
        {"99999999999999999999.5/s", false, "a point has"},
        {"9223372036854775.5k/s", true, "a point has"},
        {"0.0/s", false, "a rate of 0"},
        {"0.000/s", true, "a rate of 0"},
        {"0.5/0s", false, "longer than 0"},
        {"1/0.5s", false, "is not a time"},
        {"0.000001/d", false, "\"0.000001/d\" is 1 in more than 100 years"},
        {"0.3/36525d", false, "is 3 in more than 100 years"},
        {"5/month", false, "\"5/month\": day, week and month are for FIXED; d is any 24 hours"},
        {"5mb/Day", true, "day, week and month are for FIXED"},
        {"5/1day", false, "day, week and month are for FIXED"},
        {"x/days", false, "d is any 24 hours"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct rate_text rate = {.count = 77, .period_ns = 77};
        if (rate_parse(slice_str(bad[i].text), bad[i].is_bytes ? RATE_OF_BYTES : RATE_OF_UNITS,
                       &rate, why, sizeof why))
            fail_msg("%s passed", bad[i].text);
        assert_int_equal(rate.count, 77);
        assert_int_equal(rate.period_ns, 77);
        assert_says(bad[i].says);
    }
}

/* A parsed fraction is the written rate, in lowest terms. */
static void fractions(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 5000; i++) {
        char text[64];
        uint64_t whole = dice_scale(&seed, 1000000) - 1, parts = 1;
        struct rate_text rate;
        unsigned digits = 1 + (unsigned)dice_below(&seed, RATE_DECIMALS_MAX);
        for (unsigned k = 0; k < digits; k++)
            parts *= 10;
        uint64_t decimals = dice_below(&seed, parts), written = whole * parts + decimals;
        snprintf(text, sizeof text, "%u.%0*u/s", (unsigned)whole, (int)digits, (unsigned)decimals);
        bool is_read = rate_parse(slice_str(text), RATE_OF_UNITS, &rate, why, sizeof why);
        assert_int_equal(is_read, written > 0);
        if (!is_read)
            continue;
        assert_true((unsigned __int128)rate.count * parts * S ==
                    (unsigned __int128)written * rate.period_ns);
        for (uint64_t p = 2; p <= 5; p += 3)
            assert_false(rate.count % p == 0 && rate.period_ns / S % p == 0);
    }
}

/* ---- writing ---- */

static void assert_bytes(uint64_t bytes, const char *expected)
{
    char out[32];
    uint64_t read;
    size_t len = rate_print_bytes(bytes, out, sizeof out);
    assert_int_equal(len, strlen(out));
    if (expected)
        assert_string_equal(out, expected);
    assert_true(rate_parse_bytes(slice_str(out), &read, why, sizeof why));
    assert_int_equal(read, bytes);
}

static void assert_time(uint64_t ns, const char *expected)
{
    char out[32];
    uint64_t read;
    size_t len = rate_print_time(ns, out, sizeof out);
    assert_int_equal(len, strlen(out));
    if (expected)
        assert_string_equal(out, expected);
    assert_true(rate_parse_time(slice_str(out), &read, why, sizeof why));
    assert_int_equal(read, ns);
}

static void printed_as_written(void **state)
{
    (void)state;
    assert_bytes(0, "0");
    assert_bytes(1, "1");
    assert_bytes(1023, "1023");
    assert_bytes(1024, "1kb");
    assert_bytes(1536, "1536");
    assert_bytes(64 << 20, "64mb");
    assert_bytes(UINT64_C(5) << 30, "5gb");
    assert_bytes(UINT64_C(1025) << 20, "1025mb");
    assert_bytes(INT64_MAX, "9223372036854775807");
    assert_time(S / 1000, "ms");
    assert_time(S / 4, "250ms");
    assert_time(S, "s");
    assert_time(90 * S, "90s");
    assert_time(60 * S, "m");
    assert_time(3600 * S, "h");
    assert_time(36 * 3600 * S, "36h");
    assert_time(86400 * S, "d");
    assert_time(RATE_LONGEST_NS, "36525d");
    assert_time(0, NULL);
}

static void what_is_printed_is_read_back(void **state)
{
    (void)state;
    static const uint64_t units[] = {1, 1000, 60000, 3600000, 86400000}; /* in ms */
    uint64_t seed = 1;
    for (int i = 0; i < 5000; i++) {
        assert_bytes(dice_scale(&seed, UINT64_C(1) << 62) >> 22 << dice_below(&seed, 22), NULL);
        uint64_t unit = units[dice_below(&seed, 5)];
        assert_time(dice_scale(&seed, RATE_LONGEST_NS / (S / 1000) / unit) * unit * (S / 1000),
                    NULL);
    }
}

static void calendars(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum calendar calendar;
        uint64_t count;
    } good[] = {{"1000/month", CALENDAR_MONTH, 1000},
                {"2k/WEEK", CALENDAR_WEEK, 2000},
                {"1/Day", CALENDAR_DAY, 1}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct rate_text rate = {.period_ns = 77, .burst = 77};
        assert_true(rate_parse(slice_str(good[i].text), RATE_OF_CALENDAR, &rate, why, sizeof why));
        assert_int_equal(rate.calendar, good[i].calendar);
        assert_int_equal(rate.count, good[i].count);
        assert_int_equal(rate.period_ns, 0);
        assert_int_equal(rate.burst, 0);
    }
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"5/2month", "\"5/2month\": a period of the calendar has no number: write COUNT/month"},
        {"5/Weeks", "write COUNT/week"},
        {"5/7days", "write COUNT/day"},
        {"0/day", "a rate of 0"},
        {"/day", "is not a count"},
        {"0.5/day", "write a whole number"},
        {"5mb/day", "count bytes"},
        {"month", "is not a rate"},
        {"x/60s", "is not a count"},
        {"1/days/s", "is not a time"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct rate_text rate = {.count = 77};
        assert_false(rate_parse(slice_str(bad[i].text), RATE_OF_CALENDAR, &rate, why, sizeof why));
        assert_int_equal(rate.count, 77);
        assert_says(bad[i].says);
    }
}

static void bursts(void **state)
{
    (void)state;
    uint64_t burst = 77;
    assert_false(rate_parse_burst(SLICE("0"), RATE_OF_UNITS, &burst, why, sizeof why));
    assert_says("a burst of 0 never lets anything pass");
    assert_false(rate_parse_burst(SLICE("0kb"), RATE_OF_BYTES, &burst, why, sizeof why));
    assert_false(rate_parse_burst(SLICE("1kb"), RATE_OF_CALENDAR, &burst, why, sizeof why));
    assert_says("count bytes");
    assert_false(rate_parse_burst(SLICE("1k"), RATE_OF_BYTES, &burst, why, sizeof why));
    assert_says("is not a size");
    assert_int_equal(burst, 77);
    assert_true(rate_parse_burst(SLICE("1k"), RATE_OF_UNITS, &burst, why, sizeof why));
    assert_int_equal(burst, 1000);
    assert_true(rate_parse_burst(SLICE("1kb"), RATE_OF_BYTES, &burst, why, sizeof why));
    assert_int_equal(burst, 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),
        cmocka_unit_test(times),
        cmocka_unit_test(sizes),
        cmocka_unit_test(amounts),
        cmocka_unit_test(calendars),
        cmocka_unit_test(bursts),
        cmocka_unit_test(fractions),
        cmocka_unit_test(printed_as_written),
        cmocka_unit_test(what_is_printed_is_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
