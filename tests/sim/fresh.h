/*
 * Resets the program's static variables, so that each run finds the variables as the first run did.
 *
 * Variables of libraries are not reset: a run leaves nothing in a library that another run can see.
 * Not for builds with sanitizers or counters, which keep variables of their own among the program's
 * variables.
 */
#ifndef WEIR_SIM_FRESH_H
#define WEIR_SIM_FRESH_H

/* keep saves the current values, once. again restores them. */
void fresh_keep(void);
void fresh_again(void);

#endif
