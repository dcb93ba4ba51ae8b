/*
 * A population: how the peaks of many subjects are distributed, in bounded memory. Subjects are put into cells by their
 * three peaks, each rounded up to one of 16 steps between a number and its double (so by a sixteenth at most); a cell
 * knows how many subjects it has. When there are too many cells the steps become half as many, down to powers of two:
 * since peaks bound each other (a 10 s peak is at most ten 1 s peaks) no more than some 640 cells can be left then.
 *
 * Not locked: its owner's.
 */
#ifndef WEIR_LIMIT_POPULATION_H
#define WEIR_LIMIT_POPULATION_H

#include <stddef.h>
#include <stdint.h>

#include "limit/figures/demand.h"

#define POPULATION_CELLS_MIN 1024 /* 8 KB */

struct population_cell {
    uint32_t key; /* 0: free */
    uint32_t subjects;
};

struct population {
    struct population_cell *cells; /* a hash table; NULL: none yet */
    size_t n_cells;                /* a power of two */
    size_t used;
    size_t most;     /* cells; a power of two, POPULATION_CELLS_MIN or more */
    unsigned coarse; /* there are 16 >> coarse steps to an octave */
    uint64_t subjects;
};

/* Empty; takes no memory yet. */
void population_init(struct population *population, size_t most_cells);
void population_fini(struct population *population);

/* Out of memory the copy is empty. `to` is not initialized before. */
void population_copy(struct population *to, const struct population *from);

/* n subjects more with these peaks; with peaks of 0 nothing came from them, and they do not count. */
void population_add(struct population *population, const struct peaks *peaks, uint32_t n);

/* One subject less with these peaks, which has been added. */
void population_take(struct population *population, const struct peaks *peaks);

/* Add all of another. Peaks stay rounded by the larger of both steps, once more at most. */
void population_merge(struct population *population, const struct population *other);

/* The next cell with subjects from index *at on, which moves behind it. The peaks of none are larger. NULL: no more. */
const struct population_cell *population_next(const struct population *population, size_t *at, struct peaks *upper);

/* The least that the peaks of a subject in that cell can be. */
struct peaks population_lower(const struct population *population, const struct population_cell *cell);

#endif
