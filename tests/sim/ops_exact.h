/*
 * When Redis runs scripts on keys of LIMIT that one client alone asks: see ops_exact.c.
 */
#ifndef WEIR_SIM_OPS_EXACT_H
#define WEIR_SIM_OPS_EXACT_H

#include <stdint.h>

#include "base/slice.h"

/* A script begins that has this key; by Redis' clock. */
void exact_heard(struct slice key, uint64_t now_us);

#endif
