/*
 * What limit/figures/top_count.c counts into and limit/figures/top_rank.c reads; theirs alone.
 *
 * A table's counters [0, n) are in use. The index has twice as many slots as counters, so every search ends at a free
 * one; 0 is a free slot, else it holds a counter's index plus one. Sums are in units of what counted 1 at the base
 * time, which is less than a half-life ago whenever sums are read: as it moves on, sums are halved.
 */
#ifndef WEIR_LIMIT_TOP_TABLE_H
#define WEIR_LIMIT_TOP_TABLE_H

#include <pthread.h>

#include "limit/figures/top.h"

#define TOP_SLOTS_BITS 8
#define TOP_SLOTS (1 << TOP_SLOTS_BITS) /* 2 * TOP_SUBJECTS: a counter's number fits a byte */
#define TOP_MISSING TOP_SUBJECTS
#define TOP_LN2 0.69314718055994530942

struct top_name {
    uint64_t hash;
    uint16_t subject_len;
    uint16_t policy_len;
    char subject[SUBJECT_NAME_MAX];
    char policy[TOP_POLICY_MAX];
};

struct top_table {
    double sums[TOP_SUBJECTS]; /* apart from the names: the smallest must be found fast */
    double overs[TOP_SUBJECTS];
    double starts[TOP_SUBJECTS];     /* what was there already at: */
    uint64_t since_ns[TOP_SUBJECTS]; /* when it came, or came back */
    uint64_t last_ns[TOP_SUBJECTS];  /* when something was added */
    struct top_name names[TOP_SUBJECTS];
    size_t n;
    uint8_t slots[TOP_SLOTS];
};

/* By Space-Saving too; a sum of 0 is a free place. */
struct top_refusers {
    double sums[TOP_REFUSERS];
    uint16_t limits[TOP_REFUSERS];
};

struct top {
    pthread_mutex_t lock;
    uint64_t base_ns;
    uint64_t now_ns; /* the time of `weight`, not before the base */
    double weight;   /* of what is added now: 1 at the base, 2 a half-life later */
    struct top_table tables[TOP_BY_COUNT];
    struct top_refusers refusers[TOP_SUBJECTS]; /* of the counters of TOP_REFUSED */
};

struct top_key {
    uint64_t hash;
    struct slice subject;
    struct slice policy;
};

/* What weighs less the longer ago it is: 2^-(time / half-life). */
double top_left_after(uint64_t ns);

/* ---- with the lock ---- */

/* Sums are read as of this time, or a later one that has been said before. */
void top_move_to(struct top *top, uint64_t now_ns);

/* Its counter, or TOP_MISSING. */
size_t top_find(const struct top_table *table, const struct top_key *key);

/* The smallest counter of a full table. */
size_t top_smallest(const struct top_table *table);

void top_add_refuser(struct top_refusers *refusers, uint32_t limit, double amount);

#endif
