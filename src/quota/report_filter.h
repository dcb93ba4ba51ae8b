/*
 * Which limits LIMIT LIST shows.
 */
#ifndef WEIR_QUOTA_REPORT_FILTER_H
#define WEIR_QUOTA_REPORT_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/policy/limit.h"
#include "limit/figures/top.h"
#include "quota/named.h"

#define REPORT_GLOB_MAX 128

/* Those whose name fits the pattern, in whatever case; "": all. */
struct report_filter {
    struct slice glob;
    /* Of those the ones that refuse now: by limit id, bits by enum whom_kind; NULL: all of them. Named ones by `limited`. */
    const _Atomic uint8_t *stopping;
    struct top *limited;
};

bool report_filter_is_good(const struct report_filter *filter);

bool report_filter_shows(const struct report_filter *filter, const struct limit *limit);

/* The same for a limit of one subject, which has no tallies of its own: does it refuse that subject now? */
bool report_filter_shows_own(const struct report_filter *filter, const struct limit *limit, bool is_refusing);

/* Which named ones refuse now: to be freed. NULL: that is not asked; or out of memory, and none is shown. */
struct refused_lately;
struct refused_lately *report_filter_look(const struct report_filter *filter, uint64_t now_ns);
bool report_filter_shows_named(const struct report_filter *filter, const struct named_limit *limit,
                               const struct refused_lately *lately);

#endif
