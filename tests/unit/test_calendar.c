/*
 * Tests of time zones and calendar windows: a few zones, without files. tests/it/test_time_zones.py
 * tests all zones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/zone.h"
#include "limit/policy/calendar.h"

#include "dice.h"
#include "guard.h"

#define HOUR 3600
#define DAY CIVIL_DAY_S

static char why[160];

/* ---- dates ---- */

static void test_civil(void **state)
{
    (void)state;
    static const struct {
        int64_t day, year, month;
    } rows[] = {{0, 1970, 0},     {-1, 1969, 11},    {59, 1970, 2},    {10957, 2000, 0},
                {11016, 2000, 1}, {11017, 2000, 2},  {19782, 2024, 1}, {19783, 2024, 2},
                {-719528, 0, 0},  {-719529, -1, 11}, {47540, 2100, 1}, {47541, 2100, 2}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(civil_year_of(rows[i].day), rows[i].year);
        assert_int_equal(civil_month_of(rows[i].day), 12 * rows[i].year + rows[i].month);
    }
    int64_t day = civil_year_day(-800);
    for (int64_t month = -800 * 12; month < 2800 * 12; month++) {
        assert_int_equal(civil_month_day(month), day);
        assert_int_equal(civil_month_of(day), month);
        assert_int_equal(civil_month_of(day - 1), month - 1);
        int64_t year = civil_floor(month, 12);
        unsigned of_year = (unsigned)(month - 12 * year);
        day += civil_days_before(year, of_year + 1) - civil_days_before(year, of_year);
    }
}

/* ---- rules ---- */

static void test_rules(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t at_s;
        int32_t offset_s;
        int64_t until_s;
    } rows[] = {
        {"UTC0", 0, 0, INT64_MAX},
        {"<+0545>-5:45", 12345, 5 * HOUR + 45 * 60, INT64_MAX},
        {"CET-1CEST,M3.5.0,M10.5.0/3", 1774745999, HOUR, 1774746000},
        {"CET-1CEST,M3.5.0,M10.5.0/3", 1774746000, 2 * HOUR, 1792890000},
        {"CET-1CEST,M3.5.0,M10.5.0/3", 1792890000, HOUR, 1806195600},
        {"<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", 1775314799, 11 * HOUR, 1775314800},
        /* Nuuk: changes at -1 o'clock */
        {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 1774745999, -2 * HOUR, 1774746000},
        /* Dublin's winter time is the negative one */
        {"IST-1GMT0,M10.5.0,M3.5.0/1", 1780000000, HOUR, 1792890000},
        {"XXX3EDT4,0/0,J365/23", 1780000000, -4 * HOUR, 1798772400}, /* always summer time */
        {"AAA0BBB,J60/0,J300/0", 1709164799, 0, 1709251200},         /* March 1 of a leap year */
        {"AAA0BBB,59/0,300/0", 1709164799, 0, 1709164800},           /* February 29 */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct zone_rule rule;
        int64_t until_s;
        assert_true(zone_rule_parse(slice_str(rows[i].text), &rule));
        assert_int_equal(zone_rule_offset(&rule, rows[i].at_s, &until_s), rows[i].offset_s);
        assert_int_equal(until_s, rows[i].until_s);
    }
}

static void test_rules_that_are_none(void **state)
{
    (void)state;
    static const char *const rows[] = {"",
                                       "CET",
                                       "1",
                                       "<CET-1",
                                       "<>-1",
                                       "CET-25",
                                       "CET-1:60",
                                       "CET-1CEST",
                                       "CET-1CEST,",
                                       "CET-1CEST,M3.5.0",
                                       "CET-1CEST,M3.5.0,M10.5.0/3 ",
                                       "CET-1CEST,M13.5.0,M10.5.0",
                                       "CET-1CEST,M3.6.0,M10.5.0",
                                       "CET-1CEST,M3.0.0,M10.5.0",
                                       "CET-1CEST,M3.5.7,M10.5.0",
                                       "CET-1CEST,J0,J1",
                                       "CET-1CEST,J366,J1",
                                       "CET-1CEST,366,1",
                                       "CET-1CEST,M3.5.0/168,M10.5.0",
                                       "CET99999999999999999999"};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct zone_rule rule;
        if (zone_rule_parse(slice_str(rows[i]), &rule))
            fail_msg("\"%s\" is taken for a rule", rows[i]);
    }
}

/* ---- files ---- */

static size_t put(char *at, int64_t number, size_t size)
{
    for (size_t i = 0; i < size; i++)
        at[i] = (char)(number >> (8 * (size - 1 - i)));
    return size;
}

static size_t put_header(char *at, char version, const uint32_t counts[6])
{
    size_t n = 20;
    memset(at, 0, n);
    memcpy(at, "TZif", 4);
    at[4] = version;
    for (unsigned i = 0; i < 6; i++)
        n += put(at + n, counts[i], 4);
    return n;
}

