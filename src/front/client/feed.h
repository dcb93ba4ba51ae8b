/*
 * The bytes that a client sends. Requests are taken one by one as long as each can go. A large
 * request passes piece by piece. A request that is unfinished or must wait is kept. Nothing is read
 * while weir is short of memory.
 *
 * Shortage of memory (base/ladder.h): the main thread measures memory and sets the step. The worker
 * frees idle memory. The worker reads nothing from a client that holds more unread replies than its
 * share, until that client has read. Replies go on in order, so the stopped client resumes once it
 * has read enough. Kept request bytes stop no client, since only further reading completes a
 * request. INTAKE_MAX bounds kept request bytes.
 */
#ifndef WEIR_FRONT_FEED_H
#define WEIR_FRONT_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/client/client.h"
#include "front/front.h"
#include "net/loop.h"
#include "resp/scan.h"

/* `n` bytes have come from the client's socket. May close the client. */
void feed(struct client *client, const char *data, size_t n);

/*
 * As link_ops.on_room: where the next read goes, with its size in *room. NULL: into the loop's read
 * buffer.
 */
char *feed_room(struct link *link, size_t *room);

/* The client's link was woken: tries again to take the request that waits. May close the client. */
void feed_again(struct client *client);

/* As link_ops.on_passing and on_passed: splices the content of a large request to its lane. */
struct link *feed_passing(struct link *link, size_t *most);
void feed_passed(struct client *client, size_t n);

/* The client has half-closed: ends a large request of which a part is missing. */
void feed_end(struct client *client);

void feed_free(struct client *client);

/*
 * Acts on the step of memory pressure that the main thread has set. Call on each change of the
 * step, and repeatedly from LADDER_STALL on.
 */
void memory_pressure_look(struct front *front);

/* Ends WAIT_MEMORY of a client that is closed. */
void memory_pressure_forget(struct client *client);

#endif
