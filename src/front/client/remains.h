/*
 * The calls that a closed client has left on its lane, and the subject that pays for these calls.
 *
 *   client  --> lane, 3 calls          the client is closed (a reset, a time-out, output-limit)
 *   remains --> lane, 3 calls          is now the lane user: charges bytes, ends calls in flight
 *
 * A call costs its subject until Redis has answered it or its lane is closed, with or without its
 * client. A client that resets its connection gains nothing, since its subject still pays for the
 * calls in flight and for the bytes of their replies. Limits `per connection` end with the
 * connection.
 *
 * The size of a reply is unknown before the reply begins, and may be anything. Until the reply
 * begins, a call counts as half of REMAINS_MAX_BYTES. While more than REMAINS_MAX_BYTES are left at
 * a node, requests of each subject with remains at the node wait. This wait costs little, since
 * Redis runs requests in order: the requests would run after the calls in any case.
 *
 * Belongs to the worker's thread. Freed when the last call is answered or the lane is closed.
 */
#ifndef WEIR_FRONT_REMAINS_H
#define WEIR_FRONT_REMAINS_H

#include <stdbool.h>
#include <stdint.h>

#include "front/client/client.h"

/* chosen: far below the memory that a small Redis can spare */
#define REMAINS_MAX_BYTES (64U << 20)
#define REMAINS_CALL_BYTES (REMAINS_MAX_BYTES / 2)

/*
 * The client gives up its lane. A struct remains takes over the client's calls there. If memory is
 * out, unanswered calls are charged to no subject.
 */
void remains_leave(struct client *client);

/* As remains_leave, for one of the client's lane users at places, with calls in flight. */
void remains_leave_lane_user(struct client *client, struct lane_user *lane_user);

/*
 * True if the client's next request must wait, because closed clients of its subject have left too
 * many bytes at the node.
 */
static inline bool remains_must_wait(const struct client *client, const struct node *node)
{
    return node_left_bytes(node) > REMAINS_MAX_BYTES && subject_has_left(client->subject);
}

/*
 * All clients of the worker are bound to new rules. Binds the remains to the new rules, too, and
 * releases the old rules.
 */
void remains_renew(struct front *front);

/* The worker ends: forgets all calls. */
void remains_close(struct front *front);

#endif
