/*
 * The heaviest subjects: who sends most, who is refused most; in fixed memory, however many subjects there are.
 *
 * Problem: counting every subject costs memory for every subject. Mechanism: for each metric 128 counters by
 * Space-Saving: a newcomer to a full table takes over the smallest counter, with its sum as possible over-estimate. So
 * every subject with more than 1/128 of the total is in the table, and sum - over <= truth <= sum. Sums lose half their
 * weight every 10 s: instead of shrinking them, what is added is multiplied by 2^(time / 10 s), and all are scaled back
 * now and then. A rate is an average over the time since the subject has come, or come back: what was not counted yet
 * does not make it less.
 * Price: 30 ns for a subject in the table, 80 ns for a newcomer to a full one; 210 KB for one struct top.
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
#include "limit/policy/identity.h"

#define TOP_SUBJECTS 128 /* of each metric, in one struct top */
#define TOP_HALF_LIFE_NS (10 * NS_PER_S)
#define TOP_WINDOW_NS (14 * NS_PER_S)  /* so long a rate is an average over, of a subject that has been there longer */
#define TOP_SILENCE_NS (30 * NS_PER_S) /* after so long without anything a subject comes back as a new one */
#define TOP_REFUSERS 4                 /* limits counted for each subject that is refused */
#define TOP_NO_LIMIT UINT32_MAX
#define TOP_POLICY_MAX 32 /* longer names are cut, and then told apart by their hash */

/*
 * What subjects are ranked by; each has a row of names in top.c, and is counted by front/client/account.c.
 * TOP_SHARE: microseconds that their requests have waited for their fair share.
 */
enum top_by { TOP_COMMANDS, TOP_REFUSED, TOP_BYTES, TOP_SHARE, TOP_BY_COUNT };

/* "commands" ...: the word in LIMIT TOP ... BY; "commands_per_s" ...: the field in its reply. */
const char *top_name(enum top_by by);
const char *top_field(enum top_by by);

struct top;

struct top_entry {
    char subject[SUBJECT_NAME_MAX];
    char policy[TOP_POLICY_MAX];
    uint16_t subject_len;
    uint16_t policy_len;
    uint64_t per_s;      /* recent rate, never below the truth but for rounding */
    uint64_t over_per_s; /* the part of it that may have been counted for other subjects */
    uint64_t over_ns;    /* the time that the rate is an average over, at most TOP_WINDOW_NS */
    double newness;      /* what has been counted was multiplied by this, as it is of less time than others' */
    uint32_t refused_by; /* id of the limit that refuses it most lately; TOP_NO_LIMIT: none does */
    uint64_t share_us_per_s;
};

/* Never fails: out of memory ends the process. */
struct top *top_new(void);
void top_free(struct top *top);

/*
 * Add `amount` for this subject of this policy. `hash` is always the same for a subject; different ones should differ
 * in it. now_ns should not go back: an earlier time than the last counts as the last.
 */
void top_add(struct top *top, enum top_by by, struct slice policy, struct slice subject, uint64_t hash, uint64_t amount,
             uint64_t now_ns);

/* The same in every metric at once. `refused_by`: the id of the limit whose refusals are in TOP_REFUSED. */
void top_add_each(struct top *top, struct slice policy, struct slice subject, uint64_t hash,
                  const uint64_t amounts[TOP_BY_COUNT], uint32_t refused_by, uint64_t now_ns);

/* Forget everything, in every metric. */
void top_forget(struct top *top);

/*
 * The heaviest by the sum over all these tables, heaviest first, at most `max`; returns how many. Subjects whose sum
 * has decayed to less than a half are left out. A subject that is not in a full table may have been dropped there: that
 * table's smallest sum is added, as possible over-estimate. Out of memory: 0.
 */
size_t top_heaviest(struct top *const *tops, size_t n_tops, enum top_by by, uint64_t now_ns, struct top_entry *out,
                    size_t max);

#endif
