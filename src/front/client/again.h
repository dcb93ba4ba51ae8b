/*
 * Retry of calls that Redis refused without running them, because the server is no longer or not
 * yet a master. The client waits (WAIT_AGAIN). weir sends the calls again, in their order, when a
 * lane to a master can be had.
 *
 * Problem: after a failover Redis answers READONLY to requests on their way to the old master.
 * Applications would have to send these requests again, though Redis says that nothing was run.
 * Mechanism:
 *
 *   READONLY       again_take_back   the call comes back (unanswered.h); weir takes nothing newer
 *   other replies  again_take_bytes  these and weir's own replies wait in order behind the call
 *                  again_put_behind
 *   all answered   again_go_on       looks for a lane as for any request (proof, connection);
 *                                    repeats after a pause without a lane or after a refusal
 *   failover-wait  again_pass_on     is over: the client gets the refusals
 *
 * Invariants: a call is charged once. A call is not sent again if it was run, if its connection was
 * lost, or if a later write of the client was run. Calls before that write get their refusals,
 * since sending them again would change the order.
 *
 * Price: a copy of each request on shared lanes of an upstream with several servers (client_keep).
 * The worker's thread.
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

/* extra.again: allocated when the first request comes back, until the client is closed. */
struct again {
    struct client *client;
    struct list in_front; /* in front.agains, while again_is_on */
    struct alarm alarm;   /* the next look, or the end of the wait */
    struct returned returned;
    uint64_t look_ns;  /* when weir looks for a lane next */
    uint64_t pause_ns; /* between two looks; doubles up to MOST_PAUSE_NS */
    uint64_t over_ns;  /* when failover-wait is over */
    uint64_t told_ns;  /* when requests last got their refusals; 0: never */
};

/* True if requests have come back to the client, and have not been sent again. */
static inline bool again_is_on(const struct client *client)
{
    return client->lane_user.is_returning;
}

/* As lane_user_ops.on_not_run: takes a refused call back, if the client may wait for a master. */
bool again_take_back(struct client *client, const struct call *call, enum not_run row);

/* Only while again_is_on: takes bytes of the client's next reply. */
void again_take_bytes(struct client *client, const char *data, size_t n);

/* Only while again_is_on: the reply to the oldest request of the call is complete. */
void again_answered(struct client *client, const struct call *call);

/* As client_ops.put_behind. */
void again_put_behind(struct client *client, const char *data, size_t n);

/*
 * The client's link was woken: sends the returned requests again, if a lane is found. Does nothing
 * if no request has come back.
 */
void again_go_on(struct client *client);

/* Gives up: the client gets the refusals of its returned requests, if there are any. */
void again_pass_on(struct client *client);

/* Ends the wait of a client that is being closed. Safe if no request ever came back. */
void again_stop(struct client *client);

/* Frees extra.again. Safe if no request ever came back. */
void again_free(struct client *client);

/* Another server has become master, or a connection can be had: all clients look for a lane now. */
void again_wake(struct front *front);

#endif
