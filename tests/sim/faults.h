/*
 * What goes wrong in a run, and when: a row for each kind.
 */
#ifndef WEIR_SIM_FAULTS_H
#define WEIR_SIM_FAULTS_H

/* From now on, as often as the plan says. */
void faults_start(void);

/* Is one due? To be asked after every step of the world. */
void faults_look(void);

/* Whatever is wrong is well again, and nothing goes wrong any more. */
void faults_end(void);

#endif
