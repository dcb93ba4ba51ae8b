/*
 * The heaviest subjects: who sends most, who is refused most, in fixed memory however many subjects there are.
 *
 * Problem: counting every subject costs memory for every subject. Mechanism: for each metric 128 counters by
 * Space-Saving: a newcomer to a full table takes over the smallest counter, with its sum as possible over-estimate. So
 * whoever makes more than 1/128 of the total is in the table, and sum - over <= truth <= sum. Sums lose half their
 * weight every 10 s: not they shrink, what is added grows by 2^(time / 10 s), and all are scaled back now and then.
 * Price: 30 ns for a subject in the table, 80 ns for a newcomer to a full one; 150 KB for one struct top.
 * Sources: Metwally, Agrawal, El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams" (2005);
 * Cormode et al., "Forward Decay" (2009); for merging, Agarwal et al., "Mergeable Summaries" (2012).
 *
 * A struct top belongs to one worker, which adds to it; any thread may read or forget it: a mutex inside, held briefly.
 */
#ifndef WEIR_LIMIT_TOP_H
#define WEIR_LIMIT_TOP_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/slice.h"
#include "limit/identity.h"

#define TOP_SUBJECTS 128 /* of each metric, in one struct top */
#define TOP_HALF_LIFE_NS (10 * NS_PER_S)
#define TOP_POLICY_MAX 32 /* longer names are cut, and then told apart by their hash */

/* What subjects are weighed by; a row of the names in top.c for each. front/account.c says how much of it there has been. */
enum top_by { TOP_COMMANDS, TOP_REFUSED, TOP_BYTES, TOP_BY_COUNT };

/* "commands" ..., as LIMIT TOP ... BY takes it; "commands_per_s" ..., as its replies have it. */
const char *top_name(enum top_by by);
const char *top_field(enum top_by by);

struct top;

struct top_entry {
    char subject[SUBJECT_NAME_MAX];
    char policy[TOP_POLICY_MAX];
    uint16_t subject_len;
    uint16_t policy_len;
    uint64_t per_s;      /* recent rate, never below the truth but for rounding */
    uint64_t over_per_s; /* how much of it may be other subjects' */
};

/* Never fails: out of memory ends the process. */
struct top *top_new(void);
void top_free(struct top *top);

/*
 * `amount` more by this subject of this policy. `hash` is the same every time; different subjects should differ in it.
 * now_ns should not go back: a time before what was seen counts as that.
 */
void top_add(struct top *top, enum top_by by, struct slice policy, struct slice subject, uint64_t hash, uint64_t amount,
             uint64_t now_ns);

/* Start anew, in every metric. */
void top_forget(struct top *top);

/*
 * The heaviest by the sum over all these tables, heaviest first, at most `max`; returns how many. Whose sum has decayed
 * to less than a half is left out. A subject that a full table does not hold may have gone uncounted there: that
 * table's smallest sum is added, as possible over-estimate. Out of memory: 0.
 */
size_t top_heaviest(struct top *const *tops, size_t n_tops, enum top_by by, uint64_t now_ns, struct top_entry *out,
                    size_t max);

#endif
