/*
 * How full a funnel can be at most: what may have been charged to it, each at the latest moment at which that can have
 * been. Who is refused although there is room even so, is refused wrongly.
 */
#ifndef WEIR_SIM_SPENT_H
#define WEIR_SIM_SPENT_H

#include <stdbool.h>
#include <stdint.h>

#define SPENT_KEPT 256 /* of the last so many it is known when they were charged at the latest */

/* All zero: empty. */
struct spent {
    struct charge {
        uint64_t latest_ns; /* in order */
        uint64_t empty_ns;  /* when the funnel is empty again, this one and all before it charged as late as can be */
        bool is_guess;      /* of spent_fill */
    } charges[SPENT_KEPT];  /* a ring */
    uint64_t n;             /* ever */
};

/* One more was charged, now or before. */
void spent_add(struct spent *spent, uint64_t now_ns, uint64_t interval_ns);

/* However much was charged until now, it is not empty later than that. */
void spent_fill(struct spent *spent, uint64_t now_ns, uint64_t empty_ns);

/* When it can be empty at the latest, as of a moment that is past, and `more` charges besides. UINT64_MAX: unknown. */
uint64_t spent_until(const struct spent *spent, uint64_t at_ns, unsigned more, uint64_t interval_ns);

#endif
