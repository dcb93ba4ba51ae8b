/*
 * Which policy and which subject bind a client: found when it comes, when who it is changes, and when the rules do.
 * What is counted for the connection (connections, calls in flight) moves along.
 */
#ifndef WEIR_FRONT_BINDING_H
#define WEIR_FRONT_BINDING_H

#include <stdbool.h>

#include "front/client.h"

/*
 * Who the client is has become known, or has changed: what is counted for the connection counts for that subject now.
 * False: the client is one connection too many for it, has been told so, and leaves; or out of memory it is closed.
 */
bool binding_change(struct client *client);

/*
 * Around a change of the rules: binding_unmoor under the old ones, then binding_moor under the new, which out of memory
 * closes the client. What the connection counts moves along without being asked anew.
 */
void binding_unmoor(struct client *client);
void binding_moor(struct client *client);

/* The client is closed: it counts for nobody. */
void binding_leave(struct client *client);

/* The client shares a subject for want of room: from now on it has its own, if there is room. */
void binding_leave_overflow(struct client *client);

/* What has gathered for LIMIT TOP goes to the worker's table; once for each read, and before the subject changes. */
void binding_tell_top(struct client *client);

/* What has gathered goes there, and what is refused next is so by this limit. */
void binding_change_refuser(struct client *client, const struct limit *limit);

#endif
