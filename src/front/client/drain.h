/*
 * How clients leave when weir stops: between two commands, so that no client loses a reply.
 * Operators stay to the end, and the drain does not wait for them.
 *
 *   the client ...                                 leaves ...
 *   sends a request                                with its last reply, in the same packet
 *   sends nothing for one tick                     at the end of that tick
 *   connected or ended its handshake in the tick   one tick later: a command may be on its way
 *   blocks, subscribes, is in MULTI or mid-request when done, or when the front is closed
 *
 * A client that is let go sees that weir has closed its side. The client therefore sends its next
 * command on a new connection. A client that is still connected a tick later is closed.
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
 * Begins the drain. settings->on_empty follows when the last client has gone, perhaps at once. No
 * client may connect any more; operators may, unless a successor has their socket.
 */
void client_drain_begin(struct front *front, uint64_t tick_ms, bool has_successor);

/* The clients that were connected at this worker's last look. Any thread. */
void client_drain_holders(struct front *front, struct drain_holders *out);

/*
 * Called during a drain when the client has sent bytes or got a reply. Lets the client go if it is
 * between two commands.
 */
void client_drain_look(struct client *client);

/* Called when a client has gone. Calls settings->on_empty if no client is left to drain. */
void client_drain_left(struct front *front);

/* Call when the loop is closed. */
void client_drain_close(struct front *front);

#endif
