#include "limit/policy/calendar.h"

#include "base/zone.h"

/* The most that the clock of a zone is ahead of UTC. */
#define AHEAD_MOST_S (26 * 3600)

static const struct slice words[CALENDARS] = {[CALENDAR_NONE] = {"", 0},
                                              [CALENDAR_DAY] = {"day", 3},
                                              [CALENDAR_WEEK] = {"week", 4},
                                              [CALENDAR_MONTH] = {"month", 5}};

const char *calendar_word(enum calendar calendar)
{
    return words[calendar].at;
}

enum calendar calendar_parse(struct slice word)
{
    unsigned calendar = CALENDAR_NONE + 1;
    while (calendar < CALENDARS && !slice_eq_nocase(word, words[calendar]))
        calendar++;
    return calendar < CALENDARS ? (enum calendar)calendar : CALENDAR_NONE;
}

/* ---- units: numbered days, weeks or months ---- */

#define MONDAY 3 /* from Monday to 1970-01-01, a Thursday, in days */

static int64_t calendar_unit_of(enum calendar calendar, int64_t day)
{
    if (calendar == CALENDAR_WEEK)
        return civil_floor(day + MONDAY, 7);
    return calendar == CALENDAR_MONTH ? civil_month_of(day) : day;
}

static int64_t first_day(enum calendar calendar, int64_t unit)
{
    if (calendar == CALENDAR_WEEK)
        return 7 * unit - MONDAY;
    return calendar == CALENDAR_MONTH ? civil_month_day(unit) : unit;
}

/* The first moment when local time is the first midnight of this window, or later. */
static int64_t begin_of(enum calendar calendar, const struct zone *zone, int64_t unit)
{
    int64_t midnight_s = first_day(calendar, unit) * CIVIL_DAY_S;
    int64_t from_s = midnight_s - AHEAD_MOST_S, until_s;
    for (;; from_s = until_s) {
        int64_t shown_s = midnight_s - zone_offset(zone, from_s, &until_s);
        int64_t begin_s = shown_s > from_s ? shown_s : from_s;
        if (begin_s < until_s)
            return begin_s;
    }
}

/*
 * If clocks go back over midnight the local date is one day behind for a while, though the window
 * of that date is over.
 */
static int64_t unit_at(enum calendar calendar, const struct zone *zone, int64_t now_s)
{
    int64_t until_s;
    int64_t unit = calendar_unit_of(
        calendar, civil_floor(now_s + zone_offset(zone, now_s, &until_s), CIVIL_DAY_S));
    while (begin_of(calendar, zone, unit + 1) <= now_s)
        unit++;
    return unit;
}

void calendar_bounds(enum calendar calendar, const struct zone *zone, int64_t now_s,
                     int64_t bounds[CALENDAR_BOUNDS])
{
    int64_t unit = unit_at(calendar, zone, now_s), before = unit - 1;
    bounds[1] = begin_of(calendar, zone, unit);
    while ((bounds[0] = begin_of(calendar, zone, before)) == bounds[1])
        before--;
    for (unsigned i = 2; i < CALENDAR_BOUNDS; i++)
        while ((bounds[i] = begin_of(calendar, zone, ++unit)) == bounds[i - 1])
            ;
}
