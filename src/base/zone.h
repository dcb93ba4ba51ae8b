/*
 * A time zone: its offset from UTC at any time.
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

struct zone;

/* `tzif` is the whole file. Returns one reference. NULL: `why` says what is wrong with the file. */
struct zone *zone_parse(struct slice name, struct slice tzif, char *why, size_t why_size);

/* In all functions a NULL zone is UTC. */
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
