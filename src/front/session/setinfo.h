/*
 * CLIENT SETINFO LIB-NAME and LIB-VER, which most libraries send when they connect: how it travels, and who is told.
 *
 * A shared lane bears weir's own name in their place, since the lane is nobody's. A lane of a client's own is told
 * before the client asks what Redis shows of it (CLIENT ID, INFO, LIST ...), and then it is for nobody else: RESET does
 * not take that away. A lane that bore one of the two as the client sent it is told both all the same: the client may
 * have said the other on another lane.
 */
#ifndef WEIR_FRONT_SETINFO_H
#define WEIR_FRONT_SETINFO_H

#include <stdbool.h>

#include "front/client/client.h"
#include "front/route/request.h"

/* CLIENT SETINFO is about to be sent: what it says is remembered. False: out of memory. */
bool setinfo_note(struct client *client, const struct request *request);

/*
 * Send it; its call is the lane's newest. Inside MULTI what it says is remembered until EXEC is answered. False: out of
 * memory.
 */
__attribute__((warn_unused_result)) bool setinfo_send(struct client *client, struct lane *lane,
                                                      const struct request *request);

/* Does this request show what Redis knows of its connection? Then its lane must be told before. */
bool setinfo_is_asked(const struct request *request);

/* Tell the client's own lane. False: out of memory. */
bool setinfo_tell(struct client *client, struct lane *lane);

#endif
