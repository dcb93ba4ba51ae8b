/*
 * Which policy and which subject bind a client: found when it comes, when who it is changes, and when the rules do.
 * What is counted for the connection (connections, calls in flight) moves along.
 *
 * A connection's way: binding_enter at accept; binding_arrive once its address is known, and again once its TLS name
 * is; binding_bind when limits on connections are charged (front/client/unbound.h says when). Each is false where the
 * client is one
 * connection too many: it has been told so and leaves, or before its handshake it is closed. Or out of memory it is
 * closed.
 */
#ifndef WEIR_FRONT_BINDING_H
#define WEIR_FRONT_BINDING_H

#include <stdbool.h>

#include "front/client/client.h"

/* It was accepted: it counts for its address. binding_move: a PROXY header has announced another one. */
__attribute__((warn_unused_result)) bool binding_enter(struct client *client);
__attribute__((warn_unused_result)) bool binding_move(struct client *client);

/* What names it without a word of its own is known: a policy that matches by that charges its limits on connects. */
bool binding_arrive(struct client *client);

/* It has logged in, sends its first command that is no handshake, or has been there for UNBOUND_NS. */
bool binding_bind(struct client *client);

/* It is called otherwise. A bound connection counts for the new subject; an unbound one stays unbound. */
bool binding_change(struct client *client);

/* RESET has ended its login: it is unbound again, as if it had just been accepted. */
bool binding_unbind(struct client *client);

/*
 * New rules bind a client before its next command is decided, or when the worker's walk (front.binding_walk) comes to
 * it,
 * whichever is first: client_has_old_rules until then. What the connection counts moves along without being asked anew,
 * and what waits for a limit is asked again. False: out of memory, and the client is closed.
 */
bool binding_renew(struct client *client);

/* The client is closed: it counts for nobody. */
void binding_leave(struct client *client);

/*
 * Before that: the client is closed for want of Redis. If limits on connects have counted it, or have left it
 * uncounted, its address may come again uncounted within 10 s (limit/reconnects.h).
 */
void binding_note_outage(const struct client *client);

/* The client shares a subject for want of room: from now on it has its own, if there is room. */
void binding_leave_overflow(struct client *client);

#endif
