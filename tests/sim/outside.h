/*
 * For what stands in for the system: WRAP names a replaced function, OUTSIDE begins one whose memory is the
 * simulation's and not weir's, sim_fail ends one as the system does.
 */
#ifndef WEIR_SIM_OUTSIDE_H
#define WEIR_SIM_OUTSIDE_H

#include <errno.h>
#include <stdbool.h>

#include "tests/sim/heap.h"

#define WRAP(name) __wrap_##name
#define OUTSIDE __attribute__((cleanup(outside_go_back), unused)) bool was_weirs = heap_is_weirs(false)

static inline void outside_go_back(const bool *was_weirs)
{
    (void)heap_is_weirs(*was_weirs);
}

static inline int sim_fail(int error)
{
    errno = error;
    return -1;
}

#endif
