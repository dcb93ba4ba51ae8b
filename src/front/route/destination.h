/*
 * Where a request of a client would go now, and why: for LIMIT EXPLAIN. Nothing is sent. The worker's thread.
 */
#ifndef WEIR_FRONT_DESTINATION_H
#define WEIR_FRONT_DESTINATION_H

#include "front/client/client.h"
#include "front/route/request.h"
#include "quota/report.h"

/* Fills in slot, server and server_why. There are none of these where there is one server. */
void destination_tell(struct client *client, const struct request *request, struct explained_call *call);

#endif
