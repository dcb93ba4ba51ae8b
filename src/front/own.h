/*
 * weir's own commands (LIMIT ...) on their way: who may use them, and what is answered at once or carried out elsewhere.
 */
#ifndef WEIR_FRONT_OWN_H
#define WEIR_FRONT_OWN_H

#include "base/slice.h"
#include "front/client.h"
#include "front/request.h"

/* Answer `request`, or hold the client until an order has come back. The gate has let it pass. */
void own_run(struct client *client, const struct request *request);

/* What is wrong with it, as a complete error reply in `out`; 0: nothing. */
#define OWN_ERROR_ROOM 512
size_t own_check(const struct client *client, const struct request *request, char *out);

#endif
