/*
 * A half-closed client gets the replies to everything it has sent. No command of the client may
 * block in Redis meanwhile.
 */
#ifndef WEIR_FRONT_HALF_CLOSE_H
#define WEIR_FRONT_HALF_CLOSE_H

#include "front/client/client.h"

/* The client has half-closed. */
void half_close_begin(struct client *client);

/*
 * The client has half-closed behind requests that weir does not read yet. While a command blocks,
 * Redis reads on behind the command. Redis would see the half-close, and would close the connection
 * now.
 */
void half_close_foresee(struct client *client);

/*
 * To be called after requests were taken or answered: a half-closed client leaves once all its
 * requests are taken. May close the client.
 */
void half_close_check(struct client *client);

#endif
