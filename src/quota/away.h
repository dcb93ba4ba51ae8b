/*
 * What becomes of a call while Redis is away: what the limits that it asks say of that, or what is counted here.
 *
 * One worker's; what is counted is all workers'.
 */
#ifndef WEIR_QUOTA_AWAY_H
#define WEIR_QUOTA_AWAY_H

#include "quota/decision.h"
#include "quota/local.h"
#include "quota/settings.h"

enum away {
    AWAY_ERROR,   /* nobody decides */
    AWAY_UNASKED, /* it is let through or refused, at once */
    AWAY_COUNTED, /* it has been counted here, and may wait */
};

/*
 * Of several limits the strictest holds: error, then deny, then those that are counted here, all or nothing, while
 * those that let through do.
 */
enum away away_decide(const struct decision *call, const struct quota_settings *settings, struct local_time time,
                      struct quota_outcome *outcome);

#endif
