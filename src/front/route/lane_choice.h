/*
 * Chooses the lane for a client's next request, and gives the client's private lane back when
 * nothing needs the lane any more.
 *
 * Invariant: a client changes lanes only when all calls on the old lane are answered.
 */
#ifndef WEIR_FRONT_LANE_CHOICE_H
#define WEIR_FRONT_LANE_CHOICE_H

#include "front/client/client.h"
#include "front/route/request.h"
#include "upstream/lane/lane.h"

enum finding {
    LANE_FOUND,    /* *lane takes requests now */
    LANE_NOT_YET,  /* the client's link will be woken */
    LANE_UNPROVEN, /* Redis must confirm the client's login again */
    LANE_NONE,     /* the upstream is away; or out of memory, and the client is closed */
};

__attribute__((warn_unused_result)) enum finding lane_choice_find(struct client *client,
                                                                  const struct request *request,
                                                                  struct lane **lane);

/*
 * Why lane_choice_find found no lane:
 * - ERR_UPSTREAM_UNAVAILABLE: Redis is away.
 * - ERR_UPSTREAM_TIMEOUT: Redis is silent.
 * - ERR_NONE: Redis gave the reason in its own words.
 * - ERR_UPSTREAM_BUSY: any other reason.
 */
enum err lane_choice_lack(const struct client *client, const struct request *request);

/*
 * Why lane_choice_find found no lane, as an error reply. The reply has Redis' own words if Redis
 * gave a reason.
 */
struct slice lane_choice_why_none(const struct client *client, const struct request *request);

/*
 * True if the request goes to a private lane. Either the request needs a private lane, or it would
 * delay other clients.
 */
bool lane_choice_needs_private(const struct client *client, const struct request *request);

/*
 * True if lane_choice_find would open no connection for the request, as far as can be known
 * cheaply.
 */
bool lane_choice_is_at_hand(const struct client *client, const struct request *request);

/*
 * Closes the client's private lane in its present state. Calls in flight on the lane are not
 * answered.
 */
void lane_choice_abandon(struct client *client);

/*
 * Gives the private lane back. No call may be in flight on it. The lane may be reset and lent to
 * another client.
 */
void lane_choice_leave(struct client *client);

/*
 * The newest request was sent only in part on the private lane, and the rest will not come. Earlier
 * requests are still answered. The client must be leaving.
 */
void lane_choice_withdraw(struct client *client);

/*
 * Opens a connection of the client's user if one may be opened. Redis closes that connection when
 * the user is deleted.
 */
void lane_choice_keep_user(struct client *client);

/*
 * On a cluster: gives the client's private lane back if it leads to another node than the next
 * request's (front/route/target.h). False: the client waits for its replies on the lane, or is
 * closed.
 */
__attribute__((warn_unused_result)) bool lane_choice_turn(struct client *client);

/*
 * Call after the topology has changed. If the node of the client's private lane has left the
 * topology, the lane is given back once all its calls are answered. If the node is a replica now, a
 * client that waits for the node or has state on the lane is closed.
 */
void lane_choice_note_retired(struct client *client);

/* Gives the client's private lane back if nothing needs the lane any more. */
void lane_choice_release(struct client *client);

/*
 * True if the request is the client's first read on shared lanes. weir learns the size of the reply
 * to this read before the next read is sent.
 */
static inline bool lane_choice_asks_size(const struct client *client, const struct command *command)
{
    return client->reader == READER_NEW && !client_has_own_lane(client) &&
           (command->flags & CMD_READONLY) != 0;
}

/* True if the client is reading a huge reply, or read one within the last HEAVY_NS. */
static inline bool lane_choice_reads_huge(const struct client *client)
{
    uint64_t until_ns = client_extra(client)->huge_until_ns;
    return until_ns != 0 && client->front->loop->now_ns < until_ns;
}

/* Records that a request goes to the lane that lane_choice_find found. */
static inline void lane_choice_note_read(struct client *client, const struct command *command)
{
    if (lane_choice_asks_size(client, command))
        client->reader = READER_ASKS;
}

/* Records that the request was sent on the lane that lane_choice_find found. */
void lane_choice_note_sent(struct client *client);

/*
 * Records that a huge reply is coming. The client's next read on a shared lane is answered before
 * another read is sent. On its private lane the client has few calls in flight for a while.
 */
void lane_choice_note_huge(struct client *client);

/*
 * The client has a new name (CLIENT SETNAME, HELLO). The client's present private lane has the new
 * name. An earlier private lane still has the old name.
 */
void lane_choice_note_name(struct client *client);

/*
 * The client has logged in on its private lane. The lane may have refused the client's name before
 * the login, so the name is sent again. Exception: if a transaction may have set another name,
 * which only Redis knows, no name is sent.
 */
void lane_choice_note_login(struct client *client);

/* The lane that the client waited for could not be opened. */
void lane_choice_note_refused(struct client *client);

/* The client has got the error, or looks for a lane again. */
void lane_choice_end_refused(struct client *client);

/*
 * Sets the client's name on the private lane of this lane user, for CLIENT LIST and CLIENT GETNAME.
 * HELLO is used, because HELLO needs no rights that the client may lack. False: out of memory, and
 * the client is closed.
 */
__attribute__((warn_unused_result)) bool lane_choice_set_name(struct client *client,
                                                              struct lane_user *lane_user,
                                                              struct lane *lane);

#endif
