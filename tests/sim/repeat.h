/*
 * The proof that a run is the same run wherever it is carried out: its digest covers every byte
 * and every moment.
 */
#ifndef WEIR_SIM_REPEAT_H
#define WEIR_SIM_REPEAT_H

#include <stdbool.h>

#include "tests/sim/run.h"

/*
 * Carries out a run three times: in a process that has run others, in a process of its own, and as
 * the scenario that the second one records. True if the three agree; else a line on stderr says
 * which differ. A run that fails is one that fails three times.
 */
bool repeat_run(const struct plan *plan);

#endif
