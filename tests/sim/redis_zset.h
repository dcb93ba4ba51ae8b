/* Sorted sets: members in order, in one array, and a dict of their names. */
#ifndef WEIR_SIM_REDIS_ZSET_H
#define WEIR_SIM_REDIS_ZSET_H

#include "tests/sim/redis_state.h"

bool zset_score(const struct zset *set, struct slice name, double *score);
/* adds a member, or changes its score */
void zset_put(struct zset *set, struct slice name, double score);
bool zset_remove(struct zset *set, struct slice name);
void zset_remove_range(struct zset *set, size_t first, size_t n);
/* rank of a member, or where it would be */
size_t zset_rank(const struct zset *set, struct slice name, double score);
const struct zmember *zset_at(const struct zset *set, size_t rank);
void zset_fini(struct zset *set);

/* From `least` to `most`; each may be exclusive. */
struct zrange {
    double least, most;
    bool is_least_out, is_most_out;
};

/* Returns how many members are in the range, and the rank of the first such member. */
size_t zset_range(const struct zset *set, const struct zrange *range, size_t *first);

#endif
