/*
 * Fields of the maps in which weir tells of its limits: what report.c and report_operator.c have in common.
 */
#ifndef WEIR_QUOTA_REPORT_FIELDS_H
#define WEIR_QUOTA_REPORT_FIELDS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/blocks.h"
#include "limit/policy/limit.h"
#include "resp/build.h"

/* Rounded up, and at most what an integer of RESP holds. */
int64_t report_ms_up(uint64_t ns);

/* One field: its name, and a text or a number. */
void report_field(struct build *out, const char *name, struct slice value);
void report_number(struct build *out, const char *name, uint64_t value);

/* Six fields: limit, what, rate, burst, per, over; what is configured. */
void report_limit(struct build *out, const struct limit *limit);

/* Has an operator set it for one subject, or for a time? Then a map of it has so many fields more. */
#define REPORT_SET_FIELDS 2
bool report_is_set(const struct limit *limit);

/* These fields, if it has them: for whom, and until when. */
void report_set_fields(struct build *out, const struct limit *limit, struct slice subject, uint64_t now_ns);

/* Two fields: why somebody is blocked, and until when. */
void report_block(struct build *out, const struct block *block, uint64_t now_ns);

#endif
