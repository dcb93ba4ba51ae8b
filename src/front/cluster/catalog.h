/*
 * COMMAND: Redis' answer is gathered, and weir's own commands are added to it on its way to the client.
 */
#ifndef WEIR_FRONT_CATALOG_H
#define WEIR_FRONT_CATALOG_H

#include "base/slice.h"
#include "front/client/client.h"

/* COMMAND in any form is being sent: nothing more is taken until its answer has been seen. */
void catalog_ask(struct client *client, struct slice request);

/* COMMAND has been answered: the client gets the answer with weir's commands in it, and goes on. */
void catalog_answered(struct client *client);

#endif
