/*
 * Decides what happens to a client while no connection to Redis is available for its next request.
 *
 * Problem: an error reply during a restart of Redis ends programs, though their library would have
 * reconnected.
 *
 * Mechanism: the request was sent nowhere, so the client waits (WAIT_UPSTREAM) until a connection
 * is available. The wait lasts at most failover-wait from the moment when the request was the next
 * of its connection. Then when-upstream-down decides: weir closes the connection, as Redis would,
 * or answers with an error.
 *
 * - A handshake that has waited in vain always ends with a close. Libraries take an error in a
 *   handshake for a mistake of the configuration.
 * - Redis answers, but max-lanes leaves no connection: a handshake waits for handshake-timeout.
 * - An operator's connection is never closed.
 * - Redis accepts connections but does not answer: the request waits for upstream-timeout, if there
 *   is one. After upstream-timeout the answer is -UPSTREAM timeout.
 *
 * Price: an allocation and an alarm for each client that waits.
 */
#ifndef WEIR_FRONT_OUTAGE_H
#define WEIR_FRONT_OUTAGE_H

#include <stdbool.h>

#include "base/err.h"
#include "front/client/client.h"

/*
 * A handshake waits for this many times failover-wait. A library retries a failed connect for
 * longer than it waits for a reply. If a handshake fails, the library gives up the requests that it
 * has sent behind the handshake. Five times failover-wait outlasts a restart of a few seconds
 * (chosen).
 */
#define OUTAGE_HANDSHAKE_WAITS 5

/*
 * The state of a client that waits for a connection to Redis: extra.outage, until the client's next
 * request is taken. Returned calls (front/client/again.h) stand before that request, and their wait
 * has an end of its own.
 */
struct outage {
    struct client *client;
    struct list in_front; /* in front.outages */
    struct alarm over;    /* the end of the wait; not set: the wait is over, or has no end */
    uint64_t since_ns;    /* when the client's wait began */
    bool is_handshake;    /* the next request is a handshake; set by outage_meet */
};

enum outage_step {
    OUTAGE_WAITS,
    OUTAGE_ERROR,   /* answer the request with the error now */
    OUTAGE_CLOSES,  /* close the connection */
    OUTAGE_STARVED, /* out of memory, and the client is closed */
};

/*
 * No connection is available for the client's next request: starts or continues the wait, and
 * returns the next step. `why`: ERR_UPSTREAM_UNAVAILABLE (Redis is away), ERR_UPSTREAM_TIMEOUT
 * (silent), or ERR_UPSTREAM_BUSY (Redis answers, but weir may open no more connections).
 */
enum outage_step outage_meet(struct client *client, enum err why, bool is_handshake);

/*
 * The client waits for something else, such as a connection that is being opened, and Redis may be
 * away. If Redis is away, the wait ends after failover-wait, and the client looks again. Without
 * memory the client is closed.
 */
void outage_watch(struct client *client, bool is_handshake);

/* True if Redis is away and the client's time to wait is over. */
bool outage_is_over(const struct client *client, bool is_handshake);

/* Closes the connection once all earlier requests are answered. */
void outage_close(struct client *client);

/*
 * Ends the wait: the request was taken, or the client is closed. Safe on a client that does not
 * wait.
 */
void outage_end(struct client *client);

/* A connection may be available: wakes at most `most` of the waiting clients. False: none waits. */
bool outage_wake(struct front *front, unsigned most);

/* Handler of the alarm in front/client/timeouts.h. */
void outage_look(struct alarm *alarm);

#endif
