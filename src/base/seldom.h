/*
 * For what may happen often and should fill no log: said once in a while, with how often it was not.
 */
#ifndef WEIR_BASE_SELDOM_H
#define WEIR_BASE_SELDOM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define SELDOM_NS (10 * NS_PER_S)

struct seldom {
    uint64_t next_ns;   /* nothing is said before */
    uint64_t held_back; /* since something was said last */
};

/* May it be said now? Then *held_back is how often it was not since the last time. */
static inline bool seldom_may(struct seldom *seldom, uint64_t now_ns, uint64_t *held_back)
{
    if (now_ns < seldom->next_ns) {
        seldom->held_back++;
        return false;
    }
    *held_back = seldom->held_back;
    *seldom = (struct seldom){.next_ns = now_ns + SELDOM_NS};
    return true;
}

#endif
