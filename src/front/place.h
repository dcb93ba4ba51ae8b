/*
 * Which lane a client's next request travels on, and when its private lane is given back.
 *
 * A client moves only when all its calls on the old lane are answered.
 */
#ifndef WEIR_FRONT_PLACE_H
#define WEIR_FRONT_PLACE_H

#include "front/client.h"
#include "front/request.h"
#include "upstream/lane.h"

enum finding {
    PLACE_FOUND,   /* *lane takes requests now */
    PLACE_NOT_YET, /* the client's link will be woken */
    PLACE_NONE,    /* the upstream is away; or out of memory, and it is closed */
};

__attribute__((warn_unused_result)) enum finding place_find(struct client *client, const struct request *request,
                                                            struct lane **lane);

/* Would place_find open no connection for it, as far as can be said without looking? */
bool place_is_at_hand(const struct client *client, const struct request *request);

/* Wake the client when all its calls are answered. */
void place_wait_for_idle(struct client *client);

/* Leave its private lane as it is, which closes it: what it still had in flight is not answered. */
void place_abandon(struct client *client);

/* The same for one that is to be nobody's again: nothing is in flight on it. */
void place_leave(struct client *client);

/*
 * Only half of its newest request was sent on its private lane, and no more will be. Earlier ones are still answered;
 * the client must be leaving.
 */
void place_withdraw(struct client *client);

/* Give its private lane back if nothing needs it any more. */
void place_release(struct client *client);

#endif
