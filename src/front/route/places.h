/*
 * All places of a client, and which requests travel by them. On one server nothing of it is called
 * but places_take. The worker's thread.
 */
#ifndef WEIR_FRONT_PLACES_H
#define WEIR_FRONT_PLACES_H

#include "front/client/client.h"
#include "front/route/request.h"
#include "front/cluster/spread.h"

/* True if the request goes by a place, or is a compound; else by main. False on one server. */
bool places_take(const struct client *client, const struct request *request);

/*
 * Where a request goes: the row that serves the slot of its keys, without keys the home node's, or
 * another's while that is away. NULL: no node serves the slot. Not of keys in several slots.
 */
struct nodes_row *places_row_for(const struct client *client, const struct request *request);

/*
 * True if the next request is to wait until all that is in flight at places is answered:
 * spread_is_outdated. Of a client that has a spread.
 */
bool places_must_settle(struct client *client);

/*
 * True if the request names a key of a command with several keys that is in flight, and one of both
 * writes: Redis may refuse that one, and run this one (limit/command/key_filter.h). So this one waits until
 * all that is in flight at places is answered.
 */
bool places_must_not_overtake(const struct client *client, const struct request *request);

/*
 * The client may write on this lane, which it has alone. For WAIT, which speaks for all that the
 * client has written, node by node.
 */
void places_note_write(struct client *client, const struct lane *lane);

/* The request is sent. */
void places_note_keys(const struct client *client, const struct request *request);

/*
 * Another topology has been adopted: rows have other numbers, and some are retired. Safe without a
 * spread.
 */
void places_adopt(struct client *client);

/* The client's link was woken. Safe without a spread. */
void places_go_on(struct client *client);

/*
 * The client reads on, or need pay no more: lanes that have stopped reading for its sake go on.
 * Safe without a spread.
 */
void places_catch_up(struct client *client);

/*
 * The client is closed, or calls of its are lost: nothing that is in flight is waited for.
 * places_free: and nothing calls it any more. Both are safe without a spread.
 */
void places_leave(struct client *client);
void places_free(struct client *client);

#endif
