/*
 * For replacements of system functions. WRAP names the replacement. OUTSIDE counts the memory of a
 * replacement as the simulator's, not weir's. sim_fail returns -1 with errno.
 */
#ifndef WEIR_SIM_OUTSIDE_H
#define WEIR_SIM_OUTSIDE_H

#include <errno.h>
#include <stdbool.h>

#include "tests/sim/heap.h"

#define WRAP(name) __wrap_##name
#define OUTSIDE                                                                                    \
    __attribute__((cleanup(outside_go_back), unused)) bool was_weirs = heap_is_weirs(false)

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
