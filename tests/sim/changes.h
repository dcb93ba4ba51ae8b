/*
 * The law of a limit that changes. A window may span several rates. In such a window the limit
 * admits at most the burst in force at its start, each rate for its time, and each increase of the
 * burst.
 *
 * A change takes until every worker has the new limit. Meanwhile either limit may decide, so the
 * higher rate counts.
 */
#ifndef WEIR_SIM_CHANGES_H
#define WEIR_SIM_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/limits.h"

#define CHANGES_KEPT 32

struct changes {
    struct rate_change {
        uint64_t since_ns;
        double per_ns, burst;
        double grown; /* by how much the burst exceeds the previous burst */
    } at[CHANGES_KEPT];
    unsigned n; /* 0: no moment is known since which the limit holds */
};

/* forget: nothing is known from now on. begin: from now on only this limit holds. */
void changes_forget(struct changes *changes);
void changes_begin(struct changes *changes, const struct planned_limit *limit, uint64_t now_ns);

/*
 * may: from now on `to` may hold as well. now: from now on `to` holds alone. False: too many
 * changes.
 */
bool changes_may(struct changes *changes, const struct planned_limit *to, uint64_t now_ns);
bool changes_now(struct changes *changes, const struct planned_limit *to, uint64_t now_ns);

/* Counts one more command, decided between these two moments. False: the law is broken. */
bool changes_admit(const struct changes *changes, struct window *window, uint64_t from_ns,
                   uint64_t to_ns);

#endif
