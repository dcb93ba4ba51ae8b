/*
 * Peak rates of one subject: the most commands that the subject has asked for in 1, 10 and 60
 * seconds. LIMIT SUGGEST suggests limits from peak rates.
 *
 * Problem: operators cannot choose the number for a limit before they have seen the traffic.
 *
 * Mechanism: commands are counted for each subject, and each class that its policy observes
 * (limit/figures/observed.h). The counters hold the current second, the current 10 and 60 seconds,
 * and the peak of each length. Windows are fixed and begin at multiples of their length. A second
 * is counted in one word; at its end the word is added to the two longer windows. Refused commands
 * count too.
 *
 * When the table of subjects drops a subject, the peaks of this subject are added to the
 * distribution of its policy (limit/figures/observed.h). Only the names of the few subjects with
 * the largest peaks are kept. A suggestion (limit/figures/suggestion.h) uses the distributions of
 * dropped and of current subjects.
 *
 * Price: on the path of a command, one addition to a word of its worker (peak_rates_note: some
 * twelve instructions for a run of equal commands). For each read of a client some 50 instructions,
 * with one addition to a word that workers share (peak_rates_flush). For each subject, a dozen
 * steps at the end of a second. Memory: 112 bytes for a subject with commands, and 112 more for
 * each four classes beyond all, read, write and one other. If memory is out, a subject is not
 * observed.
 *
 * Error: commands around the boundary of two fixed windows are divided between the two. The true
 * peak is the largest number of commands in any window of this length. The counted peak is between
 * half of the true peak and all of it. limit/figures/suggestion.h assumes the worse case: a
 * suggestion would in any case have let the subject pass. Workers add without a lock. A command at
 * the very end of a second may count in the next second.
 */
#ifndef WEIR_LIMIT_PEAK_RATES_H
#define WEIR_LIMIT_PEAK_RATES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

/* classes observed of one policy; a set of classes is a word of 16 bits */
#define PEAK_CLASSES_MAX 16
#define PEAK_RATES_BLOCK 4 /* classes with their counters in one block */

/*
 * Always the first three classes. No command is in both read and write; a command in either is not
 * counted in `all`.
 */
enum peak_class_builtin { PEAK_CLASS_ALL, PEAK_CLASS_READ, PEAK_CLASS_WRITE, PEAK_CLASS_BUILTINS };

/* The peak: the most commands in one window of each length. */
enum peak { PEAK_1S, PEAK_10S, PEAK_60S, PEAKS };
struct peaks {
    uint32_t of[PEAKS]; /* not descending; all 0: no commands */
};

/* Length of the window of this peak, in seconds. */
unsigned peak_seconds(enum peak peak);

struct peak_rates_of_class {
    /* in the current second; of PEAK_CLASS_ALL only commands in neither read nor write */
    _Atomic uint32_t now;
    /* in the current 10 and 60 seconds, without the current second */
    _Atomic uint32_t sum[PEAKS - 1];
    _Atomic uint32_t peaks[PEAKS];
};

/*
 * Counters of four classes. A block is made with the first command in one of its classes, never
 * moved, and owned by the subject.
 */
struct peak_rates {
    _Atomic(struct peak_rates *) next; /* block of the next four classes */
    _Atomic uint32_t second;           /* second of the monotonic clock that `now` counts */
    struct peak_rates_of_class classes[PEAK_RATES_BLOCK];
};

/*
 * Counts n commands of the classes in the set `mask`, now. The bit of PEAK_CLASS_ALL is set only
 * without the bits of read and write. `first` is the subject's pointer to its first block. Any
 * thread. If memory is out, nothing is counted.
 */
void peak_rates_add(_Atomic(struct peak_rates *) *first, uint16_t mask, uint32_t n,
                    uint64_t now_ns);

/* True if the block counts the current second. */
static inline bool peak_rates_is_now(const struct peak_rates *block, uint64_t now_ns)
{
    return atomic_load_explicit(&block->second, memory_order_relaxed) ==
           (uint32_t)(now_ns / NS_PER_S);
}

/* peak_rates_add for the i-th class of a block that satisfies peak_rates_is_now. */
static inline void peak_rates_count(struct peak_rates *block, unsigned i, uint32_t n)
{
    atomic_fetch_add_explicit(&block->classes[i].now, n, memory_order_relaxed);
}

/* The peaks of the class with that index, current windows included. Any thread. */
struct peaks peak_rates_get(struct peak_rates *first, unsigned class_index);

/* Accepts NULL. */
void peak_rates_free(struct peak_rates *first);

/* Bytes of all blocks in this process. */
uint64_t peak_rates_bytes(void);

#endif
