/*
 * What became of a call, counted for the named limits that it asked: in their tallies, and among the keys that are
 * refused most.
 */
#ifndef WEIR_QUOTA_OUTCOME_COUNT_H
#define WEIR_QUOTA_OUTCOME_COUNT_H

#include <stdint.h>

#include "quota/decision.h"
#include "quota/exchange.h"

/* Count a call that is done; one with PEEK counts nowhere. Of several limits each counts what it would have said alone. */
void outcome_count(const struct decision *decision, const struct exchange *exchange);

#endif
