/*
 * Which lane a client's next request travels on, and when its private lane is given back.
 *
 * A client moves only when all its calls on the old lane are answered.
 */
#ifndef WEIR_FRONT_LANE_CHOICE_H
#define WEIR_FRONT_LANE_CHOICE_H

#include "front/client/client.h"
#include "front/route/request.h"
#include "upstream/lane/lane.h"

enum finding {
    LANE_FOUND,    /* *lane takes requests now */
    LANE_NOT_YET,  /* the client's link will be woken */
    LANE_UNPROVEN, /* the client's words are to be asked again */
    LANE_NONE,     /* the upstream is away; or out of memory, and it is closed */
};

__attribute__((warn_unused_result)) enum finding lane_choice_find(struct client *client, const struct request *request,
                                                                  struct lane **lane);

/*
 * Why it has found none: ERR_UPSTREAM_UNAVAILABLE: Redis is away; ERR_UPSTREAM_TIMEOUT: Redis is silent; ERR_NONE:
 * Redis has said why, in words of its own; ERR_UPSTREAM_BUSY: for any other reason.
 */
enum err lane_choice_lack(const struct client *client, const struct request *request);

/* Why it has found none, as an error reply: Redis' own words if it has said any. */
struct slice lane_choice_why_none(const struct client *client, const struct request *request);

/* True if the request goes to a private lane: it must, or would hold others up. */
bool lane_choice_needs_private(const struct client *client, const struct request *request);

/* Would lane_choice_find open no connection for it, as far as can be said without looking? */
bool lane_choice_is_at_hand(const struct client *client, const struct request *request);

/* The client leaves its private lane as it is, which closes the lane: calls in flight there are not answered. */
void lane_choice_abandon(struct client *client);

/* The same with nothing in flight: the lane may be reset and lent to another. */
void lane_choice_leave(struct client *client);

/*
 * Only half of its newest request was sent on its private lane, and no more will be. Earlier ones are still answered;
 * the client must be leaving.
 */
void lane_choice_withdraw(struct client *client);

/* Have a connection of its user open, if there may be one, so that Redis can tell when the user is gone. */
void lane_choice_keep_user(struct client *client);

/*
 * On a cluster: the client's own lane leads elsewhere than its next request goes (front/route/target.h), and is given
 * back. False: the client waits for its replies there, or is closed.
 */
__attribute__((warn_unused_result)) bool lane_choice_turn(struct client *client);

/* Give the client's private lane back if nothing needs it any more. */
/*
 * The node that its lane leads to may not be in the topology any more: a private lane is given back when nothing is
 * left on it. If that node is a replica now, a client that it keeps waiting, or has state on its lane, is closed.
 */
void lane_choice_note_retired(struct client *client);

void lane_choice_release(struct client *client);

/* Is it the first request on shared lanes that reads something? Then the size of what it reads is asked first. */
static inline bool lane_choice_asks_size(const struct client *client, const struct command *command)
{
    return client->reader == READER_NEW && !client_has_own_lane(client) && (command->flags & CMD_READONLY) != 0;
}

/* Is a huge reply coming, or has one come not long ago? */
static inline bool lane_choice_reads_huge(const struct client *client)
{
    uint64_t until_ns = client_extra(client)->huge_until_ns;
    return until_ns != 0 && client->front->loop->now_ns < until_ns;
}

/* A request goes to the lane that was found for it. */
static inline void lane_choice_note_read(struct client *client, const struct command *command)
{
    if (lane_choice_asks_size(client, command))
        client->reader = READER_ASKS;
}

/* The request has been sent there. */
void lane_choice_note_sent(struct client *client);

/*
 * A huge value is coming: the client's next read on a shared lane is answered before another goes
 * there, and on its own lane few calls are under way for a while.
 */
void lane_choice_note_huge(struct client *client);

/* The client has another name (CLIENT SETNAME, HELLO): a private lane that it has bears it, an earlier one does not. */
void lane_choice_note_name(struct client *client);

/*
 * The client has logged in on its own lane. The lane may have refused the client's name before and is told the name
 * again, unless a transaction may have given the lane another name, which Redis alone knows.
 */
void lane_choice_note_login(struct client *client);

/* The lane that the client waited for could not be opened; lane_choice_end_refused: it has been told. */
void lane_choice_note_refused(struct client *client);
void lane_choice_end_refused(struct client *client);

/*
 * The private lane, which is the rider's, bears the client's name, for CLIENT LIST and CLIENT GETNAME. HELLO needs no
 * rights that the client may lack. False: out of memory, and the client is closed.
 */
__attribute__((warn_unused_result)) bool lane_choice_dress(struct client *client, struct rider *rider,
                                                           struct lane *lane);

#endif
