/*
 * What a client gets while no connection to Redis can be had for its next request.
 *
 * Problem: an error reply during a restart of Redis ends programs, though their library would have connected again.
 * Mechanism:
 * the request has been sent nowhere, so the client waits (WAIT_UPSTREAM) until a connection can be had, at most
 * failover-wait from the moment when the request was the next of its connection. Then the connection is closed as that
 * of Redis would be, or the request is answered by an error, as when-upstream-down says. A handshake is closed always:
 * libraries take an error there for a mistake of the configuration. Where Redis is there, and max-lanes leaves no
 * connection, a handshake waits for handshake-timeout. An operator's connection is never closed.
 *
 * A server that takes connections and does not answer is not away: the request waits for upstream-timeout, if there is
 * one, and is then answered by -UPSTREAM timeout. Price: an allocation and an alarm for each client that waits.
 */
#ifndef WEIR_FRONT_OUTAGE_H
#define WEIR_FRONT_OUTAGE_H

#include <stdbool.h>

#include "base/err.h"
#include "front/client/client.h"

/*
 * A library that cannot connect tries for longer than one that waits for a reply, and gives up what it has sent
 * behind a
 * handshake: the handshake waits so many times failover-wait. Five outlast a restart of a few seconds (chosen).
 */
#define OUTAGE_HANDSHAKE_WAITS 5

/*
 * Of a client whose next request waits for a connection to Redis: extra.outage, until that request is taken. What has
 * come back to it (front/client/again.h) stands before that request, and has an end of its own.
 */
struct outage {
    struct client *client;
    struct list in_front; /* front.outages */
    struct alarm over;    /* not set: it is over, or the wait has no end of its own */
    uint64_t since_ns;    /* when the time began that the client waits */
    bool is_handshake;    /* its next request is one; set by outage_meet */
};

enum outage_step {
    OUTAGE_WAITS,
    OUTAGE_ERROR,   /* the request is answered by the error now */
    OUTAGE_CLOSES,  /* the connection is to be closed */
    OUTAGE_STARVED, /* there was no memory, and the client is closed */
};

/*
 * There is no connection for the client's next request: what comes of it? ERR_UPSTREAM_UNAVAILABLE: Redis is away;
 * ERR_UPSTREAM_TIMEOUT: silent; ERR_UPSTREAM_BUSY: there, and one more connection is not to be had.
 */
enum outage_step outage_meet(struct client *client, enum err why, bool is_handshake);

/*
 * The client waits for something else, a connection that is being opened, while Redis may be away: if it is, the wait
 * ends when failover-wait is over, and the client looks again. The client may be closed, for want of memory.
 */
void outage_watch(struct client *client, bool is_handshake);

/* True if Redis is away, and the client has waited for it as long as it may. */
bool outage_is_over(const struct client *client, bool is_handshake);

/* The connection is closed once all that was asked before is answered. */
void outage_close(struct client *client);

/* Its request has been taken, or the client is closed. Safe on one that does not wait. */
void outage_end(struct client *client);

/* A connection may be had: at most so many of the clients that wait look again. False: none waits. */
bool outage_wake(struct front *front, unsigned most);

/* For the alarm of front/client/timeouts.h. */
void outage_look(struct alarm *alarm);

#endif