/* Two changes: one hour ahead from 1000 on, none from 2000 on; then as the footer says. */
static size_t file_of(char *out, const char *footer)
{
    static const uint32_t empty[6] = {0, 0, 0, 0, 1, 1}, counts[6] = {0, 0, 0, 2, 2, 4};
    size_t n = put_header(out, '2', empty);
    memset(out + n, 0, 7);
    n += 7;
    n += put_header(out + n, '2', counts);
    n += put(out + n, 1000, 8);
    n += put(out + n, 2000, 8);
    out[n++] = 1;
    out[n++] = 0;
    for (int i = 0; i < 2; i++) {
        n += put(out + n, i * HOUR, 4);
        out[n++] = (char)i;
        out[n++] = 0;
    }
    memcpy(out + n, "AB\0", 4);
    n += 4;
    return n + (size_t)sprintf(out + n, "\n%s\n", footer);
}

static void test_file(void **state)
{
    (void)state;
    char file[400];
    int64_t until_s;
    struct guard guard = guard_new(sizeof file);
    size_t len = file_of(file, "CET-1CEST,M3.5.0,M10.5.0/3");
    struct zone *zone = zone_parse(SLICE("Some/Where"),
                                   slice_of(guard_place(&guard, file, len), len), why, sizeof why);
    assert_non_null(zone);
    assert_string_equal(zone_name(zone), "Some/Where");
    assert_int_equal(zone_offset(zone, -5, &until_s), 0);
    assert_int_equal(until_s, 1000);
    assert_int_equal(zone_offset(zone, 1000, &until_s), HOUR);
    assert_int_equal(until_s, 2000);
    assert_int_equal(zone_offset(zone, 1774746000, &until_s), 2 * HOUR);
    struct zone *other = zone_parse(SLICE("Some/Where"), slice_of(file, len), why, sizeof why);
    assert_int_not_equal(zone_id(zone), zone_id(other));
    zone_put(other);
    zone_put(zone_get(zone));
    zone_put(zone);
    for (size_t cut = 0; cut < len; cut++)
        assert_null(zone_parse(SLICE("Cut"), slice_of(guard_place(&guard, file, cut), cut), why,
                               sizeof why));
    guard_free(&guard);
}

static void test_files_that_are_none(void **state)
{
    (void)state;
    char file[400];
    size_t len = file_of(file, "no rule");
    assert_null(zone_parse(SLICE("X"), slice_of(file, len), why, sizeof why));
    assert_string_equal(why, "the file of the time zone X is damaged");
    len = file_of(file, "");
    struct zone *zone = zone_parse(SLICE("X"), slice_of(file, len), why, sizeof why);
    int64_t until_s;
    assert_int_equal(zone_offset(zone, 3000, &until_s), 0);
    assert_int_equal(until_s, INT64_MAX);
    zone_put(zone);
    file[95 + 5] = 1; /* out of order: the first change after the second */
    assert_null(zone_parse(SLICE("X"), slice_of(file, len), why, sizeof why));
    static const uint32_t leaps[6] = {0, 0, 1, 0, 1, 1};
    len = put_header(file, '\0', leaps);
    memset(file + len, 0, 15);
    assert_null(zone_parse(SLICE("right/X"), slice_of(file, len + 15), why, sizeof why));
    assert_string_equal(
        why, "the time zone right/X counts leap seconds, unlike unix time: choose another zone");
}

/* ---- windows ---- */

static void test_words(void **state)
{
    (void)state;
    assert_int_equal(calendar_parse(SLICE("Month")), CALENDAR_MONTH);
    assert_int_equal(calendar_parse(SLICE("week")), CALENDAR_WEEK);
    assert_int_equal(calendar_parse(SLICE("day")), CALENDAR_DAY);
    assert_int_equal(calendar_parse(SLICE("d")), CALENDAR_NONE);
    assert_int_equal(calendar_parse(SLICE("")), CALENDAR_NONE);
}

static void test_bounds(void **state)
{
    (void)state;
    int64_t bounds[CALENDAR_BOUNDS];
    uint64_t seed = 17;
    for (int i = 0; i < 20000; i++) {
        int64_t now_s =
            (int64_t)dice_below(&seed, UINT64_C(400) * 365 * DAY) - INT64_C(100) * 365 * DAY;
        enum calendar calendar = (enum calendar)(1 + dice_below(&seed, 3));
        calendar_bounds(calendar, NULL, now_s, bounds);
        assert_true(bounds[1] <= now_s && now_s < bounds[2]);
        for (int k = 0; k < CALENDAR_BOUNDS; k++) {
            assert_int_equal(bounds[k] % DAY, 0);
            if (calendar == CALENDAR_WEEK)
                assert_int_equal(((bounds[k] / DAY) % 7 + 7) % 7, 4); /* all are Mondays */
            if (calendar == CALENDAR_MONTH)
                assert_int_equal(bounds[k], civil_month_day(civil_month_of(bounds[k] / DAY)) * DAY);
            if (k > 0)
                assert_in_range(bounds[k] - bounds[k - 1],
                                calendar == CALENDAR_MONTH ? 28 * DAY : DAY, 31 * DAY);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_civil),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_rules_that_are_none),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_files_that_are_none),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
