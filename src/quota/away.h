/*
 * Decides LIMIT calls while Redis is away, by limit-when-down and when-down of the limits they ask.
 *
 * Called on any worker; what is counted meanwhile (quota/local.h) is shared by all.
 */
#ifndef WEIR_QUOTA_AWAY_H
#define WEIR_QUOTA_AWAY_H

#include "quota/decision.h"
#include "quota/local.h"
#include "quota/settings.h"

enum away {
    AWAY_ERROR,   /* error: it is not decided */
    AWAY_UNASKED, /* allow or deny: it passes or is refused, at once */
    AWAY_COUNTED, /* local: it has been counted in weir, and may have to wait */
};

/*
 * With several limits the strictest setting holds: error, then deny; else those with local are counted, all or nothing,
 * and those with allow pass.
 */
enum away away_decide(const struct decision *decision, const struct quota_settings *settings, struct local_time time,
                      struct quota_outcome *outcome);

/* True if the decision's limits have when-error = down, and this error reply says that Redis is there and cannot decide. */
bool away_means(const struct decision *decision, struct slice error);

#endif
