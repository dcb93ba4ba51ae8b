/*
 * What weir answers by itself on the operators' socket, so that the console works in every state of Redis: what
 * redis-cli and libraries say when they connect (HELLO, CLIENT SETNAME, COMMAND DOCS ...), PING, and COMMAND, which
 * there tells of weir's own commands alone. Whatever else needs Redis is refused at once while Redis does not answer.
 */
#ifndef WEIR_FRONT_CONSOLE_H
#define WEIR_FRONT_CONSOLE_H

#include "front/client/client.h"
#include "front/route/request.h"

/* Of an operator's client. ROUTE_GOES_ON: the request goes the way that all clients' do. */
enum route console_answer(struct client *client, struct request *request);

#endif
