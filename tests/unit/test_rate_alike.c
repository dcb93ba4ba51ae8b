/*
 * Tests that a limit of a policy, a line of [limit NAME] and a LIMIT command parse a rate alike.
 *
 * Each number of one table is combined with each period of the other, with a burst and without. The
 * numbers include those of RESP headers that Redis refuses (00, 4294967297, 1.0 ...).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "decision_kit.h"
#include "limit/policy/limit.h"
#include "limit/policy/rate.h"
#include "quota/rule.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define S UINT64_C(1000000000)
#define DAY (86400 * S)

/*
 * A number as a count of units and as a count of bytes, each with its number of periods. 0 periods:
 * refused.
 */
static const struct number {
    const char *text;
    uint64_t units, periods, bytes, byte_periods;
} numbers[] = {
    {"1", 1, 1, 1, 1},
    {"0", 0, 1, 0, 1},
    {"5", 5, 1, 5, 1},
    {"1000", 1000, 1, 1000, 1},
    {"10k", 10000, 1, 0, 0},
    {"2M", 2000000, 1, 0, 0},
    {"1g", 1000000000, 1, 0, 0},
    {"64kb", 0, 0, 65536, 1},
    {"3Mb", 0, 0, 3 << 20, 1},
    {"1gb", 0, 0, 1 << 30, 1},
    {"0kb", 0, 0, 0, 1},
    {"0k", 0, 1, 0, 0},
    {"0.3", 3, 10, 3, 10},
    {"0.25", 1, 4, 1, 4},
    {"2.0", 2, 1, 2, 1},
    {"1.0", 1, 1, 1, 1},
    {"0.0", 0, 1, 0, 1},
    {"1.5k", 1500, 1, 0, 0},
    {"0.5mb", 0, 0, 1 << 19, 1},
    {"0.3kb", 0, 0, 1536, 5},
    {"0.000001", 1, 1000000, 1, 1000000},
    {"0.1234567", 0, 0, 0, 0},
    {"2147483648", INT64_C(2147483648), 1, INT64_C(2147483648), 1},
    {"4294967297", INT64_C(4294967297), 1, INT64_C(4294967297), 1},
    {"9223372036854775807", INT64_MAX, 1, INT64_MAX, 1},
    {"9223372036854775808", 0, 0, 0, 0},
    {"18446744073709551617", 0, 0, 0, 0},
    {"9223372036854775807k", 0, 0, 0, 0},
    {"9999999999gb", 0, 0, 0, 0},
    {"-9223372036854775808", 0, 0, 0, 0},
    {"-1", 0, 0, 0, 0},
    {"-10", 0, 0, 0, 0},
    {"-0", 0, 0, 0, 0},
    {"+1", 0, 0, 0, 0},
    {"00", 0, 0, 0, 0},
    {"01", 0, 0, 0, 0},
    {"000000000000000000001", 0, 0, 0, 0},
    {"00.5", 0, 0, 0, 0},
    {".5", 0, 0, 0, 0},
    {"1.", 0, 0, 0, 0},
    {"1.2.3", 0, 0, 0, 0},
    {"1e3", 0, 0, 0, 0},
    {"0x10", 0, 0, 0, 0},
    {"a", 0, 0, 0, 0},
    {"k", 0, 0, 0, 0},
    {"kb", 0, 0, 0, 0},
    {"b", 0, 0, 0, 0},
    {"10x", 0, 0, 0, 0},
    {"1tb", 0, 0, 0, 0},
    {"1,5", 0, 0, 0, 0},
    {"1_000", 0, 0, 0, 0},
    {"1000s", 0, 0, 0, 0},
    {"\xd9\xa1", 0, 0, 0, 0},
    {"", 0, 0, 0, 0},
};

