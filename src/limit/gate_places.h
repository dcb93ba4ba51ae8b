/*
 * The places of one command in the queues of the limits that delay it: taking them, keeping them, leaving.
 */
#ifndef WEIR_LIMIT_GATE_PLACES_H
#define WEIR_LIMIT_GATE_PLACES_H

#include <stdint.h>

#include "limit/ask.h"
#include "limit/trial.h"

/* Which of `delays` (limits, as bits) it has a place with already, or has waited for. */
uint64_t gate_places_had(const struct trial *trial, uint64_t delays);

/*
 * GATE_WAIT: it must wait in one of the queues of `delays`. It takes a place in the longest one only: the others are
 * not charged before it can go.
 */
enum gate gate_places_wait(const struct trial *trial, uint64_t delays, struct verdict *verdict);

/* It goes: charge the limits in `delays` that are not charged yet, and leave all queues. */
void gate_places_depart(const struct trial *trial, uint64_t delays, struct turn *turn);

#endif
