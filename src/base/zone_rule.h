/*
 * What a zone's clocks do beyond its table: the TZ string of POSIX, "CET-1CEST,M3.5.0,M10.5.0/3", as RFC 9636 has it.
 *
 * Any thread; nothing is allocated.
 */
#ifndef WEIR_BASE_ZONE_RULE_H
#define WEIR_BASE_ZONE_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* A moment of every year, by the clock that runs until then. */
struct zone_turn {
    char form;           /* 'J': day 1 to 365, never February 29; 'D': day 0 to 365; 'M': a month's weekday */
    uint8_t month, week; /* of 'M': from 0; 1 to 5, the fifth is the last */
    uint16_t day;        /* of 'M' the weekday, Sunday is 0 */
    int32_t time_s;      /* from that day's midnight, within a week */
};

struct zone_rule {
    int32_t standard_s, summer_s; /* east of UTC */
    bool has_summer;
    struct zone_turn begin, end; /* of summer time */
};

__attribute__((warn_unused_result)) bool zone_rule_parse(struct slice text, struct zone_rule *rule);

/* Seconds east of UTC at this unix time, and the next time at which that may change; INT64_MAX: never. */
int32_t zone_rule_offset(const struct zone_rule *rule, int64_t unix_s, int64_t *until_s);

#endif
