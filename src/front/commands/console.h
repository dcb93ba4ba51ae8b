/*
 * Commands that weir answers itself on the admin socket, so that operators can work in every state
 * of Redis. weir answers the commands that redis-cli and libraries send on connecting (HELLO,
 * CLIENT SETNAME, COMMAND DOCS ...), PING, and COMMAND. On the admin socket COMMAND lists only
 * weir's own commands. Other requests that need Redis are refused at once while Redis does not
 * answer.
 */
#ifndef WEIR_FRONT_CONSOLE_H
#define WEIR_FRONT_CONSOLE_H

#include "front/client/client.h"
#include "front/route/request.h"

/*
 * Called for an operator's client on the admin socket. ROUTE_GOES_ON: the request takes the normal
 * route.
 */
enum route console_answer(struct client *client, struct request *request);

#endif
