/*
 * Calendar windows: a day, a week (from Monday on) or a month, in local time of a zone.
 *
 * A window begins at the first moment at which local time is its first midnight or later: where clocks go forward over
 * midnight, when they do; where they go back over it, at the first of the two midnights. So a day has 23 or 25 hours
 * when clocks change, and a date that a zone skipped has no window. Any thread.
 */
#ifndef WEIR_LIMIT_CALENDAR_H
#define WEIR_LIMIT_CALENDAR_H

#include <stdint.h>

#include "base/slice.h"
#include "base/zone.h"

enum calendar { CALENDAR_NONE, CALENDAR_DAY, CALENDAR_WEEK, CALENDAR_MONTH, CALENDARS };

/* "day", "week", "month" */
const char *calendar_word(enum calendar calendar);

/* Case does not matter; CALENDAR_NONE: none of them. */
enum calendar calendar_parse(struct slice word);

/*
 * When consecutive windows begin, as unix times, ascending: bounds[1] <= now_s < bounds[2]. A zone of NULL is UTC.
 */
#define CALENDAR_BOUNDS 5
void calendar_bounds(enum calendar calendar, const struct zone *zone, int64_t now_s, int64_t bounds[CALENDAR_BOUNDS]);

#endif
