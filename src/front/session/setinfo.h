/*
 * CLIENT SETINFO LIB-NAME and LIB-VER, which most libraries send when they connect. This module
 * decides which library weir tells Redis, and on which lanes.
 *
 * On a shared lane weir sets its own name instead, since the lane belongs to no client. On a
 * private lane weir sends the client's library before some commands: CLIENT INFO and CLIENT LIST,
 * which show the connection, and CLIENT ID. A private lane with a client's library is not reusable
 * for other clients, because RESET does not clear the library. When a client sets LIB-NAME or
 * LIB-VER on a private lane, weir sends both values. The client may have set the other value on
 * another lane.
 */
#ifndef WEIR_FRONT_SETINFO_H
#define WEIR_FRONT_SETINFO_H

#include <stdbool.h>

#include "front/client/client.h"
#include "front/route/request.h"

/* Remembers the library of a CLIENT SETINFO that is about to be sent. False: out of memory. */
bool setinfo_note(struct client *client, const struct request *request);

/*
 * Sends CLIENT SETINFO. The call of `request` must be the lane's newest. Inside MULTI the library
 * is remembered until EXEC is answered. False: out of memory.
 */
__attribute__((warn_unused_result)) bool setinfo_send(struct client *client, struct lane *lane,
                                                      const struct request *request);

/*
 * True if the reply shows what Redis knows of the connection. weir must send setinfo_tell before
 * this request.
 */
bool setinfo_is_asked(const struct request *request);

/* Sends the library to the client's own lane. False: out of memory. */
bool setinfo_tell(struct client *client, struct lane *lane);

#endif
