/*
 * Closes clients that weir has waited for too long. weir waits for the end of a handshake, the rest
 * of a request, any byte (idle-timeout), or a sign of life from the host.
 *
 * There is no timer for each client. All waits of one kind have the same length, so a list keeps
 * the waits in order. One alarm is set for the first wait. Idle clients are found by looking at
 * each client eight times in idle-timeout, so an active client costs no more than noting the time.
 * No client is closed early. A handshake or a request is closed at most a few milliseconds late, an
 * idle client at most a quarter of idle-timeout.
 *
 * Hosts: every tcp_peer_look_ns a walk asks each client's socket (link_has_vanished), some sockets
 * in each iteration of the loop. The walk finds hosts with unacknowledged replies. Keepalive finds
 * the other hosts.
 */
#ifndef WEIR_FRONT_TIMEOUTS_H
#define WEIR_FRONT_TIMEOUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "front/client/client_state.h"
#include "front/front.h"

struct client;

void timeouts_init(struct front *front);
void timeouts_close(struct front *front); /* asynchronous; call when the loop is closed */
void timeouts_fini(struct front *front);

/* The client has connected: adds it to front->clients, until timeouts_leave. */
void timeouts_enter(struct client *client);
/* The client is closed, from state `was`: ends its waits, and removes it from front->clients. */
void timeouts_leave(struct client *client, enum client_state was);

/* The present time for timeouts_is_new; wraps. */
uint32_t timeouts_now_ms(const struct front *front);

/*
 * True if the client connected, ended its handshake, or began an unfinished request at since_ms or
 * later.
 */
bool timeouts_is_new(const struct client *client, uint32_t since_ms);

/* Seconds since the client connected, and since bytes passed last, either way (up to 52 days). */
uint64_t timeouts_age_s(const struct client *client);
uint64_t timeouts_idle_s(const struct client *client);

/*
 * Begins a wait for a PROXY header or a TLS handshake. timeouts_end_handshake or timeouts_leave
 * must follow. All workers together allow a quarter of max-clients waits of this kind, and a
 * quarter of memory-limit. Each worker may always have one. If the waits exceed these bounds, the
 * oldest handshake of this worker is closed.
 */
void timeouts_begin_handshake(struct client *client);
void timeouts_end_handshake(struct client *client);

/* Closes the oldest handshake. False: this worker has none. */
bool timeouts_drop_handshake(struct front *front);

/*
 * The connection is unbound from now on. After UNBOUND_NS the connection is bound, if nothing has
 * bound it earlier.
 */
void timeouts_begin_unbound(struct client *client);

/* Begins the wait for the rest of a request that weir would read and the client has yet to send. */
void timeouts_begin_request(struct client *client);

/* Ends the wait for the rest of a request. */
void timeouts_end_request(struct client *client);

/* The rules have changed: sets the alarms by the new time-outs. */
void timeouts_adopt(struct front *front);

/* A walk over front->clients has ended: looks go on. */
void timeouts_go_on(struct front *front);

#endif
