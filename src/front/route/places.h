/*
 * All places of a client, and the choice of the requests that travel by places. On one server a
 * client has no places, and places_take returns false. Thread: the worker's.
 */
#ifndef WEIR_FRONT_PLACES_H
#define WEIR_FRONT_PLACES_H

#include "front/client/client.h"
#include "front/route/request.h"
#include "front/cluster/spread.h"

/*
 * True if the request goes by a place, or is a compound. False: the request goes by the client's
 * main side (client.lane_user). Always false on one server.
 */
bool places_take(const struct client *client, const struct request *request);

/*
 * Returns the row to which a request goes: the row that serves the slot of the request's keys. A
 * request without keys goes to the default node, or to another master while the default node is
 * away. NULL: no node serves the slot. The keys must be in one slot.
 */
struct nodes_row *places_row_for(const struct client *client, const struct request *request);

/*
 * True if the next request must wait until all calls at places are answered, because
 * spread_is_outdated is true. The client must have a spread.
 */
bool places_must_settle(struct client *client);

/*
 * True if this request shares a key with an in-flight command of several keys, and at least one of
 * the two writes. Redis may refuse the earlier command and run this request
 * (struct key_filter). The request then waits until all calls at places are answered.
 */
bool places_must_not_overtake(const struct client *client, const struct request *request);

/*
 * Records that the client may write on this private lane. WAIT covers the client's writes node by
 * node.
 */
void places_note_write(struct client *client, const struct lane *lane);

/* Records the keys of a request that was sent. */
void places_note_keys(const struct client *client, const struct request *request);

/*
 * Adapts the places to a new topology: rows have new numbers, and some rows are retired. Safe
 * without a spread.
 */
void places_adopt(struct client *client);

/* Continues places and hops after the client's link was woken. Safe without a spread. */
void places_go_on(struct client *client);

/*
 * Resumes lanes that stopped reading because the client was slow or in debt by a limit on bytes.
 * Safe without a spread.
 */
void places_catch_up(struct client *client);

/*
 * The client is closed, or calls of the client are lost. Replies in flight are ignored from now on.
 * Safe without a spread.
 */
void places_leave(struct client *client);

/*
 * Frees all places and the spread, once no lane calls the client any more. Safe without a spread.
 */
void places_free(struct client *client);

#endif
