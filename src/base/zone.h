/*
 * A time zone: its offset from UTC at any time. Made from a TZif file (RFC 9636), then immutable; reference-counted.
 * Any thread.
 */
#ifndef WEIR_BASE_ZONE_H
#define WEIR_BASE_ZONE_H

#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define ZONE_NAME_MAX 64

struct zone;

/* `tzif` is the whole file. One reference. NULL: `why` says what is wrong with it. */
struct zone *zone_parse(struct slice name, struct slice tzif, char *why, size_t why_size);

/* Wherever a zone is an argument NULL is UTC. */
struct zone *zone_get(struct zone *zone);
void zone_put(struct zone *zone);

const char *zone_name(const struct zone *zone);

/* Unique in this process, never reused; 0: UTC. */
uint64_t zone_id(const struct zone *zone);

/* Seconds east of UTC at this unix time. *until_s: the next time at which that may change; INT64_MAX: never. */
int32_t zone_offset(const struct zone *zone, int64_t unix_s, int64_t *until_s);

#endif
