/*
 * Whose funnels a command is charged to: the connection's subject's, or those of the subject that the command's key
 * names.
 */
#ifndef WEIR_FRONT_PAYER_H
#define WEIR_FRONT_PAYER_H

#include <stdbool.h>

#include "front/client/client.h"
#include "front/route/request.h"
#include "limit/gate.h"

/* Whose funnels its commands are charged to that no key speaks for. The policy is NULL: nobody's. */
struct account payer_of(struct client *client);

/* The same for one request, whose key may name somebody else. Good until the next call; out of memory it is closed. */
struct account payer_for(struct client *client, const struct request *request);

/*
 * Does it depend on a key whose funnels these are, and the key is out of sight? Nobody else is to be charged instead.
 */
bool payer_is_hidden(const struct client *client, const struct request *request);

/* The subject that a key has named last is held no longer. */
void payer_let_keyed_go(struct client *client);

#endif
