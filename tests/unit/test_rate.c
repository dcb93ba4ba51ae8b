/* The grammar of limits: what it takes, and what it says of the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "limit/rate.h"

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

static void limits(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t count, period_ns, burst;
    } good[] = {
        {"1000/s", 1000, S, 1000},
        {"5/60s", 5, 60 * S, 5},
        {"10000/h", 10000, 3600 * S, 10000},
        {"1/d", 1, 86400 * S, 1},
        {"2k/500ms burst 10k", 2000, S / 2, 10000},
        {"1000/s burst 2000 per subject over refuse", 1000, S, 2000},
        {" \t1000/S  OVER Refuse   BURST 1\tper SUBJECT ", 1000, S, 1},
        {"2g/s burst 1", 2000000000, S, 1},
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct rate rate;
        if (!rate_parse(slice_str(good[i].text), &rate, why, sizeof why))
            fail_msg("%s: %s", good[i].text, why);
        assert_int_equal(rate.count, good[i].count);
        assert_int_equal(rate.period_ns, good[i].period_ns);
        assert_int_equal(rate.burst, good[i].burst);
    }
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "a limit is missing"},
        {"  ", "a limit is missing"},
        {"1000", "COUNT/PERIOD"},
        {"burst 5", "COUNT/PERIOD"},
        {"/s", "is not a count"},
        {"1000/", "is not a time"},
        {"1000/60", "is not a time"},
        {"1000/1/s", "is not a time"},
        {"0/s", "a rate of 0"},
        {"5/0s", "longer than 0"},
        {"5/0", "longer than 0"},
        {"1mb/s", "count bytes"},
        {"5/s burst 0", "a burst of 0"},
        {"5/s burst", "value is missing"},
        {"5/s burst x", "is not a count"},
        {"5/s burst 5 burst 6", "\"burst\" is given twice"},
        {"5/s per subject per subject", "\"per\" is given twice"},
        {"5/s brust 5", "did you mean burst?"},
        {"5/s hello", "unknown clause \"hello\""},
        {"5/s per connection", "\"per connection\" is not yet supported"},
        {"5/s per Policy", "\"per policy\" is not yet supported"},
        {"5/s per client", "write \"per subject\""},
        {"5/s over delay 200ms", "\"over delay\" is not yet supported"},
        {"5/s over close", "\"over close\" is not yet supported"},
        {"5/s over shadow", "\"over shadow\" is not yet supported"},
        {"5/s over ignore", "write \"over refuse\""},
        {"5/s over", "value is missing"},
        {"1/d burst 40000", "100 years"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct rate rate = {.count = 77};
        if (rate_parse(slice_str(bad[i].text), &rate, why, sizeof why))
            fail_msg("%s passed", bad[i].text);
        assert_int_equal(rate.count, 77);
        assert_says(bad[i].says);
    }
}

static void long_texts_are_cut_in_messages(void **state)
{
    (void)state;
    char text[5000];
    struct rate rate;
    memset(text, 'x', sizeof text);
    assert_false(rate_parse(slice_of(text, sizeof text), &rate, why, sizeof why));
    assert_true(strlen(why) < 200);
    char small[8];
    assert_false(rate_parse(slice_of(text, sizeof text), &rate, small, sizeof small));
    assert_int_equal(strlen(small), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts),
        cmocka_unit_test(times),
        cmocka_unit_test(limits),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(long_texts_are_cut_in_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
