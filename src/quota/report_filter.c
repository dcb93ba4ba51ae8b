#include "quota/report_filter.h"

#include <stdlib.h>

#include "base/glob.h"
#include "limit/figures/whom.h"

bool report_filter_is_good(const struct report_filter *filter)
{
    return filter->glob.len <= REPORT_GLOB_MAX && glob_is_closed(filter->glob);
}

static struct slice lower(struct slice text, char room[REPORT_GLOB_MAX])
{
    size_t len = text.len < REPORT_GLOB_MAX ? text.len : REPORT_GLOB_MAX;
    for (size_t i = 0; i < len; i++)
        room[i] = ascii_lower(text.at[i]);
    return slice_of(room, len);
}

static bool is_named_so(const struct report_filter *filter, const char *name)
{
    char glob[REPORT_GLOB_MAX], text[REPORT_GLOB_MAX];
    return filter->glob.len == 0 || glob_match(lower(filter->glob, glob), lower(slice_str(name), text));
}

bool report_filter_shows(const struct report_filter *filter, const struct limit *limit)
{
    return is_named_so(filter, limit->label) &&
           (filter->stopping == NULL ||
            (atomic_load_explicit(&filter->stopping[limit->id], memory_order_relaxed) & 1U << WHOM_REFUSED) != 0);
}

bool report_filter_shows_own(const struct report_filter *filter, const struct limit *limit, bool is_refusing)
{
    return is_named_so(filter, limit->label) && (filter->stopping == NULL || is_refusing);
}

/* The keys of named limits that are refused most lately say which limits refuse. Out of memory: none of them. */
struct refused_lately {
    struct top_entry rows[TOP_SUBJECTS];
    size_t n;
};

struct refused_lately *report_filter_look(const struct report_filter *filter, uint64_t now_ns)
{
    struct refused_lately *lately = filter->stopping != NULL ? calloc(1, sizeof *lately) : NULL;
    if (lately != NULL)
        lately->n = top_heaviest(&filter->limited, 1, TOP_REFUSED, now_ns, lately->rows, TOP_SUBJECTS);
    return lately;
}

bool report_filter_shows_named(const struct report_filter *filter, const struct named_limit *limit,
                               const struct refused_lately *lately)
{
    bool is_refusing = filter->stopping == NULL;
    for (size_t i = 0; lately != NULL && i < lately->n && !is_refusing; i++)
        is_refusing =
            slice_eq_nocase(slice_of(lately->rows[i].policy, lately->rows[i].policy_len), slice_str(limit->name));
    return is_refusing && is_named_so(filter, limit->name);
}
