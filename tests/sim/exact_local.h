/*
 * What weir itself admits on a key that only one client uses while Redis is away (when-down =
 * local).
 *
 * Laws: across all such times no more passes than each rate admits. No call is refused while all
 * units asked for fit the smallest burst. The moment of weir's decision is known only to lie
 * between request and reply, so laws are judged, not digits.
 */
#ifndef WEIR_SIM_EXACT_LOCAL_H
#define WEIR_SIM_EXACT_LOCAL_H

#include "tests/sim/exact_say.h"
#include "tests/sim/limits.h"

struct exact_local {
    struct window passed[EXACT_RATES];
    uint64_t asked; /* units of all calls on the key, whether Redis or weir decides */
};

/* A call of that cost has been sent. */
void exact_local_ask(struct exact_local *local, int64_t cost);

/* A call has passed, decided between these moments. NULL: allowed; else the error. */
const char *exact_local_passed(struct exact_local *local, const struct asked_key *key, int64_t cost,
                               uint64_t from_ns, uint64_t to_ns);

/* A call was refused. NULL: allowed; else the error. */
const char *exact_local_refused(const struct exact_local *local, const struct asked_key *key);

#endif
