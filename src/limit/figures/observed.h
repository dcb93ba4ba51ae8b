/*
 * What a policy's record remembers of the demand of its subjects (limit/figures/demand.h): which classes are
 * observed, since
 * when, and how much those asked for at most that the table of subjects has forgotten. A reload changes none of it.
 *
 * Classes are added on one thread, and never taken away. What workers call has a lock of its own, which is taken inside
 * that of a shard of subjects.
 */
#ifndef WEIR_LIMIT_OBSERVED_H
#define WEIR_LIMIT_OBSERVED_H

#include <stdint.h>

#include "base/slice.h"
#include "limit/figures/demand.h"
#include "limit/figures/population.h"

#define OBSERVED_NAMES 3     /* of the forgotten subjects that asked for most */
#define OBSERVED_NAME_MAX 64 /* longer ones are cut */

struct observed;

struct observed_name {
    char text[OBSERVED_NAME_MAX];
    size_t len;
    struct peaks peaks;
};

/* Those of one class that have been forgotten: a copy. */
struct observed_forgotten {
    struct population population; /* to be freed with population_fini */
    struct observed_name most[OBSERVED_NAMES];
    size_t n_most;
};

/* With the classes of enum demand_builtin. Never fails: out of memory ends the process. */
struct observed *observed_new(void);
void observed_free(struct observed *observed);

/* The index of the class of that name, entered if need be; DEMAND_CLASSES: there are so many already. */
unsigned observed_class(struct observed *observed, struct slice name);

unsigned observed_count(const struct observed *observed);
struct slice observed_name(const struct observed *observed, unsigned class_index);

/* For how many whole seconds something has been counted; 0: nothing yet. Any thread. */
uint64_t observed_seconds(const struct observed *observed, uint64_t now_ns);

/* Something is counted from now on. Any thread. */
void observed_begin(struct observed *observed, uint64_t now_ns);

/* A subject of that name with that demand is forgotten. Any thread. */
void observed_forget(struct observed *observed, struct slice name, struct demand *demand);

/* Those of that class that have been forgotten. */
void observed_copy_forgotten(struct observed *observed, unsigned class_index, struct observed_forgotten *out);

#endif
