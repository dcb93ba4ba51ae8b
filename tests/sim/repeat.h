/*
 * A check that a run does not depend on its process: the digest covers every byte and every moment.
 */
#ifndef WEIR_SIM_REPEAT_H
#define WEIR_SIM_REPEAT_H

#include <stdbool.h>

#include "tests/sim/run.h"

/*
 * Runs a plan three times: in a process with earlier runs, in a process of its own, and as the
 * scenario recorded by the second run. True if all three agree. Else a line on stderr names the
 * runs that differ. A failing run must fail three times.
 */
bool repeat_run(const struct plan *plan);

#endif
