/*
 * Sorted sets: members in order, in one piece of memory, and a dict of their names.
 */
#ifndef WEIR_SIM_REDIS_ZSET_H
#define WEIR_SIM_REDIS_ZSET_H

#include "tests/sim/redis_state.h"

bool zset_score(const struct zset *set, struct slice name, double *score);
void zset_put(struct zset *set, struct slice name, double score); /* new, or with another score */
bool zset_remove(struct zset *set, struct slice name);
void zset_remove_range(struct zset *set, size_t first, size_t n);
size_t zset_rank(const struct zset *set, struct slice name, double score); /* of one that is there, or would be */
const struct zmember *zset_at(const struct zset *set, size_t rank);
void zset_fini(struct zset *set);

/* From `least` to `most`, each perhaps left out. */
struct zrange {
    double least, most;
    bool is_least_out, is_most_out;
};

/* How many are in the range, and the rank of the first of them. */
size_t zset_range(const struct zset *set, const struct zrange *range, size_t *first);

#endif
