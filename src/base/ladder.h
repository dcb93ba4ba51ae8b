/*
 * How short of memory weir is, in steps, each of which asks for more than the one before. Pure.
 *
 * A step begins at a share of the limit and ends a tenth of the limit below, so that it is not entered and left all the
 * time.
 */
#ifndef WEIR_BASE_LADDER_H
#define WEIR_BASE_LADDER_H

#include <stdint.h>

enum ladder_step {
    LADDER_FREE,
    LADDER_SHED,   /* from 75 %: what lies idle is given back */
    LADDER_STALL,  /* from 85 %: nothing is read from those who have much to read themselves */
    LADDER_REFUSE, /* from 95 %: nobody else is let in */
    LADDER_STEPS
};

/* The step after `step` when `used` bytes of `limit` are in use. A limit of 0 is none. */
enum ladder_step ladder_next(enum ladder_step step, uint64_t used, uint64_t limit);

#endif
