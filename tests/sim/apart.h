/*
 * Runs a plan in a separate process: the static variables of weir start anew, and a crash ends only
 * that run. apart_run_next runs many plans in one process where that costs less; fresh.h resets the
 * static variables between the runs. A crash of one such run ends the process.
 */
#ifndef WEIR_SIM_APART_H
#define WEIR_SIM_APART_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/scenario.h"

/* False: the run failed. A failed run is kept in `record`, if that is not NULL. */
bool apart_run(const struct plan *plan, bool is_traced, const char *record);

/*
 * apart_run in a process that runs many plans one after the other. A failure is kept only if the
 * plan fails on its own too.
 */
bool apart_run_next(const struct plan *plan, const char *record);
/* Ends the process of apart_run_next. False: the process did not end well. */
bool apart_end(void);

/* Replays a scenario in a process of its own. is_quiet: the process prints nothing. */
bool apart_replay(const struct scenario *scenario, bool is_traced, bool is_quiet);

/*
 * Runs the plan without output and keeps it in `record`, whether it fails or not. False: the run
 * failed.
 */
bool apart_record(const struct plan *plan, const char *record);

/* The outcome of the last run. Valid until the next run begins. */
const struct outcome *apart_outcome(void);

#endif
