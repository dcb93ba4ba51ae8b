/*
 * Populations of subjects, and suggestions: the rate and burst under which the ordinary ones of a population would have
 * passed. Pure.
 *
 * Which subjects are ordinary? Without a percentile, all but one in a hundred, and all but those
 * above a gap. A gap is a place in the order of what subjects need where one needs at least four
 * times as much as the next, and where no more than a tenth of all (of five subjects or more: at
 * least one) stand above. Of several gaps the lowest counts. Why four times: the sizes of tenants
 * fall off as 1, 1/2, 1/3 ..., so even the largest needs about twice what the next one does. Why a
 * tenth: with more above it a gap parts two kinds of tenants, and both are ordinary. Below a
 * command a second, or a burst of 60, there is no gap: a subject that sends next to nothing is no
 * abuser. With percentile p the ordinary are p in a hundred, whatever gaps there are.
 *
 * Rate and burst are each looked at so. The rate, in commands a second, is that of the ordinary
 * subject that needs most in the 60 s in which it sent most, and a fifth more. (While less than two
 * minutes have been seen its 10 s peak takes that place, in the first 20 s its 1 s peak.) The
 * burst, in commands, is the least with which, at that rate, the ordinary would have passed
 * wherever in their windows their commands came; so it is larger than it would have to be, two to
 * three times for traffic of single bursts, and never smaller. Both are rounded up to two digits.
 *
 * The burst that peaks p1, p10, p60 need at rate r. Between two instants of w seconds at most burst +
 * r * w pass. The worst there can be are two windows side by side that have all they may near where
 * they meet, so 2 * p1 at once; or 2 * p10 in as many seconds as that takes at p1 a second; or 2 *
 * p60 in as many 10 s as that takes at p10 each. Further windows add no more than r gives back in
 * them.
 */
#ifndef WEIR_LIMIT_SUGGESTION_H
#define WEIR_LIMIT_SUGGESTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/figures/demand.h"

/*
 * ---- populations ----
 *
 * A population: how the peaks of many subjects are distributed, in bounded memory. Subjects are put into cells by their
 * three peaks, each rounded up to one of 16 steps between a number and its double (so by a sixteenth at most); a cell
 * knows how many subjects it has. When there are too many cells the steps become half as many, down to powers of two:
 * since peaks bound each other (a 10 s peak is at most ten 1 s peaks) no more than some 640 cells can be left then.
 *
 * Not locked: its owner's.
 */

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

struct suggestion {
    uint64_t count;    /* commands in each ... */
    unsigned period_s; /* ... 1, 60 or 3600 seconds */
    uint64_t burst;
    uint64_t above; /* subjects above a gap; 0: there is none */
};

/* The least period of observation, and the fewest subjects: with less of both there is too little to say. */
#define SUGGESTION_SECONDS 60
#define SUGGESTION_SUBJECTS 5

bool suggestion_has_enough(uint64_t subjects, uint64_t observed_s);

#define SUGGESTION_GAPS 0 /* in the place of a percentile: 99, and what stands above a gap is left out */

/* For a population that is not empty, which has been observed for so many seconds. `percentile`: 1 to 100. */
struct suggestion suggestion_make(const struct population *population, uint64_t observed_s, unsigned percentile);

/* Would a subject with these peaks have passed, wherever in its windows its commands came? */
bool suggestion_passes(const struct suggestion *suggestion, const struct peaks *peaks);

/* Would it have been limited, wherever they came? Between the two nobody can say. */
bool suggestion_limits(const struct suggestion *suggestion, const struct peaks *peaks);

/*
 * How much of what passes in such a window its peak was, where that is most: above 1 it is limited. For comparing
 * subjects. *which is that window.
 */
double suggestion_excess(const struct suggestion *suggestion, const struct peaks *peaks, enum peak *which);

/* Does whatever passes `strict` pass `loose` too? Asked of limits of which the first sees all that the second sees. */
bool suggestion_covers(const struct suggestion *strict, const struct suggestion *loose);

#define SUGGESTION_ROOM 64

/* As it stands in a file, "1200/s burst 3600"; `out` has SUGGESTION_ROOM bytes. */
struct slice suggestion_text(const struct suggestion *suggestion, char *out);

#endif
