/* Tables of the unit suffixes, and the parsers. */
#include "limit/policy/rate.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/slice.h"
#include "base/why.h"

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit count_units[] = {
    {"", 1}, {"k", 1000}, {"m", 1000 * 1000}, {"g", 1000 * 1000 * 1000}};

static const struct unit byte_units[] = {
    {"", 1}, {"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30}};

static const struct unit time_units[] = {
    {"ms", NS_PER_MS},           {"s", NS_PER_S}, {"m", 60 * NS_PER_S}, {"h", 3600 * NS_PER_S},
    {"d", 24 * 3600 * NS_PER_S},
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const struct unit *find_unit(const struct unit *units, size_t n_units, struct slice name)
{
    for (size_t i = 0; i < n_units; i++)
        if (slice_eq_nocase(name, slice_str(units[i].name)))
            return &units[i];
    return NULL;
}

static struct slice take_digits(struct slice *rest)
{
    size_t len = 0;
    while (len < rest->len && rest->at[len] >= '0' && rest->at[len] <= '9')
        len++;
    return split_take(rest, len);
}

/* Sets *out to number * unit. False: `digits` is no number, or the product does not fit. */
static bool rate_scale(struct slice digits, const struct unit *unit, uint64_t *out)
{
    int64_t number;
    uint64_t product;
    if (!num_parse(digits, &number) ||
        __builtin_mul_overflow((uint64_t)number, unit->factor, &product))
        return false;
    *out = product;
    return true;
}

static bool is_bytes_unit(struct slice name)
{
    return slice_eq_nocase(name, SLICE("b")) ||
           (name.len == 2 && find_unit(byte_units, COUNT_OF(byte_units), name) != NULL);
}

bool rate_parse_count(struct slice text, uint64_t *count, char *why, size_t why_size)
{
    struct slice unit_name = text;
    struct slice digits = take_digits(&unit_name);
    const struct unit *unit = find_unit(count_units, COUNT_OF(count_units), unit_name);
    if (digits.len > 0 && is_bytes_unit(unit_name))
        return why_set(why, why_size,
                       "\"%.*s\": kb, mb and gb count bytes; commands are counted in k, m and g",
                       WHY_SLICE(text));
    if (digits.len == 0 || unit == NULL)
        return why_set(why, why_size,
                       "\"%.*s\" is not a count: write a whole number, or one with k, m or g (10k)",
                       WHY_SLICE(text));
    if (!rate_scale(digits, unit, count))
        return why_set(why, why_size, "\"%.*s\" is not a count: it is too large or starts with 0",
                       WHY_SLICE(text));
    return true;
}

bool rate_parse_bytes(struct slice text, uint64_t *bytes, char *why, size_t why_size)
{
    struct slice unit_name = text;
    struct slice digits = take_digits(&unit_name);
    const struct unit *unit = find_unit(byte_units, COUNT_OF(byte_units), unit_name);
    uint64_t parsed;
    if (digits.len == 0 || unit == NULL || !rate_scale(digits, unit, &parsed) || parsed > INT64_MAX)
        return why_set(
            why, why_size,
            "\"%.*s\" is not a size: write a number of bytes, or one with kb, mb or gb (64mb)",
            WHY_SLICE(text));
    *bytes = parsed;
    return true;
}

bool rate_parse_time(struct slice text, uint64_t *ns, char *why, size_t why_size)
{
    if (slice_eq(text, SLICE("0"))) {
        *ns = 0;
        return true;
    }
    struct slice unit_name = text;
    struct slice digits = take_digits(&unit_name);
    const struct unit *unit = find_unit(time_units, COUNT_OF(time_units), unit_name);
    if (unit == NULL)
        return why_set(why, why_size,
                       "\"%.*s\" is not a time: write ms, s, m, h or d, or a number of them (60s)",
                       WHY_SLICE(text));
    uint64_t parsed_ns = unit->factor;
    if (digits.len > 0 && !rate_scale(digits, unit, &parsed_ns))
        return why_set(why, why_size,
                       "\"%.*s\" is not a time: the number is too large or starts with 0",
                       WHY_SLICE(text));
    if (parsed_ns > RATE_LONGEST_NS)
        return why_set(why, why_size, "\"%.*s\" is longer than 100 years", WHY_SLICE(text));
    *ns = parsed_ns;
    return true;
}

/* ---- rates ---- */

static bool parse_whole(struct slice text, enum rate_form form, uint64_t *count, char *why,
                        size_t why_size)
{
    return form == RATE_OF_BYTES ? rate_parse_bytes(text, count, why, why_size)
                                 : rate_parse_count(text, count, why, why_size);
}

bool rate_parse_burst(struct slice text, enum rate_form form, uint64_t *burst, char *why,
                      size_t why_size)
{
    uint64_t parsed;
    if (!parse_whole(text, form, &parsed, why, why_size))
        return false;
    if (parsed == 0)
        return why_set(why, why_size, "a burst of 0 never lets anything pass: give at least 1");
    *burst = parsed;
    return true;
}

static uint64_t rate_common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Reads the digits after the point: the fraction is *number / *parts. */
static bool parse_decimals(struct slice digits, uint64_t *number, uint64_t *parts)
{
    *number = 0;
    *parts = 1;
    for (size_t i = 0; i < digits.len && digits.len <= RATE_DECIMALS_MAX; i++) {
        *number = *number * 10 + (uint64_t)(digits.at[i] - '0');
        *parts *= 10;
    }
    return *parts > 1;
}

/* Parses "0.3", "1.5k", "0.5mb" as *count / *parts, reduced. */
static bool parse_fraction(struct slice text, bool is_bytes, uint64_t *count, uint64_t *parts)
{
    struct slice rest = text;
    struct slice digits = take_digits(&rest);
    split_take(&rest, 1); /* the point */
    struct slice decimals = take_digits(&rest);
    const struct unit *unit = is_bytes ? find_unit(byte_units, COUNT_OF(byte_units), rest)
                                       : find_unit(count_units, COUNT_OF(count_units), rest);
    uint64_t whole, number, divisor;
    if (unit == NULL || !rate_scale(digits, unit, &whole) ||
        !parse_decimals(decimals, &number, parts) ||
        __builtin_mul_overflow(whole, *parts, &whole) ||
        __builtin_add_overflow(whole, number * unit->factor, &whole))
        return false;
    divisor = rate_common_divisor(whole, *parts);
    *count = whole / divisor;
    *parts /= divisor;
    return *count <= INT64_MAX;
}

/*
 * Parses the count, and the number of periods that the count covers. In a calendar window the count
 * must be whole.
 */
static bool parse_count(struct slice text, enum rate_form form, struct rate_text *read,
                        uint64_t *parts, char *why, size_t why_size)
{
    struct slice rest = text;
    take_digits(&rest);
    *parts = 1;
    if (rest.len == 0 || rest.at[0] != '.' || read->calendar != CALENDAR_NONE)
        return parse_whole(text, form, &read->count, why, why_size);
    bool is_bytes = form == RATE_OF_BYTES;
    return parse_fraction(text, is_bytes, &read->count, parts) ||
           why_set(
               why, why_size,
               "\"%.*s\" is not a count: a point has a number before it and 1 to %d digits after it, "
               "like %s",
               WHY_SLICE(text), RATE_DECIMALS_MAX, is_bytes ? "0.5mb" : "0.3 or 1.5k");
}

/* For "1month" or "days": the calendar window that is meant. */
static enum calendar nearly_calendar(struct slice period)
{
    take_digits(&period);
    if (period.len < strlen("day"))
        return CALENDAR_NONE;
    bool is_plural = ascii_lower(period.at[period.len - 1]) == 's';
    return calendar_parse(slice_of(period.at, period.len - is_plural));
}

static bool parse_calendar(struct slice text, struct slice period, enum rate_form form,
                           enum calendar *calendar, char *why, size_t why_size)
{
    enum calendar near = nearly_calendar(period);
    *calendar = calendar_parse(period);
    if (near != CALENDAR_NONE && form != RATE_OF_CALENDAR)
        return why_set(why, why_size,
                       "\"%.*s\": day, week and month are for FIXED; d is any 24 hours",
                       WHY_SLICE(text));
    return *calendar == near ||
           why_set(why, why_size,
                   "\"%.*s\": a period of the calendar has no number: write COUNT/%s",
                   WHY_SLICE(text), calendar_word(near));
}

bool rate_parse(struct slice text, enum rate_form form, struct rate_text *rate, char *why,
                size_t why_size)
{
    const char *slash = text.len > 0 ? memchr(text.at, '/', text.len) : NULL;
    if (slash == NULL)
        return why_set(why, why_size, "\"%.*s\" is not a rate: write COUNT/PERIOD, like %s",
                       WHY_SLICE(text), form == RATE_OF_BYTES ? "10mb/s" : "1000/s or 5/60s");
    struct slice period = text;
    struct slice count = split_take(&period, (size_t)(slash - text.at));
    split_take(&period, 1);

    struct rate_text read = {0};
    uint64_t parts;
    if (!parse_calendar(text, period, form, &read.calendar, why, why_size) ||
        !parse_count(count, form, &read, &parts, why, why_size) ||
        (read.calendar == CALENDAR_NONE &&
         !rate_parse_time(period, &read.period_ns, why, why_size)))
        return false;
    if (read.count == 0)
        return why_set(why, why_size, "a rate of 0 never lets anything pass: give at least 1");
    if (read.calendar == CALENDAR_NONE && read.period_ns == 0)
        return why_set(why, why_size, "\"%.*s\": the period must be longer than 0",
                       WHY_SLICE(text));
    if (read.period_ns > RATE_LONGEST_NS / parts)
        return why_set(why, why_size, "\"%.*s\" is %" PRIu64 " in more than 100 years",
                       WHY_SLICE(text), read.count);
    read.period_ns *= parts;
    *rate = read;
    return true;
}

/* ---- writing ---- */

/* The largest unit that divides `number`. The units of a table ascend. */
static const struct unit *whole_unit(const struct unit *units, size_t n, uint64_t number)
{
    size_t i = n - 1;
    while (i > 0 && number % units[i].factor != 0)
        i--;
    return &units[i];
}

size_t rate_print_bytes(uint64_t bytes, char *out, size_t size)
{
    const struct unit *unit =
        bytes > 0 ? whole_unit(byte_units, COUNT_OF(byte_units), bytes) : &byte_units[0];
    return (size_t)snprintf(out, size, "%" PRIu64 "%s", bytes / unit->factor, unit->name);
}

size_t rate_print_time(uint64_t ns, char *out, size_t size)
{
    const struct unit *unit = whole_unit(time_units, COUNT_OF(time_units), ns);
    if (ns == unit->factor)
        return (size_t)snprintf(out, size, "%s", unit->name);
    return (size_t)snprintf(out, size, "%" PRIu64 "%s", ns / unit->factor, unit->name);
}
