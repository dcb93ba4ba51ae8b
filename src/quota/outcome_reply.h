/*
 * Writes outcomes as replies.
 */
#ifndef WEIR_QUOTA_OUTCOME_REPLY_H
#define WEIR_QUOTA_OUTCOME_REPLY_H

#include <stdint.h>

#include "base/slice.h"
#include "quota/ask.h"
#include "quota/outcome.h"
#include "resp/build.h"

/*
 * Five integers, with PARTIAL six, times in ms rounded up, and for several keys which one refused; in RESP3 a map,
 * unless the ask says otherwise (quota_shape). THROTTLE: redis-cell's array, in seconds, in either version.
 */
void quota_reply(struct build *out, const struct quota_ask *ask, const struct quota_outcome *outcome);

/* The reply to ACQUIRE, RENEW and RELEASE; `numbers` are those of holders.lua, `token` is what ACQUIRE asked with. */
void quota_reply_holding(struct build *out, const struct quota_ask *ask, const int64_t *numbers, struct slice token);

#endif
