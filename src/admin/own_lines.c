#include "admin/own_lines.h"

#define NAMED_MOST 3

bool own_lines_has(const struct snapshot *s, const struct snapshot_limit *limit)
{
    for (size_t i = 0; i < s->n_owns; i++)
        if (s->owns[i].id == limit->id)
            return true;
    return false;
}

void own_lines_name(struct text *out, const struct snapshot *s, const struct snapshot_limit *limit)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_owns; i++) {
        const struct snapshot_own *own = &s->owns[i];
        if (own->id != limit->id || n++ >= NAMED_MOST)
            continue;
        text_print(out, "%s%s for %s", n > 1 ? ", " : "", own->amount, own->subject);
    }
    if (n > NAMED_MOST)
        text_print(out, " and %zu more", n - NAMED_MOST);
}

uint64_t own_lines_refused(const struct snapshot *s, const struct snapshot_own *own)
{
    const struct snapshot_top *top = &s->tops[TOP_REFUSED];
    for (size_t i = 0; i < top->n; i++)
        if (top->rows[i].refused_by == own->id &&
            slice_eq(slice_of(top->rows[i].subject, top->rows[i].subject_len), slice_str(own->subject)))
            return top->rows[i].per_s;
    return 0;
}
