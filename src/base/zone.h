/*
 * Local time: dates, and time zones with their offset from UTC at any time.
 *
 * A zone is made from a TZif file (RFC 9636). A zone is immutable and reference-counted, and any
 * thread may use it.
 */
#ifndef WEIR_BASE_ZONE_H
#define WEIR_BASE_ZONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define ZONE_NAME_MAX 64

/* ---- dates of the proleptic Gregorian calendar, as days since 1970-01-01 ---- */

#define CIVIL_DAY_S 86400

/* Returns number / by, rounded down: by > 0. */
static inline int64_t civil_floor(int64_t number, int64_t by)
{
    int64_t quotient = number / by;
    return quotient - (number % by < 0);
}

static inline bool civil_is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

/* Returns the day of the first of January. */
static inline int64_t civil_year_day(int64_t year)
{
    int64_t before = year - 1; /* the last year with a leap day before January of `year` */
    int64_t leap_days =
        civil_floor(before, 4) - civil_floor(before, 100) + civil_floor(before, 400);
    return 365 * (year - 1970) + leap_days - 477; /* leap days of the years 1 to 1969 */
}

/* Returns how many days of the year precede a month; months count from 0. */
static inline int64_t civil_days_before(int64_t year, unsigned month)
{
    static const int16_t days[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    return days[month] + (month > 1 && civil_is_leap(year));
}

/* Returns the day of the first of a month; months count from January of the year 0. */
static inline int64_t civil_month_day(int64_t month)
{
    int64_t year = civil_floor(month, 12);
    return civil_year_day(year) + civil_days_before(year, (unsigned)(month - 12 * year));
}

static inline int64_t civil_year_of(int64_t day)
{
    /* an estimate, as 400 years have 146097 days; wrong by at most one year */
    int64_t year = 1970 + civil_floor(400 * day, 146097);
    if (day < civil_year_day(year))
        return year - 1;
    return day < civil_year_day(year + 1) ? year : year + 1;
}

/* Returns the month that `day` is in, counted from January of the year 0. */
static inline int64_t civil_month_of(int64_t day)
{
    int64_t year = civil_year_of(day);
    unsigned month = 11;
    while (day - civil_year_day(year) < civil_days_before(year, month))
        month--;
    return 12 * year + month;
}

/* ---- zones ---- */

struct zone;

/*
 * Reads a whole TZif file. Returns one reference, or NULL if the file is invalid; `why` then names
 * the error.
 */
struct zone *zone_parse(struct slice name, struct slice tzif, char *why, size_t why_size);

/* In the functions that take a zone, NULL stands for UTC. */
struct zone *zone_get(struct zone *zone);
void zone_put(struct zone *zone);

const char *zone_name(const struct zone *zone);

/* Returns an id that is unique in this process, and never reused; 0: UTC. */
uint64_t zone_id(const struct zone *zone);

/*
 * Returns the seconds east of UTC at this unix time. *until_s: the next time at which the offset
 * may change; INT64_MAX: never.
 */
int32_t zone_offset(const struct zone *zone, int64_t unix_s, int64_t *until_s);

/* ---- zones of the system's time zone database: TZDIR, or /usr/share/zoneinfo ---- */

/*
 * Only for the thread that reads the configuration, because the function reads the environment and
 * files.
 *
 * Loads a zone by its IANA name ("Europe/Berlin"; case matters). Returns one reference. NULL: the
 * name is invalid, no zone has this name, or the file is damaged; `why` then names the error.
 */
__attribute__((warn_unused_result)) struct zone *zone_load(struct slice name, char *why,
                                                           size_t why_size);

/* ---- the rule ---- */

/* The yearly time of a clock change, on the clock that is valid before the change. */
struct zone_transition {
    /* 'J': day 1 to 365, February 29 never counted; 'D': day 0 to 365; 'M': a weekday of a month */
    char form;
    uint8_t month, week; /* form 'M': month from 0; week 1 to 5, 5 being the last */
    uint16_t day;        /* form 'M': the weekday, 0 is Sunday */
    int32_t time_s;      /* seconds from that day's midnight, up to a week before or after */
};

/*
 * The rule of a zone after the last entry of its table: a POSIX TZ string,
 * "CET-1CEST,M3.5.0,M10.5.0/3", as extended by RFC 9636.
 */
struct zone_rule {
    int32_t standard_s, summer_s; /* seconds east of UTC */
    bool has_summer;
    struct zone_transition begin, end; /* begin and end of summer time */
};

/* Reads a rule. False if the text is no rule. Allocates nothing. */
__attribute__((warn_unused_result)) bool zone_rule_parse(struct slice text, struct zone_rule *rule);

/* Returns the offset by the rule, as zone_offset does for a zone. */
int32_t zone_rule_offset(const struct zone_rule *rule, int64_t unix_s, int64_t *until_s);

#endif
