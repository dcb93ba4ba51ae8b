#include "admin/holders.h"

static struct slice holders_name_of(const struct top_entry *row)
{
    return slice_of(row->subject, row->subject_len);
}

static bool holders_is_blocked(const struct snapshot *s, const struct top_entry *row)
{
    return row->refused_by != TOP_NO_LIMIT && row->refused_by == s->block_id;
}

const char *holders_refuser(const struct snapshot *s, const struct top_entry *row)
{
    if (holders_is_blocked(s, row))
        return "block";
    for (size_t i = 0; i < s->n_limits; i++)
        if (s->limits[i].id == row->refused_by)
            return s->limits[i].rule;
    return NULL;
}

/* Returns the subject's rate in `top`, 0 if `top` lacks the subject. */
static uint64_t holders_rate_of(const struct snapshot_top *top, struct slice subject)
{
    for (size_t i = 0; i < top->n; i++)
        if (slice_eq(holders_name_of(&top->rows[i]), subject))
            return top->rows[i].per_s;
    return 0;
}

/* Returns the subject's usage of the limit, or a negative value if unknown. */
static double used_by(const struct snapshot_limit *limit, struct slice subject)
{
    for (size_t h = 0; h < limit->n_holders; h++)
        if (slice_eq(holders_name_of(limit->holders[h].row), subject))
            return limit->holders[h].used;
    return -1;
}

/* Returns the rate of refusals by limits. Refusals by a block do not count. */
static uint64_t refused_rate_of(const struct snapshot *s, struct slice subject)
{
    const struct snapshot_top *top = &s->tops[TOP_REFUSED];
    for (size_t i = 0; i < top->n; i++)
        if (holders_is_blocked(s, &top->rows[i]) &&
            slice_eq(holders_name_of(&top->rows[i]), subject))
            return 0;
    return holders_rate_of(top, subject);
}

static void holders_add(const struct snapshot *s, struct holder *out, size_t *n,
                        struct slice subject, double used)
{
    for (size_t i = 0; i < *n; i++)
        if (slice_eq(out[i].subject, subject))
            return;
    if (*n < HOLDERS_MAX)
        out[(*n)++] = (struct holder){subject, used, refused_rate_of(s, subject),
                                      holders_rate_of(&s->tops[TOP_COMMANDS], subject)};
}

static bool is_of_policy(const struct top_entry *row, const struct snapshot_limit *limit)
{
    return slice_eq(slice_of(row->policy, row->policy_len), slice_str(limit->policy));
}

/*
 * Adds the subjects that are refused mainly by this limit. If `is_by_it` is false, adds all refused
 * subjects of the policy.
 */
static void add_refused(const struct snapshot *s, const struct snapshot_limit *limit, bool is_by_it,
                        struct holder *out, size_t *n)
{
    const struct snapshot_top *refused = &s->tops[TOP_REFUSED];
    for (size_t r = 0; r < refused->n && *n < SNAPSHOT_HOLDERS; r++) {
        const struct top_entry *row = &refused->rows[r];
        if (row->per_s > 0 && !holders_is_blocked(s, row) &&
            (is_by_it ? row->refused_by == limit->id : is_of_policy(row, limit)))
            holders_add(s, out, n, holders_name_of(row), used_by(limit, holders_name_of(row)));
    }
}

size_t holders_of(const struct snapshot *s, size_t i, struct holder out[HOLDERS_MAX])
{
    const struct snapshot_limit *limit = &s->limits[i];
    size_t n = 0;
    bool is_refusing = limit->state == LIMIT_REFUSING;
    if (is_refusing)
        add_refused(s, limit, true, out, &n);
    if (is_refusing && n == 0)
        add_refused(s, limit, false, out, &n);
    for (size_t h = 0; h < limit->n_holders; h++)
        holders_add(s, out, &n, holders_name_of(limit->holders[h].row), limit->holders[h].used);
    return n;
}
