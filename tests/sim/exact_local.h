/*
 * What weir itself lets through of a key that one client alone asks while Redis is away (when-down = local): no more than
 * each rate lets pass, across all such times, and nobody is refused while less has been asked for than any rate lets pass
 * at once. When weir decided a call is known only from its question to its answer, so this is the law, not the digits.
 */
#ifndef WEIR_SIM_EXACT_LOCAL_H
#define WEIR_SIM_EXACT_LOCAL_H

#include "tests/sim/exact_say.h"
#include "tests/sim/limits.h"

struct exact_local {
    struct window passed[EXACT_RATES];
    uint64_t asked; /* units, by all calls on the key, whoever decided them */
};

/* A call of that cost has been said. */
void exact_local_ask(struct exact_local *local, int64_t cost);

/* One passed that was decided between these moments. NULL: that may be. */
const char *exact_local_passed(struct exact_local *local, const struct asked_key *key, int64_t cost, uint64_t from_ns,
                               uint64_t to_ns);

/* One was refused. */
const char *exact_local_refused(const struct exact_local *local, const struct asked_key *key);

#endif
