/*
 * The places of one command in the queues of the limits that delay it: when it waits, keeps them, and goes.
 */
#ifndef WEIR_LIMIT_GATE_PLACES_H
#define WEIR_LIMIT_GATE_PLACES_H

#include <stdint.h>

#include "limit/ask.h"
#include "limit/trial.h"

/* Those of the limits that delay with which it has had its place, or has waited. */
uint64_t gate_places_had(const struct trial *trial, uint64_t delays);

/*
 * Is it to wait in one of these queues? Beforehand it has a place in the longest alone: the others must not count it
 * before it can go.
 */
enum gate gate_places_wait(const struct trial *trial, uint64_t delays, struct verdict *verdict);

/* What is not charged yet is; and it goes. */
void gate_places_depart(const struct trial *trial, uint64_t delays, struct turn *turn);

#endif
