/*
 * A client has ended its side of the connection, and gets the answers to all that it has sent; but nothing of its waits
 * in Redis.
 */
#ifndef WEIR_FRONT_HALF_CLOSE_H
#define WEIR_FRONT_HALF_CLOSE_H

#include "front/client/client.h"

/* It sends no more. */
void half_close_begin(struct client *client);

/*
 * It has ended its side behind requests that weir does not read yet. Redis, which reads on behind a command that
 * blocks, would end that command now, and the client with it.
 */
void half_close_foresee(struct client *client);

/* What it has sent has gone further: if it has ended its side, and all was taken, it leaves. It may be closed. */
void half_close_check(struct client *client);

#endif
