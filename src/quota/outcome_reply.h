/*
 * The replies that tell an outcome.
 */
#ifndef WEIR_QUOTA_OUTCOME_REPLY_H
#define WEIR_QUOTA_OUTCOME_REPLY_H

#include <stdint.h>

#include "base/slice.h"
#include "quota/ask.h"
#include "quota/outcome.h"
#include "resp/build.h"

/*
 * Five integers, of PARTIAL six, ms rounded up, and of several keys who has refused; RESP3: a map, if the ask does not
 * say otherwise. THROTTLE: redis-cell's array of seconds in either version.
 */
void quota_reply(struct build *out, const struct quota_ask *ask, const struct quota_outcome *outcome);

/* What holders.lua returned for one key: granted, held, retry_ms. `token` is what ACQUIRE asked with. */
void quota_reply_holding(struct build *out, const struct quota_ask *ask, const int64_t *numbers, struct slice token);

#endif
