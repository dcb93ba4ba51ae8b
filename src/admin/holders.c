#include "admin/holders.h"

static struct slice name_of(const struct top_entry *row)
{
    return slice_of(row->subject, row->subject_len);
}

/* What the list says of this subject; 0: it is not in it. */
static uint64_t rate_of(const struct snapshot_top *top, struct slice subject)
{
    for (size_t i = 0; i < top->n; i++)
        if (slice_eq(name_of(&top->rows[i]), subject))
            return top->rows[i].per_s;
    return 0;
}

static void add(const struct snapshot *s, struct holder *out, size_t *n, struct slice subject, double used)
{
    for (size_t i = 0; i < *n; i++)
        if (slice_eq(out[i].subject, subject))
            return;
    if (*n < HOLDERS_MAX)
        out[(*n)++] = (struct holder){subject, used, rate_of(&s->tops[TOP_REFUSED], subject),
                                      rate_of(&s->tops[TOP_COMMANDS], subject)};
}

size_t holders_of(const struct snapshot *s, size_t i, struct holder out[HOLDERS_MAX])
{
    const struct snapshot_limit *limit = &s->limits[i];
    const struct snapshot_top *refused = &s->tops[TOP_REFUSED];
    size_t n = 0;
    for (size_t h = 0; h < limit->n_holders; h++)
        add(s, out, &n, name_of(limit->holders[h].row), limit->holders[h].used);
    for (size_t r = 0; limit->state == LIMIT_REFUSING && r < refused->n && n < HOLDERS_MAX; r++) {
        const struct top_entry *row = &refused->rows[r];
        if (row->per_s > 0 && slice_eq(slice_of(row->policy, row->policy_len), slice_str(limit->policy)))
            add(s, out, &n, name_of(row), -1);
    }
    return n;
}