static const struct period {
    const char *text; /* NULL: no slash either */
    uint64_t ns;      /* 0: refused */
    enum calendar calendar;
} periods[] = {
    {"s", S, CALENDAR_NONE},
    {"60s", 60 * S, CALENDAR_NONE},
    {"500ms", S / 2, CALENDAR_NONE},
    {"MS", S / 1000, CALENDAR_NONE},
    {"m", 60 * S, CALENDAR_NONE},
    {"2H", 7200 * S, CALENDAR_NONE},
    {"d", DAY, CALENDAR_NONE},
    {"36525d", 36525 * DAY, CALENDAR_NONE},
    {"36526d", 0, CALENDAR_NONE},
    {"0", 0, CALENDAR_NONE},
    {"0s", 0, CALENDAR_NONE},
    {"1", 0, CALENDAR_NONE},
    {"05s", 0, CALENDAR_NONE},
    {"-1s", 0, CALENDAR_NONE},
    {"+1s", 0, CALENDAR_NONE},
    {"1.5s", 0, CALENDAR_NONE},
    {"99999999999999999999s", 0, CALENDAR_NONE},
    {"18446744073709551617ms", 0, CALENDAR_NONE},
    {"us", 0, CALENDAR_NONE},
    {"1w", 0, CALENDAR_NONE},
    {"sec", 0, CALENDAR_NONE},
    {"second", 0, CALENDAR_NONE},
    {"s/s", 0, CALENDAR_NONE},
    {"", 0, CALENDAR_NONE},
    {NULL, 0, CALENDAR_NONE},
    {"day", 0, CALENDAR_DAY},
    {"Week", 0, CALENDAR_WEEK},
    {"MONTH", 0, CALENDAR_MONTH},
    {"1day", 0, CALENDAR_NONE},
    {"days", 0, CALENDAR_NONE},
    {"months", 0, CALENDAR_NONE},
    {"year", 0, CALENDAR_NONE},
};

/* A burst behind the rate; NULL: none. */
static const char *const bursts[] = {NULL, "1", "40", "2k", "4kb", "0", "01", "-1", "1.5", "x"};

static const struct number *number_of(const char *text)
{
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        if (strcmp(numbers[i].text, text) == 0)
            return &numbers[i];
    return NULL;
}

/* The value of a burst; 0: refused. */
static uint64_t burst_of(const char *text, bool is_bytes)
{
    static const struct number others[] = {
        {"40", 40, 1, 40, 1}, {"2k", 2000, 1, 0, 0}, {"4kb", 0, 0, 4096, 1}};
    const struct number *number = number_of(text);
    for (size_t i = 0; i < COUNT_OF(others) && number == NULL; i++)
        number = strcmp(others[i].text, text) == 0 ? &others[i] : NULL;
    return number == NULL ? 0 : is_bytes ? number->bytes : number->units;
}

/* An expected rate; count 0: the text is refused. */
struct expected {
    uint64_t count, period_ns, burst;
    enum calendar calendar;
};

static struct expected expect(const struct number *number, const struct period *period,
                              const char *burst, bool is_bytes)
{
    uint64_t count = is_bytes ? number->bytes : number->units,
             parts = is_bytes ? number->byte_periods : number->periods;
    uint64_t units = burst != NULL ? burst_of(burst, is_bytes) : count;
    bool is_calendar = period->calendar != CALENDAR_NONE;
    bool is_good = parts > 0 && count > 0 && units > 0 && (is_calendar || period->ns > 0);
    is_good = is_good && (is_calendar ? strchr(number->text, '.') == NULL
                                      : period->ns <= RATE_LONGEST_NS / parts);
    return is_good ? (struct expected){count, period->ns * parts, units, period->calendar}
                   : (struct expected){0};
}

static void write_rate(char *out, size_t size, const char *before, const struct number *number,
                       const struct period *period, const char *burst)
{
    snprintf(out, size, "%s%s%s%s%s%s", before, number->text, period->text != NULL ? "/" : "",
             period->text != NULL ? period->text : "", burst != NULL ? " burst " : "",
             burst != NULL ? burst : "");
}

static void assert_read(bool is_read, bool is_expected, const char *text, const char *why)
{
    if (is_read != is_expected)
        fail_msg("%s is %s: %s", text, is_read ? "read" : "refused", why);
    if (!is_read)
        assert_true(strlen(why) > 10);
}

