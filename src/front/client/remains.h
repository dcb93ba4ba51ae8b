/*
 * What a client that has gone has left under way in Redis: the calls on its lane, and the subject
 * that pays for them.
 *
 *     client  --> lane, 3 calls          the client is closed (a reset, a time-out, output-limit)
 *     remains --> lane, 3 calls          hears in its place: charges reply bytes, gives calls in flight back
 *
 * A call costs its subject until Redis has answered it or its lane has gone, whether its client is
 * there or not. So a reset gains nothing: calls in flight and reply bytes stay the subject's.
 * Limits `per connection` end with the connection.
 *
 * How much a call will still bring is not known before its reply begins, and a reply of any size may
 * come. Until then the call counts as half of REMAINS_MAX_BYTES. While more than that is under way at
 * a node, the next requests of subjects that have a part in it wait: they would be carried out behind
 * those calls anyway, since Redis carries out what it is sent in order.
 *
 * Belongs to its worker's thread; freed when the last call has been answered or the lane has gone.
 */
#ifndef WEIR_FRONT_REMAINS_H
#define WEIR_FRONT_REMAINS_H

#include <stdbool.h>
#include <stdint.h>

#include "front/client/client.h"

#define REMAINS_MAX_BYTES (64U << 20) /* chosen: far below what a Redis with little memory can spare */
#define REMAINS_CALL_BYTES (REMAINS_MAX_BYTES / 2)

/*
 * The client leaves its lane. What it has under way there goes on without it; the lane is not the
 * client's any more. Out of memory the calls are charged to nobody, as far as they are not answered
 * yet.
 */
void remains_leave(struct client *client);

/* The same of one of the client's riders at places, with calls in flight. */
void remains_leave_rider(struct client *client, struct rider *rider);

/*
 * True if the client's next request has to wait, since its subject has left too much under way at
 * the node.
 */
static inline bool remains_must_wait(const struct client *client, const struct node *node)
{
    return node_left_bytes(node) > REMAINS_MAX_BYTES && subject_has_left(client->subject);
}

/* Every client of the worker is bound by new rules; so are the remains, and no longer hold the ones before. */
void remains_renew(struct front *front);

/* The worker ends: nothing is waited for. */
void remains_close(struct front *front);

#endif
