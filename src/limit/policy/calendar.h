/*
 * Calendar windows: a day, a week (from Monday on) or a month, in local time of a zone.
 *
 * A window begins at the first moment when local time is the window's first midnight or later. If
 * clocks go forward over midnight, the window begins at the change. If clocks go back over
 * midnight, the window begins at the first of the two midnights. A day with a clock change has 23
 * or 25 hours. A date that a zone skips has no window. Any thread.
 */
#ifndef WEIR_LIMIT_CALENDAR_H
#define WEIR_LIMIT_CALENDAR_H

#include <stdint.h>

#include "base/slice.h"
#include "base/zone.h"

enum calendar { CALENDAR_NONE, CALENDAR_DAY, CALENDAR_WEEK, CALENDAR_MONTH, CALENDARS };

/* "day", "week", "month" */
const char *calendar_word(enum calendar calendar);

/* Case does not matter. CALENDAR_NONE: no such word. */
enum calendar calendar_parse(struct slice word);

/*
 * Sets bounds to the starts of consecutive windows, as ascending unix times: bounds[1] <= now_s <
 * bounds[2]. A NULL zone is UTC.
 */
#define CALENDAR_BOUNDS 5
void calendar_bounds(enum calendar calendar, const struct zone *zone, int64_t now_s,
                     int64_t bounds[CALENDAR_BOUNDS]);

#endif
