/*
 * Places that ACQUIRE has got for clients that had gone by then: they are released, and asked to be again while Redis,
 * busy with a script or away, does not take it.
 *
 * One worker's. The decision belongs to nobody (its owner is NULL) from giving_back_begin on.
 */
#ifndef WEIR_QUOTA_GIVING_BACK_H
#define WEIR_QUOTA_GIVING_BACK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "net/alarms.h"
#include "quota/decision.h"

struct giving_back {
    struct list decisions; /* struct decision, by in_client */
    struct alarms *alarms;
};

void giving_back_init(struct giving_back *giving_back, struct alarms *alarms);

/* From now on it asks for the release of the place that it has got; the caller sends it. */
void giving_back_begin(struct giving_back *giving_back, struct decision *decision, uint64_t now_ns);

/* It has failed: its alarm is set for the next time. False: it is no such decision, or enough was tried. */
bool giving_back_again(struct giving_back *giving_back, struct decision *decision, uint64_t now_ns);

/* The worker ends: those that wait are dropped, the others are the exchange's. */
void giving_back_end(struct giving_back *giving_back);

#endif
