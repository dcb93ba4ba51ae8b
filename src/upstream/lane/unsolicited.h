/*
 * Unsolicited frames: messages, invalidations, lines of MONITOR. Also the frames that confirm
 * subscriptions: one call may get many confirmations, or none.
 *
 * `word` is the first element of an array or a push, `head` the first bytes of a frame.
 */
#ifndef WEIR_UPSTREAM_UNSOLICITED_H
#define WEIR_UPSTREAM_UNSOLICITED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "upstream/lane/lane.h"

/* True if the call is answered by confirmations. `call` may be NULL. */
static inline bool unsolicited_is_confirmed(const struct call *call)
{
    return call != NULL && (call->flow == FLOW_SUBSCRIBE || call->flow == FLOW_UNSUBSCRIBE);
}

/*
 * The count of the lane that a confirmation with this word updates; NULL: the word is no
 * confirmation.
 */
uint32_t *unsolicited_confirmed(struct lane *lane, struct slice word);

/*
 * True if a confirmation with this word answers no call (`call` may be NULL). A cluster node sends
 * sunsubscribe unsolicited for channels of a slot that has moved to another node.
 */
bool unsolicited_ends_unasked(const struct lane *lane, const struct call *call, struct slice word);

/*
 * Update `count` from the confirmation in lane->glimpse. The frame ends with the number of
 * subscriptions left: channels and patterns together, shard channels apart.
 */
void unsolicited_note_confirmation(struct lane *lane, uint32_t *count);

/* True if the frame that begins with `head` is a line of MONITOR, which answers no call. */
bool unsolicited_is_monitored(const struct lane *lane, struct slice head);

/* True if the frame that has just ended answers no call. */
bool unsolicited_is(const struct lane *lane, struct slice word);

/*
 * True if the frame may be a message. In RESP2 a message is an array of three or four elements, in
 * RESP3 a push. The answer to PING on a subscribed connection is an array of two elements. A line
 * of MONITOR counts, too.
 */
bool unsolicited_may_be_message(const struct lane *lane, struct slice head);

/*
 * True if the bytes begin a frame that answers no call. `call` is the oldest call, or NULL. False
 * if weir does not know yet.
 */
bool unsolicited_begins(struct lane *lane, const struct call *call, struct slice bytes);

#endif
