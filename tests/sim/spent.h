/*
 * How full a funnel can be at most: all charges that it may have got, each at the latest possible
 * moment. A refusal is wrong if even that funnel has room.
 */
#ifndef WEIR_SIM_SPENT_H
#define WEIR_SIM_SPENT_H

#include <stdbool.h>
#include <stdint.h>

#define SPENT_KEPT 256 /* number of charges with a known latest time */

/* All zero: empty. */
struct spent {
    struct charge {
        uint64_t latest_ns; /* ascending */
        /* when the funnel is empty, if this and all earlier charges came as late as possible */
        uint64_t empty_ns;
        bool is_guess;     /* added by spent_fill */
    } charges[SPENT_KEPT]; /* a ring */
    uint64_t n;            /* ever */
};

/* Adds a charge made now or before. */
void spent_add(struct spent *spent, uint64_t now_ns, uint64_t interval_ns);

/* The charges until now are unknown, but the funnel is empty by `empty_ns`. */
void spent_fill(struct spent *spent, uint64_t now_ns, uint64_t empty_ns);

/*
 * The latest time at which the funnel is empty, seen from at_ns in the past, with `more` charges in
 * addition. UINT64_MAX: unknown.
 */
uint64_t spent_until(const struct spent *spent, uint64_t at_ns, unsigned more,
                     uint64_t interval_ns);

#endif
