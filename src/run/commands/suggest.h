/*
 * LIMIT SUGGEST: lines for the file, from what the subjects of each policy have asked for at most. Main thread; looks
 * at every subject twice, and holds the lock of a shard of them for some 30 us at a time.
 */
#ifndef WEIR_RUN_SUGGEST_H
#define WEIR_RUN_SUGGEST_H

#include <stdint.h>

#include "front/front.h"
#include "front/commands/order.h"
#include "limit/policy/policy.h"

/* Set the result of an ORDER_SUGGEST. */
void suggest_carry_out(struct order *order, const struct policies *policies, const struct front_settings *settings,
                       uint64_t now_ns);

#endif
