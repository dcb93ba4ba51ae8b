/*
 * Windows of the calendar: a day, a week from Monday on, a month, as the clocks of a zone have them.
 *
 * One begins at the first moment at which the zone's clock shows its first midnight or later: where clocks go forward
 * over midnight that is when they do, where they go back over it the first of the two. So a day has 23 hours or 25 when
 * clocks change, and one that a zone has left out is none. Any thread.
 */
#ifndef WEIR_LIMIT_CALENDAR_H
#define WEIR_LIMIT_CALENDAR_H

#include <stdint.h>

#include "base/slice.h"
#include "base/zone.h"

enum calendar { CALENDAR_NONE, CALENDAR_DAY, CALENDAR_WEEK, CALENDAR_MONTH, CALENDARS };

/* "day", "week", "month" */
const char *calendar_word(enum calendar calendar);

/* In any case of letters; CALENDAR_NONE: it is none of them. */
enum calendar calendar_parse(struct slice word);

/*
 * When windows begin, in unix time, one behind the other: [1] is the one that holds `now_s`, so [1] <= now_s < [2]. The
 * zone may be NULL: UTC.
 */
#define CALENDAR_BOUNDS 5
void calendar_bounds(enum calendar calendar, const struct zone *zone, int64_t now_s, int64_t bounds[CALENDAR_BOUNDS]);

#endif
