/*
 * What Redis sends beside its replies: messages, invalidations, lines of MONITOR's; and the frames that confirm
 * subscriptions, of which one call may have many or none.
 *
 * `word` is the first element of an array or a push, `head` the first bytes of a frame.
 */
#ifndef WEIR_UPSTREAM_ASIDE_H
#define WEIR_UPSTREAM_ASIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "upstream/lane/lane.h"

/* Is the call answered by confirmations? NULL: there is no call. */
static inline bool aside_is_confirmed(const struct call *call)
{
    return call != NULL && (call->flow == FLOW_SUBSCRIBE || call->flow == FLOW_UNSUBSCRIBE);
}

/* Which of the lane's counts a confirmation with this word belongs to; NULL: it is none. */
uint32_t *aside_confirmed(struct lane *lane, struct slice word);

/*
 * True of a confirmation with this word that answers no call, NULL if there is none: a node of a cluster says
 * sunsubscribe, unasked, of channels of a slot that has moved to another node.
 */
bool aside_ends_unasked(const struct lane *lane, const struct call *call, struct slice word);

/*
 * The frame in lane->glimpse confirms what is counted there. It ends in the number of subscriptions left: channels and
 * patterns together, shard channels apart.
 */
void aside_note_confirmation(struct lane *lane, uint32_t *count);

/* True if the frame that begins so is a line of MONITOR: it answers no call. */
bool aside_is_monitored(const struct lane *lane, struct slice head);

/* Does the frame that has just ended answer no call? */
bool aside_is(const struct lane *lane, struct slice word);

/*
 * In RESP2 a message is an array of three or four, in RESP3 a push; PING's answer among them is an array of two. A line
 * of MONITOR counts, too.
 */
bool aside_may_be_message(const struct lane *lane, struct slice head);

/* Does a frame begin that answers no call? The oldest is `call`. Where that cannot be told yet: no. */
bool aside_begins(struct lane *lane, const struct call *call, struct slice bytes);

#endif
