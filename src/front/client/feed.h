/*
 * The bytes that a client sends: taken request by request as long as each can go, passed on piece by piece where a
 * request is large, and kept where one is unfinished or has to wait.
 */
#ifndef WEIR_FRONT_FEED_H
#define WEIR_FRONT_FEED_H

#include <stdbool.h>
#include <stddef.h>

#include "front/client/client.h"

/* `n` bytes have come from the client's socket. */
void feed(struct client *client, const char *data, size_t n);

/* Where the next read goes, *room its size; NULL: into the loop's buffer. */
char *feed_room(struct client *client, size_t *room);

/* The client's link was woken: the request that waits is tried again. */
void feed_again(struct client *client);

/* As a link's on_passing and on_passed: where the content of a large request goes without being looked at. */
struct link *feed_passing(struct client *client, size_t *most);
void feed_passed(struct client *client, size_t n);

/* Read and take nothing more from the client (memory is short), or go on. */
void feed_stall(struct client *client, bool is_stalled);

/* Nothing more will come: a large request that is under way ends in the middle, also one that had waited until now. */
void feed_end(struct client *client);

void feed_free(struct client *client);

#endif
