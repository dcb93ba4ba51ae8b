/*
 * The program's own static variables, put back to what they were: so that a run finds them as the first one has.
 *
 * Those of libraries are not: a run leaves nothing there that another can see. Not for builds with sanitizers or counters,
 * which keep variables of their own among the program's.
 */
#ifndef WEIR_SIM_FRESH_H
#define WEIR_SIM_FRESH_H

/* As they are now they will be again. Once. */
void fresh_keep(void);
void fresh_again(void);

#endif
