/* Dates of the (proleptic) Gregorian calendar as days since 1970-01-01. */
#ifndef WEIR_BASE_CIVIL_H
#define WEIR_BASE_CIVIL_H

#include <stdbool.h>
#include <stdint.h>

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
    int64_t leap_days = civil_floor(before, 4) - civil_floor(before, 100) + civil_floor(before, 400);
    return 365 * (year - 1970) + leap_days - 477; /* of the years 1 to 1969 */
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
    /* 400 years have 146097 days; off by one at most */
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

#endif
