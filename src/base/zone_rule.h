/*
 * The rule that a zone follows after the last entry of its table: a POSIX TZ string, "CET-1CEST,M3.5.0,M10.5.0/3", as
 * extended by RFC 9636.
 *
 * Any thread; nothing is allocated.
 */
#ifndef WEIR_BASE_ZONE_RULE_H
#define WEIR_BASE_ZONE_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

/* When clocks change, every year, by the clock that is valid until then. */
struct zone_turn {
    char form; /* 'J': day 1 to 365, February 29 never counted; 'D': day 0 to 365; 'M': a weekday of a month */
    uint8_t month, week; /* form 'M': month from 0; week 1 to 5, 5 being the last */
    uint16_t day;        /* form 'M': the weekday, 0 is Sunday */
    int32_t time_s;      /* seconds from that day's midnight, up to a week either way */
};

struct zone_rule {
    int32_t standard_s, summer_s; /* east of UTC */
    bool has_summer;
    struct zone_turn begin, end; /* of summer time */
};

__attribute__((warn_unused_result)) bool zone_rule_parse(struct slice text, struct zone_rule *rule);

/* As zone_offset. */
int32_t zone_rule_offset(const struct zone_rule *rule, int64_t unix_s, int64_t *until_s);

#endif