static void check_limit(const char *text, enum unit unit, struct expected expected)
{
    struct limit limit;
    struct rate rate;
    bool is_bytes = unit == UNIT_BYTES_OUT;
    bool is_good = expected.count > 0 && expected.calendar == CALENDAR_NONE &&
                   (is_bytes ? rate_init_bytes : rate_init)(&rate, expected.count,
                                                            expected.period_ns, expected.burst);
    assert_read(limit_parse(slice_str(text), unit, &limit, kit_why, sizeof kit_why), is_good, text,
                kit_why);
    if (is_good) {
        assert_int_equal(limit.rate.count, expected.count);
        assert_int_equal(limit.rate.period_ns, expected.period_ns);
        assert_int_equal(limit.rate.burst, expected.burst);
    }
}

/* The expected rule of a limit with this algorithm. */
static bool make_rule(uint8_t kind, struct expected expected, bool has_burst,
                      struct quota_rule *rule)
{
    struct rate rate;
    struct quota_rate *made = &rule->rates[0];
    bool is_window = kind == QUOTA_FIXED;
    *rule = (struct quota_rule){.kind = kind, .n_rates = 1};
    if (expected.count == 0 || (is_window ? has_burst : expected.calendar != CALENDAR_NONE))
        return false;
    if (is_window) {
        *made = (struct quota_rate){.limit = (int64_t)expected.count,
                                    .step = (int64_t)(expected.period_ns / 1000),
                                    .calendar = (uint8_t)expected.calendar};
        return expected.count < QUOTA_MOST;
    }
    if (!rate_init(&rate, expected.count, expected.period_ns, expected.burst) ||
        rate.burst_ns >= QUOTA_MOST - 1)
        return false;
    *made = (struct quota_rate){.limit = (int64_t)rate.burst, .step = (int64_t)rate.interval_ns};
    made->fine_count = rate_is_fine(&rate) ? (int64_t)rate.count : 0;
    made->fine_period = rate_is_fine(&rate) ? (int64_t)rate.period_ns : 0;
    return true;
}

static void check_rule(const char *text, uint8_t kind, struct expected expected, bool has_burst)
{
    struct quota_rule read = {0}, made;
    struct decision_request ask;
    char line[256];
    bool is_good = make_rule(kind, expected, has_burst, &made);
    struct slice name = slice_str(quota_algorithm(kind)->name);
    assert_read(quota_limit_parse(name, slice_str(text), &read, kit_why, sizeof kit_why), is_good,
                text, kit_why);
    assert_true(!is_good || quota_rule_is_same(&read, &made));
    snprintf(line, sizeof line, "LIMIT %s k %s", quota_algorithm(kind)->name, text);
    assert_read(kit_parse(&ask, line), is_good, line, kit_why);
    assert_true(!is_good || quota_rule_is_same(&ask.rule, &made));
}

static void rates_are_read_alike(void **state)
{
    char text[160];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(numbers) * COUNT_OF(periods) * COUNT_OF(bursts); i++) {
        const struct number *number = &numbers[i % COUNT_OF(numbers)];
        const struct period *period = &periods[i / COUNT_OF(numbers) % COUNT_OF(periods)];
        const char *burst = bursts[i / COUNT_OF(numbers) / COUNT_OF(periods)];
        struct expected units = expect(number, period, burst, false);
        if (number->text[0] == '\0' && period->text == NULL)
            continue; /* an empty word */
        write_rate(text, sizeof text, "", number, period, burst);
        check_limit(text, UNIT_COMMANDS, units);
        check_limit(text, UNIT_BYTES_OUT, expect(number, period, burst, true));
        if (strchr(number->text, ',') != NULL)
            continue; /* a comma separates rates of a named limit */
        check_rule(text, QUOTA_FUNNEL, units, burst != NULL);
        check_rule(text, QUOTA_FIXED, units, burst != NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rates_are_read_alike)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
