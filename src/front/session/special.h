/*
 * Requests that are more than one plain reply, or leave something behind: how they are sent. What each stateful command
 * does is a row of stateful.c.
 */
#ifndef WEIR_FRONT_SPECIAL_H
#define WEIR_FRONT_SPECIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "front/client/client.h"
#include "front/route/request.h"
#include "upstream/lane/lane.h"

/* Can it travel as one plain call, with nothing to follow up? */
bool special_is_plain(const struct client *client, const struct request *request);

/* Must all earlier calls be answered first, so that its replies can be told apart, or because they no longer can? */
bool special_must_wait(const struct client *client, const struct request *request);

/* Send it. False: out of memory. */
__attribute__((warn_unused_result)) bool special_send(struct client *client, struct lane *lane,
                                                      const struct request *request);

/*
 * Send something that Redis is sure to refuse, which marks an open transaction as broken; its reply is thrown away.
 * False: out of memory.
 */
__attribute__((warn_unused_result)) bool special_break_multi(struct client *client, struct lane *lane);

#endif
