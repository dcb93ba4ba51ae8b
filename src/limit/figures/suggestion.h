/*
 * Distributions of peak rates, and suggestions: a rate and burst under which the ordinary subjects
 * of a distribution would have passed. Pure.
 *
 * Ordinary subjects. With percentile p, p in a hundred subjects are ordinary, whatever the gaps.
 * Without a percentile, either one in a hundred subjects or all subjects above a gap are not
 * ordinary: the larger of the two numbers counts.
 *
 * A gap is a point in the order of needs with two properties. The subject just above the gap needs
 * at least four times as much as the next subject below. At most a tenth of all subjects are above
 * the gap; with five subjects or more, one subject may always be above. Of several gaps the lowest
 * counts.
 *
 * Why four times: the sizes of tenants fall off as 1, 1/2, 1/3 ... Even the largest tenant needs
 * only about twice as much as the next. Why a tenth: with more subjects above it, a gap separates
 * two kinds of tenants, and both are ordinary. A gap counts only if the subjects above it need at
 * least one command a second, or a burst of 60: a subject that sends next to nothing is no abuser.
 *
 * Rate and burst are treated separately. The rate, in commands a second, is the largest 60 s peak
 * of an ordinary subject divided by 60, plus a fifth. During the first two minutes of observation
 * the 10 s peak is used instead, and in the first 20 s the 1 s peak.
 *
 * The burst, in commands, is the least that lets all ordinary subjects pass at that rate, whenever
 * in the windows their commands came. The burst is never too small. For traffic of single bursts
 * the burst is two to three times larger than necessary. Rate and burst are rounded up to two
 * digits.
 *
 * The burst that peaks p1, p10, p60 need at rate r: between two instants w seconds apart at most
 * burst + r * w pass. The worst case is two adjacent windows with all their commands near the
 * common boundary:
 *
 * 2 * p1    at once
 * 2 * p10   in the seconds that these commands take at p1 a second
 * 2 * p60   in the tens of seconds that these commands take at p10 each
 *
 * Further windows add no more than rate r gives back in these windows.
 */
#ifndef WEIR_LIMIT_SUGGESTION_H
#define WEIR_LIMIT_SUGGESTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/figures/peak_rates.h"

/*
 * ---- distributions ----
 *
 * The distribution of the peaks of many subjects, in bounded memory. Subjects are counted in cells
 * by their three peaks. Each peak is rounded up to one of 16 steps between a number and its double,
 * by a sixteenth at most. When the cells are too many, the number of steps is halved. With the
 * fewest steps, peaks are rounded up to powers of two. Peaks bound each other (a 10 s peak is at
 * most ten 1 s peaks): with powers of two at most some 640 cells remain.
 *
 * No lock: a distribution has one owner.
 */

#define DISTRIBUTION_CELLS_MIN 1024 /* 8 KB */

struct distribution_cell {
    uint32_t key; /* 0: free */
    uint32_t subjects;
};

struct distribution {
    struct distribution_cell *cells; /* a hash table; NULL: empty */
    size_t n_cells;                  /* a power of two */
    size_t used;
    size_t most;     /* largest number of cells: a power of two, DISTRIBUTION_CELLS_MIN or more */
    unsigned coarse; /* an octave has 16 >> coarse steps */
    uint64_t subjects;
};

/* Makes an empty distribution; allocates nothing yet. */
void distribution_init(struct distribution *distribution, size_t most_cells);
void distribution_fini(struct distribution *distribution);

/*
 * Copies `from` to `to`, which the caller has not initialised. If memory is out the copy is empty.
 */
void distribution_copy(struct distribution *to, const struct distribution *from);

/* Adds n subjects with these peaks. Peaks of 0 mean no commands, and do not count. */
void distribution_add(struct distribution *distribution, const struct peaks *peaks, uint32_t n);

/* Removes one subject with these peaks, which was added before. */
void distribution_take(struct distribution *distribution, const struct peaks *peaks);

/*
 * Adds all of `other`. The result has the larger steps of the two. A peak is rounded at most once
 * more.
 */
void distribution_merge(struct distribution *distribution, const struct distribution *other);

/*
 * Returns the next cell with subjects from index *at on, and moves *at behind the cell. *upper: an
 * upper bound of the peaks of these subjects. NULL: no more cells.
 */
const struct distribution_cell *distribution_next(const struct distribution *distribution,
                                                  size_t *at, struct peaks *upper);

/* A lower bound of the peaks of the subjects in that cell. */
struct peaks distribution_lower(const struct distribution *distribution,
                                const struct distribution_cell *cell);

struct suggestion {
    uint64_t count;    /* commands in each period_s */
    unsigned period_s; /* 1, 60 or 3600 */
    uint64_t burst;
    uint64_t above; /* number of subjects above a gap; 0: no gap */
};

/* A suggestion needs this period of observation or this number of subjects. */
#define SUGGESTION_SECONDS 60
#define SUGGESTION_SUBJECTS 5

bool suggestion_has_enough(uint64_t subjects, uint64_t observed_s);

#define SUGGESTION_GAPS 0 /* as percentile: 99, and without the subjects above a gap */

/*
 * Makes a suggestion from a non-empty distribution. `observed_s`: period of observation.
 * `percentile`: 1 to 100, or SUGGESTION_GAPS.
 */
struct suggestion suggestion_make(const struct distribution *distribution, uint64_t observed_s,
                                  unsigned percentile);

/* True if a subject with these peaks would pass, wherever in its windows its commands came. */
bool suggestion_passes(const struct suggestion *suggestion, const struct peaks *peaks);

/*
 * True if a subject with these peaks would be limited, wherever in its windows its commands came.
 * If both suggestion_passes and suggestion_limits are false, the peaks alone do not decide.
 */
bool suggestion_limits(const struct suggestion *suggestion, const struct peaks *peaks);

/*
 * The largest ratio of a peak to the most commands that can pass in its window; above 1 the subject
 * is limited. Callers compare subjects by this ratio. *which: the window of that ratio.
 */
double suggestion_excess(const struct suggestion *suggestion, const struct peaks *peaks,
                         enum peak *which);

/*
 * True if all traffic that passes `strict` also passes `loose`. The limit of `strict` must see all
 * commands that the limit of `loose` sees.
 */
bool suggestion_covers(const struct suggestion *strict, const struct suggestion *loose);

#define SUGGESTION_ROOM 64

/* Prints the suggestion as in a file, "1200/s burst 3600". `out` has SUGGESTION_ROOM bytes. */
struct slice suggestion_text(const struct suggestion *suggestion, char *out);

#endif
