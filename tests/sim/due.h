/* A binary heap of moments, the earliest first. Equal moments are in the order of insertion. */
#ifndef WEIR_SIM_DUE_H
#define WEIR_SIM_DUE_H

#include <stddef.h>
#include <stdint.h>

/* Embedded in the thing that is due. All zero: in no heap. */
struct due {
    uint64_t at;
    uint64_t order;
    size_t place; /* index in the heap, from 1; 0: in no heap */
};

struct dues {
    struct due **heap; /* indices from 1 */
    size_t n, room;
    uint64_t orders;
};

/* Inserts the entry, or moves it to its new time. */
void due_set(struct dues *dues, struct due *due, uint64_t at);

/* Safe for an entry that is in no heap. */
void due_drop(struct dues *dues, struct due *due);

/* Returns the earliest entry; NULL: the heap is empty. */
static inline struct due *due_first(const struct dues *dues)
{
    return dues->n > 0 ? dues->heap[1] : NULL;
}

void dues_fini(struct dues *dues);

#endif
