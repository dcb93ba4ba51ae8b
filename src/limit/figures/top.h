/*
 * The heaviest subjects, by several metrics, in fixed memory, however many subjects there are.
 *
 * Problem: a counter for each subject would take memory without bound. Mechanism: 128 counters for
 * each metric, by Space-Saving. A new subject in a full table takes over the smallest counter, and
 * inherits the sum of that counter as its possible over-estimate. Every subject with more than
 * 1/128 of the total is therefore in the table, and sum - over <= truth <= sum.
 *
 * Sums lose half their weight every 10 s. Sums are not shrunk: each addition is multiplied by
 * 2^(time / 10 s) instead, and all sums are scaled back from time to time. A rate is an average
 * over the time since the subject appeared or reappeared. Time before the appearance does not lower
 * the rate.
 *
 * Price: 30 ns for a subject in the table, 80 ns for a new one in a full table; one struct top
 * takes 210 KB.
 *
 * Sources:
 * - Metwally, Agrawal, El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data
 *   Streams" (2005)
 * - Cormode et al., "Forward Decay" (2009)
 * - for merging: Agarwal et al., "Mergeable Summaries" (2012)
 *
 * A struct top belongs to one worker, which adds to it. Any thread may read or clear it: a mutex
 * inside, held briefly.
 */
#ifndef WEIR_LIMIT_TOP_H
#define WEIR_LIMIT_TOP_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/slice.h"
#include "limit/policy/identity.h"

#define TOP_SUBJECTS 128 /* counters of each metric in one struct top */
#define TOP_HALF_LIFE_NS (10 * NS_PER_S)
/* window of the average rate of a subject that has been present longer */
#define TOP_WINDOW_NS (14 * NS_PER_S)
/* chosen: after this time without an addition a subject counts as new */
#define TOP_SILENCE_NS (30 * NS_PER_S)
#define TOP_REFUSERS 4 /* limits counted for each refused subject */
#define TOP_NO_LIMIT UINT32_MAX
#define TOP_POLICY_MAX 32 /* longer names are cut, and told apart by their hash */

/*
 * The metrics. Each metric has a row of names in top.c, and is counted by front/client/charge.c.
 * TOP_SHARE: microseconds that requests have waited for their fair share.
 */
enum top_by { TOP_COMMANDS, TOP_REFUSED, TOP_BYTES, TOP_SHARE, TOP_BY_COUNT };

/*
 * top_name: the word after BY in LIMIT TOP, "commands" ... top_field: the field in its reply,
 * "commands_per_s" ...
 */
const char *top_name(enum top_by by);
const char *top_field(enum top_by by);

struct top;

struct top_entry {
    char subject[SUBJECT_NAME_MAX];
    char policy[TOP_POLICY_MAX];
    uint16_t subject_len;
    uint16_t policy_len;
    uint64_t per_s;      /* recent rate; never below the truth, except for rounding */
    uint64_t over_per_s; /* the part of per_s that may belong to other subjects */
    uint64_t over_ns;    /* time that per_s is an average over, at most TOP_WINDOW_NS */
    /*
     * factor applied to the sum, since a new subject's sum covers less time than older subjects'
     * sums
     */
    double newness;
    /* id of the limit with the largest decayed sum of refusals; TOP_NO_LIMIT: none */
    uint32_t refused_by;
    uint64_t share_us_per_s;
};

/* Aborts the process if memory is out. */
struct top *top_new(void);
void top_free(struct top *top);

/*
 * Adds `amount` for this subject of this policy. The `hash` of a subject is always the same, and
 * different subjects should have different hashes. If now_ns goes back, the latest time of an
 * earlier call counts.
 */
void top_add(struct top *top, enum top_by by, struct slice policy, struct slice subject,
             uint64_t hash, uint64_t amount, uint64_t now_ns);

/*
 * top_add for all metrics at once. `refused_by`: id of the limit behind the refusals in
 * TOP_REFUSED.
 */
void top_add_each(struct top *top, struct slice policy, struct slice subject, uint64_t hash,
                  const uint64_t amounts[TOP_BY_COUNT], uint32_t refused_by, uint64_t now_ns);

/*
 * Writes the subjects with the largest sums over all tables, largest first, at most `max`. Returns
 * the number of subjects. Subjects with a sum that has decayed below a half are left out. A full
 * table may have dropped a subject that is in another table. For this subject the smallest sum of
 * the full table is added as possible over-estimate. Out of memory: 0.
 */
size_t top_heaviest(struct top *const *tops, size_t n_tops, enum top_by by, uint64_t now_ns,
                    struct top_entry *out, size_t max);

#endif
