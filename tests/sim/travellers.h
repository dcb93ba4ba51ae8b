/*
 * Clients of runs before a cluster: each has keys of its own in several slots, which it counts up, sets and reads, alone
 * and several at a time, in pipelines.
 *
 * Laws. In every run: replies come in order and are one's own, each write is carried out once and in its order for each
 * key, and no redirect is heard. Where nothing goes wrong but slots that move (run.plan.is_pure): no error, but TRYAGAIN of
 * a slot that stays parted, and nobody is closed.
 */
#ifndef WEIR_SIM_TRAVELLERS_H
#define WEIR_SIM_TRAVELLERS_H

#include <stdbool.h>
#include <stdint.h>

void travellers_start(void);
bool travellers_are_waiting(void);
void travellers_leave(void);
void travellers_stop(void);

/* The slot of one of their keys. */
unsigned travellers_slot(uint64_t pick);

#endif
