/*
 * Clients of runs with a cluster. Each client increments, sets and reads keys in several slots, one
 * or several keys at a time, in pipelines.
 *
 * Laws in every run: replies come in order and to the client that asked. Each write is executed
 * once, and in order for each key. No client sees a redirect. Where only slots move
 * (run.plan.is_pure): no error except TRYAGAIN of a slot that stays between nodes, and no close.
 */
#ifndef WEIR_SIM_TRAVELLERS_H
#define WEIR_SIM_TRAVELLERS_H

#include <stdbool.h>
#include <stdint.h>

void travellers_start(void);
bool travellers_are_waiting(void);
void travellers_leave(void);
void travellers_stop(void);

/* The slot of one of the travellers' keys. */
unsigned travellers_slot(uint64_t pick);

#endif
