/*
 * The law of a limit across its changes: in a window that spans several rates at most the burst that held when it began,
 * each rate for as long as it held, and what each change added to the burst.
 *
 * A change takes until every worker has it. Meanwhile either limit may have decided: so the higher rate counts.
 */
#ifndef WEIR_SIM_CHANGES_H
#define WEIR_SIM_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/limits.h"

#define CHANGES_KEPT 32

struct changes {
    struct stretch_of_rate {
        uint64_t since_ns;
        double per_ns, burst;
        double grown; /* what the burst has more than the one before */
    } at[CHANGES_KEPT];
    unsigned n; /* 0: the limit is not known to have held since any moment */
};

/* From now on nothing is known; or this limit holds alone. */
void changes_forget(struct changes *changes);
void changes_begin(struct changes *changes, const struct planned_limit *limit, uint64_t now_ns);

/* From now on `to` may hold as well; and from now on it holds alone. False: there are too many to remember. */
bool changes_may(struct changes *changes, const struct planned_limit *to, uint64_t now_ns);
bool changes_now(struct changes *changes, const struct planned_limit *to, uint64_t now_ns);

/* One more has passed, decided between these moments. False: that is too many. */
bool changes_admit(const struct changes *changes, struct window *window, uint64_t from_ns, uint64_t to_ns);

#endif
