/*
 * What is due when: a binary heap of moments, the earlier first, of the same moment the one that was put in first.
 */
#ifndef WEIR_SIM_DUE_H
#define WEIR_SIM_DUE_H

#include <stddef.h>
#include <stdint.h>

/* Inside what is due; all zero: in no heap. */
struct due {
    uint64_t at;
    uint64_t order;
    size_t place; /* from 1; 0: in no heap */
};

struct dues {
    struct due **heap; /* from 1 */
    size_t n, room;
    uint64_t orders;
};

/* Put it in, or where it belongs now. */
void due_set(struct dues *dues, struct due *due, uint64_t at);

/* Safe on one that is in no heap. */
void due_drop(struct dues *dues, struct due *due);

/* NULL: none. */
static inline struct due *due_first(const struct dues *dues)
{
    return dues->n > 0 ? dues->heap[1] : NULL;
}

void dues_fini(struct dues *dues);

#endif
