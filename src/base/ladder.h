/*
 * Memory pressure of the process, in steps. A step includes the measures of the step before. The
 * functions are pure.
 *
 * A step begins at a share of memory-limit, and ends when usage falls a tenth of the limit below
 * that share. The difference avoids flapping.
 */
#ifndef WEIR_BASE_LADDER_H
#define WEIR_BASE_LADDER_H

#include <stdint.h>

enum ladder_step {
    LADDER_FREE,
    LADDER_SHED,   /* from 75 %: idle memory is freed */
    LADDER_STALL,  /* from 85 %: weir reads nothing from clients with many unread replies */
    LADDER_REFUSE, /* from 95 %: new connections are refused */
    LADDER_STEPS
};

/*
 * Returns the step that follows `step` when `used` of `limit` bytes are in use. A limit of 0 is no
 * limit.
 */
enum ladder_step ladder_next(enum ladder_step step, uint64_t used, uint64_t limit);

#endif
