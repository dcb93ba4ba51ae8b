/*
 * CLIENT SETINFO LIB-NAME and LIB-VER, which most libraries send when they connect. This module
 * decides what weir sends, and on which lanes.
 *
 * On a shared lane weir sets its own name instead, since the lane belongs to no client. A private
 * lane is told the client's library before a command that shows the connection (CLIENT INFO and
 * LIST) or names it to others (CLIENT ID). A lane that was told a library is not reusable for other
 * clients, because RESET does not clear the library. A lane on which the client has set LIB-NAME or
 * LIB-VER is told both values, because the client may have set one of them elsewhere.
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
 * True if the reply shows what Redis knows of the connection. The lane must be told the library
 * before the request.
 */
bool setinfo_is_asked(const struct request *request);

/* Sends the library to the client's own lane. False: out of memory. */
bool setinfo_tell(struct client *client, struct lane *lane);

#endif
