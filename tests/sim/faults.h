/* The faults of a run, and their times: a row for each kind. */
#ifndef WEIR_SIM_FAULTS_H
#define WEIR_SIM_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

/* Starts faults at the rate of the plan. */
void faults_start(void);

/* Strikes the faults that are due. Called after every step of the world. */
void faults_look(void);

/* over: true if no fault lasts, and none is armed. rest: no fault strikes for `ns`. */
bool faults_are_over(void);
void faults_rest(uint64_t ns);

/* Ends all faults; none strikes any more. */
void faults_end(void);

#endif
