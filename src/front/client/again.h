/*
 * Calls that Redis refused without having run them, because its server is no master any more or not
 * yet: the client waits (WAIT_AGAIN), and they are sent again, in their order, when a lane to a
 * master can be had.
 *
 * Problem: after a failover Redis answers READONLY to what was on its way to the old master;
 * applications would have to send it again, though Redis says that nothing was done. Mechanism:
 *
 *   READONLY -----> again_take_back     the call comes back (unanswered.h); nothing newer is taken from the client
 *   other replies   again_take_bytes,   they wait in their order behind the call, as does what weir says
 *                   again_put_behind
 *   all answered    again_go_on         a lane is looked for, as for any request: proven user, connection, pause; if
 *   there is
 *                                       none, or Redis refuses again, once more in a moment
 *   failover-wait   again_pass_on       is over since the first refusal: the client hears the refusals
 *
 * Invariants: a call is charged once. No call is sent again that was run, nor after a lost
 * connection, nor behind a write of the same client that was run since: what stands before that
 * write is told its refusal, or their order would change. Price: a copy of each request on shared
 * lanes of an upstream of several servers (client_keep). The worker's thread.
 */
#ifndef WEIR_FRONT_AGAIN_H
#define WEIR_FRONT_AGAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "front/client/client.h"
#include "front/route/unanswered.h"
#include "net/alarms.h"
#include "upstream/lane/calls.h"
#include "upstream/node/not_run.h"

/* Of a client that requests have come back to: extra.again, until the client is closed. */
struct again {
    struct client *client;
    struct list in_front; /* front.agains, while requests have come back */
    struct alarm alarm;   /* the next look, or the end of the wait */
    struct returned returned;
    uint64_t look_ns;  /* when a lane is looked for next */
    uint64_t pause_ns; /* between two looks; grows */
    uint64_t over_ns;  /* when the wait is over */
    uint64_t told_ns;  /* when requests were told last that it is over; 0: never */
};

/* True while requests have come back to the client that have not been sent again. */
static inline bool again_is_on(const struct client *client)
{
    return client->rider.is_returning;
}

/* As rider_ops.on_not_run. */
bool again_take_back(struct client *client, const struct call *call, enum not_run row);

/* While it is on: bytes of the client's next reply. */
void again_take_bytes(struct client *client, const char *data, size_t n);

/* The same: that reply is whole, to the oldest request of the call. */
void again_answered(struct client *client, const struct call *call);

/* As client_ops.put_behind. */
void again_put_behind(struct client *client, const char *data, size_t n);

/* The client's link is woken: what has come back is sent, if it can be. Safe where nothing has. */
void again_go_on(struct client *client);

/* What has come back is not sent any more: the client hears the refusals. Safe where nothing has. */
void again_pass_on(struct client *client);

/* The client is closed; again_free: and nothing calls it any more. Both are safe where nothing has come back. */
void again_stop(struct client *client);
void again_free(struct client *client);

/* There is another master, or a connection can be had: all clients look now. */
void again_wake(struct front *front);

#endif
