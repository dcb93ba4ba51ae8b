/*
 * What goes wrong in a run, and when: a row for each kind.
 */
#ifndef WEIR_SIM_FAULTS_H
#define WEIR_SIM_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

/* From now on, as often as the plan says. */
void faults_start(void);

/* Is one due? To be asked after every step of the world. */
void faults_look(void);

/* Nothing lasts of what went wrong, and nothing is to strike; and then nothing strikes for so long. */
bool faults_are_over(void);
void faults_rest(uint64_t ns);

/* Whatever is wrong is well again, and nothing goes wrong any more. */
void faults_end(void);

#endif
