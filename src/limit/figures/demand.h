/*
 * Demand: how much one subject has asked for at most, so that LIMIT SUGGEST can say which limits would suit it.
 *
 * Problem: nobody knows which number to write into a limit before having seen what comes.
 * Mechanism: for each subject, and each class of commands that its policy observes
 * (limit/figures/observed.h), how many commands came in the current second, in the current 10 and
 * 60 seconds, and the most that ever came in one of each. Windows are fixed: they begin at whole
 * multiples of their length, so a second is counted in one word, and the two longer ones are added
 * up when it ends. What is counted is what was asked for, refused or not. When the table of
 * subjects forgets one, its peaks live on in its policy's record (limit/figures/observed.h) as one
 * of a population, without its name but for the few largest; a suggestion
 * (limit/figures/suggestion.h) is made from the populations of those and of the living.
 *
 * Price: on a command's way, counting into a word of its worker's (demand_note: some twelve
 * instructions for a run of equal commands); for each read of a client some 50, with one addition
 * to a word that workers share (demand_flush); for each subject and second, a dozen steps when the
 * second ends. 112 bytes for a subject that has sent something, once more for each four classes
 * beyond all, read, write and one other. Without memory for that a subject is not observed.
 *
 * Error: what came around the boundary of two fixed windows is divided between them, so a peak is
 * between a half of the most that came in any window of its length, and all of it.
 * limit/figures/suggestion.h takes the worse case: what it suggests would have let the subject
 * pass. Workers add without a lock: what comes in the very moment a second ends may be counted in
 * the one or the other.
 */
#ifndef WEIR_LIMIT_DEMAND_H
#define WEIR_LIMIT_DEMAND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

#define DEMAND_CLASSES 16 /* that are observed of one policy; a set of them is a word of 16 bits */
#define DEMAND_BLOCK 4    /* of them have their counters together */

/* The first three are always these. No command reads and writes, so what is in one of the two is not counted in `all`. */
enum demand_builtin { DEMAND_ALL, DEMAND_READ, DEMAND_WRITE, DEMAND_BUILTINS };

/* The most commands in one window of each length. */
enum peak { PEAK_1S, PEAK_10S, PEAK_60S, PEAKS };
struct peaks {
    uint32_t of[PEAKS]; /* each at least as large as the one before; all 0: nothing came */
};

/* How long such a window is. */
unsigned peak_seconds(enum peak peak);

struct demand_class {
    _Atomic uint32_t now;            /* in the current second (of DEMAND_ALL: in neither of the other two), ... */
    _Atomic uint32_t sum[PEAKS - 1]; /* ... and before it in the current 10 and 60 seconds */
    _Atomic uint32_t peaks[PEAKS];
};

/* Of four classes. Made when one of them first comes, and never moved; belongs to its subject. */
struct demand {
    _Atomic(struct demand *) next; /* the next four */
    _Atomic uint32_t second;       /* of the monotonic clock: what `now` counts */
    struct demand_class classes[DEMAND_BLOCK];
};

/*
 * n commands of the classes in the set `mask` came now: with the bit of DEMAND_ALL if in neither read nor write.
 * `first` is where a subject keeps its first block. Any thread. Out of memory they are not counted.
 */
void demand_add(_Atomic(struct demand *) *first, uint16_t mask, uint32_t n, uint64_t now_ns);

/* Is its second the current one? */
static inline bool demand_is_now(const struct demand *block, uint64_t now_ns)
{
    return atomic_load_explicit(&block->second, memory_order_relaxed) == (uint32_t)(now_ns / NS_PER_S);
}

/* The same for the i-th class of a block whose second is now: for a caller who has looked. */
static inline void demand_count(struct demand *block, unsigned i, uint32_t n)
{
    atomic_fetch_add_explicit(&block->classes[i].now, n, memory_order_relaxed);
}

/* The peaks of the class with that index, of what is under way too. Any thread. */
struct peaks demand_peaks(struct demand *first, unsigned class_index);

/* NULL may be freed. */
void demand_free(struct demand *first);

/* The bytes of all there are in this process. */
uint64_t demand_bytes(void);

#endif
