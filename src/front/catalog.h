/*
 * Redis' answers to COMMAND, which name weir's own commands too once they reach the client.
 */
#ifndef WEIR_FRONT_CATALOG_H
#define WEIR_FRONT_CATALOG_H

#include "base/slice.h"
#include "front/client.h"

/* COMMAND in any form is being sent: nothing more is taken until its answer has been seen. */
void catalog_ask(struct client *client, struct slice request);

/* It has been answered. */
void catalog_answered(struct client *client);

#endif
