/* Notes when Redis runs scripts on LIMIT keys that only one client uses: see ops_exact.c. */
#ifndef WEIR_SIM_OPS_EXACT_H
#define WEIR_SIM_OPS_EXACT_H

#include <stdint.h>

#include "base/slice.h"

/* A script with this key begins at `now_us` of Redis' clock. */
void exact_heard(struct slice key, uint64_t now_us);

#endif
