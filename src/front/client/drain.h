/*
 * How clients leave when weir stops: each between two commands, so that none loses a reply. Operators stay to the
 * end, and nobody waits for them.
 *
 * Who sends something is let go with the reply to it, in the same packet, and so cannot send the next command to a
 * connection that is about to close. Who has sent nothing for one tick is let go then; who has only come meanwhile, or
 * is still shaking hands, has a whole tick more from there, for its first command is on its way. Who is in the middle
 * of something (a command that blocks, MULTI, a subscription, half a request) stays until that is over, or until the
 * front is closed. Whoever has been let go has a tick to go by itself.
 */
#ifndef WEIR_FRONT_DRAIN_H
#define WEIR_FRONT_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "front/front.h"

struct client;

void client_drain_init(struct front *front);
void client_drain_fini(struct front *front);

/*
 * From now on; settings->on_empty follows when the last client has gone, maybe at once. Nobody may come any more but
 * operators, unless a successor has their socket.
 */
void client_drain_begin(struct front *front, uint64_t tick_ms, bool has_successor);

/* Who was there when this worker looked last; any thread. */
void client_drain_holders(struct front *front, struct drain_holders *out);

/* The client has sent something, or been answered: can it be let go? Only once the drain has begun. */
void client_drain_look(struct client *client);

/* A client has gone. */
void client_drain_left(struct front *front);

/* As the loop is closed. */
void client_drain_close(struct front *front);

#endif
