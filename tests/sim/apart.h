/*
 * Runs, each in a process of its own: what is static in weir begins anew, and a crash is only that run's. Or in one that
 * has run others before, where that costs less and what is static has been put back (fresh.h): a crash ends it.
 */
#ifndef WEIR_SIM_APART_H
#define WEIR_SIM_APART_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/scenario.h"

/* False: it failed. Then what it was is kept in `record`; NULL: it is not. */
bool apart_run(const struct plan *plan, bool is_traced, const char *record);

/* The same in a process that runs many, one after the other; what fails is only kept if it fails on its own too. */
bool apart_run_next(const struct plan *plan, const char *record);
/* No more of these. False: the process did not end well. */
bool apart_end(void);

/* The same with a scenario; quietly: it says nothing. */
bool apart_replay(const struct scenario *scenario, bool is_traced, bool is_quiet);

/* Runs it in a process of its own, says nothing, and keeps it in `record` whether it fails or not. False: it failed. */
bool apart_record(const struct plan *plan, const char *record);

/* Of the last run. Valid until the next one begins. */
const struct outcome *apart_outcome(void);

#endif
