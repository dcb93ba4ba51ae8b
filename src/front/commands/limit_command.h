/*
 * weir's own commands (LIMIT ...) that no script decides: who may use them, and what weir answers at once. What the
 * main thread carries out is in front/commands/orders.h, what Redis decides in front/commands/decisions.h.
 */
#ifndef WEIR_FRONT_LIMIT_COMMAND_H
#define WEIR_FRONT_LIMIT_COMMAND_H

#include "base/slice.h"
#include "front/client/client.h"
#include "front/route/request.h"

/* Answer `request`, or hold the client until an order has come back. The gate has let it pass. */
void limit_command_run(struct client *client, const struct request *request);

/* On the operators' socket: is it INFO of weir's own sections (limits, clients, upstream), or of none? */
bool limit_command_is_info(const struct client *client, const struct request *request);

/* Then the main thread is asked for it, and the client is held until it has answered. */
void limit_command_info(struct client *client, const struct request *request);

/* What is wrong with it, as a complete error reply in `out`; 0: nothing. */
#define OWN_ERROR_ROOM 512
size_t limit_command_check(const struct client *client, const struct request *request, char *out);

/* Is it an operator's, whose client is one for its user's sake? Then that must still be its user. */
bool limit_command_needs_proof(const struct client *client, const struct request *request);

#endif
