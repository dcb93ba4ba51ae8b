#include "base/zone_rule.h"

#include <stddef.h>

#include "base/civil.h"

#define HOUR_S 3600
#define OFFSET_HOURS 24 /* of a clock from UTC */
#define TURN_HOURS 167  /* of a turn from its midnight */

/* ---- reading ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool take_char(struct slice *rest, char c)
{
    if (rest->len == 0 || rest->at[0] != c)
        return false;
    *rest = slice_of(rest->at + 1, rest->len - 1);
    return true;
}

static bool take_number(struct slice *rest, int32_t least, int32_t most, int32_t *number)
{
    *number = 0;
    if (rest->len == 0 || !is_digit(rest->at[0]))
        return false;
    while (rest->len > 0 && is_digit(rest->at[0]) && *number <= most) {
        *number = *number * 10 + (rest->at[0] - '0');
        *rest = slice_of(rest->at + 1, rest->len - 1);
    }
    return *number >= least && *number <= most;
}

/* "CET", "<+0330>" */
static bool take_name(struct slice *rest)
{
    bool is_quoted = take_char(rest, '<');
    size_t len = 0;
    while (len < rest->len &&
           (is_quoted ? rest->at[len] != '>' : (rest->at[len] | 0x20) >= 'a' && (rest->at[len] | 0x20) <= 'z'))
        len++;
    *rest = slice_of(rest->at + len, rest->len - len);
    return len > 0 && (!is_quoted || take_char(rest, '>'));
}

/* "2", "-3:30", "+167:59:59" */
static bool take_time(struct slice *rest, int32_t most_hours, int32_t *seconds)
{
    int32_t part, unit = HOUR_S;
    bool is_negative = take_char(rest, '-');
    if (!is_negative)
        (void)take_char(rest, '+');
    if (!take_number(rest, 0, most_hours, &part))
        return false;
    *seconds = part * HOUR_S;
    while (unit > 1 && take_char(rest, ':')) {
        unit /= 60;
        if (!take_number(rest, 0, 59, &part))
            return false;
        *seconds += part * unit;
    }
    *seconds = is_negative ? -*seconds : *seconds;
    return true;
}

static bool take_month_day(struct slice *rest, struct zone_turn *turn)
{
    int32_t month, week, day;
    if (!take_number(rest, 1, 12, &month) || !take_char(rest, '.') || !take_number(rest, 1, 5, &week) ||
        !take_char(rest, '.') || !take_number(rest, 0, 6, &day))
        return false;
    turn->month = (uint8_t)(month - 1);
    turn->week = (uint8_t)week;
    turn->day = (uint16_t)day;
    return true;
}

/* ",M3.5.0/3" */
static bool take_turn(struct slice *rest, struct zone_turn *turn)
{
    int32_t day;
    if (!take_char(rest, ','))
        return false;
    turn->time_s = 2 * HOUR_S;
    turn->form = take_char(rest, 'M') ? 'M' : take_char(rest, 'J') ? 'J' : 'D';
    if (turn->form == 'M') {
        if (!take_month_day(rest, turn))
            return false;
    } else {
        if (!take_number(rest, turn->form == 'J', 365, &day))
            return false;
        turn->day = (uint16_t)day;
    }
    return !take_char(rest, '/') || take_time(rest, TURN_HOURS, &turn->time_s);
}

/* POSIX gives what to add to local time: positive is west. */
static bool take_offset(struct slice *rest, int32_t *east_s)
{
    int32_t west_s;
    if (!take_time(rest, OFFSET_HOURS, &west_s))
        return false;
    *east_s = -west_s;
    return true;
}

bool zone_rule_parse(struct slice text, struct zone_rule *rule)
{
    struct slice rest = text;
    *rule = (struct zone_rule){0};
    if (!take_name(&rest) || !take_offset(&rest, &rule->standard_s))
        return false;
    if (rest.len == 0)
        return true;
    rule->has_summer = true;
    rule->summer_s = rule->standard_s + HOUR_S;
    if (!take_name(&rest) || (rest.len > 0 && rest.at[0] != ',' && !take_offset(&rest, &rule->summer_s)))
        return false;
    return take_turn(&rest, &rule->begin) && take_turn(&rest, &rule->end) && rest.len == 0;
}

/* ---- when ---- */

/* 1970-01-01 was a Thursday. */
static int64_t weekday_of(int64_t day)
{
    return day + 4 - 7 * civil_floor(day + 4, 7);
}

/* The day of the turn in this year, since 1970. */
static int64_t turn_day(const struct zone_turn *turn, int64_t year)
{
    int64_t new_year = civil_year_day(year);
    if (turn->form == 'D')
        return new_year + turn->day;
    if (turn->form == 'J') /* February 29 has no number */
        return new_year + turn->day - 1 + (turn->day > 59 && civil_is_leap(year));
    int64_t first = new_year + civil_days_before(year, turn->month);
    int64_t next_month = civil_month_day(12 * year + turn->month + 1);
    int64_t day = first + (turn->day - weekday_of(first) + 7) % 7 + 7 * (turn->week - 1);
    return day < next_month ? day : day - 7;
}

struct event {
    int64_t at_s;
    int32_t offset_s; /* from then on */
};

/* Turns of the years around, in order. Where summer time begins when it ends, it goes on. */
static void add_event(struct event *events, unsigned *n, struct event event, bool is_begin)
{
    unsigned i = (*n)++;
    while (i > 0 && (events[i - 1].at_s > event.at_s || (events[i - 1].at_s == event.at_s && !is_begin))) {
        events[i] = events[i - 1];
        i--;
    }
    events[i] = event;
}

int32_t zone_rule_offset(const struct zone_rule *rule, int64_t unix_s, int64_t *until_s)
{
    struct event events[6] = {{0}};
    unsigned n = 0;
    *until_s = INT64_MAX;
    if (!rule->has_summer)
        return rule->standard_s;
    int64_t year = civil_year_of(civil_floor(unix_s, CIVIL_DAY_S));
    for (int64_t y = year - 1; y <= year + 1; y++) {
        int64_t begin_s = turn_day(&rule->begin, y) * CIVIL_DAY_S + rule->begin.time_s - rule->standard_s;
        int64_t end_s = turn_day(&rule->end, y) * CIVIL_DAY_S + rule->end.time_s - rule->summer_s;
        add_event(events, &n, (struct event){begin_s, rule->summer_s}, true);
        add_event(events, &n, (struct event){end_s, rule->standard_s}, false);
    }
    int32_t offset_s = events[1].offset_s; /* before a turn the clock is what the other turn made it */
    for (unsigned i = 0; i < n && events[i].at_s <= unix_s; i++)
        offset_s = events[i].offset_s;
    for (unsigned i = n; i > 0 && events[i - 1].at_s > unix_s; i--)
        *until_s = events[i - 1].at_s;
    return offset_s;
}
