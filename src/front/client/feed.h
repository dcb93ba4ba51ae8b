/*
 * The bytes that a client sends: taken request by request as long as each can go, passed on piece
 * by piece where a request is large, kept where one is unfinished or has to wait, and not read
 * while weir is short of memory.
 *
 * Short of memory (base/ladder.h): the main thread measures and says which step it is. The worker
 * gives back what lies idle, and reads nothing from clients that hold more unread replies than
 * their share, until they have read. Their replies go on, in order. So a client that is not read
 * from goes on by reading. Request bytes, which only reading on can use up, are bounded by
 * INTAKE_MAX.
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

/* `n` bytes have come from the client's socket. */
void feed(struct client *client, const char *data, size_t n);

/* As a link's on_room: where the next read goes, *room its size; NULL: into the loop's buffer. */
char *feed_room(struct link *link, size_t *room);

/* The client's link was woken: the request that waits is tried again. */
void feed_again(struct client *client);

/* As a link's on_passing and on_passed: where the content of a large request goes without being looked at. */
struct link *feed_passing(struct link *link, size_t *most);
void feed_passed(struct client *client, size_t n);

/* Nothing more will come: a large request that is under way ends in the middle, also one that had waited until now. */
void feed_end(struct client *client);

void feed_free(struct client *client);

/* Do what the main thread has said. To be called whenever it has, and again and again from LADDER_STALL on. */
void memory_pressure_look(struct front *front);

/* The client is gone. */
void memory_pressure_forget(struct client *client);

#endif
