/*
 * Runs, each in a process of its own: what is static in weir begins anew, and a crash is only that run's.
 */
#ifndef WEIR_SIM_APART_H
#define WEIR_SIM_APART_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/scenario.h"

/* False: it failed. Then what it was is kept in `record`; NULL: it is not. */
bool apart_run(const struct plan *plan, bool is_traced, const char *record);

/* The same with a scenario; quietly: it says nothing. */
bool apart_replay(const struct scenario *scenario, bool is_traced, bool is_quiet);

/* What the last one that failed was blamed for; empty: it crashed. */
const char *apart_blame(void);

#endif
