/*
 * Closes the clients that weir has waited for too long: for the end of a handshake, for the rest of
 * a request, for anything at all, or for a host that has vanished.
 *
 * There is no timer for each client. Whoever waits for the same thing has the same time, so the one
 * who began first stands first in a list, and one alarm is set for it. Idle ones are found by
 * looking at each client eight times in idle-timeout, so that one that sends costs no more than a
 * note of the time. Never closed early; a handshake and a request at most a few milliseconds late,
 * an idle client at most a quarter of idle-timeout.
 *
 * Hosts: every tcp_peer_look_ns a walk asks each client's socket (link_has_vanished), some in each
 * iteration of the loop, while replies are under way. Where no reply is, keepalive does.
 */
#ifndef WEIR_FRONT_TIMEOUTS_H
#define WEIR_FRONT_TIMEOUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "front/client/client_state.h"
#include "front/front.h"

struct client;

void timeouts_init(struct front *front);
void timeouts_close(struct front *front); /* asynchronous, as the loop is closed */
void timeouts_fini(struct front *front);

/* It has come, and is among front->clients from here on until it leaves. */
void timeouts_enter(struct client *client);
void timeouts_leave(struct client *client, enum client_state was); /* it is closed, and was in that state */

/* Now, for timeouts_is_new; wraps. */
uint32_t timeouts_now_ms(const struct front *front);

/* True if the client came, or ended its handshake, or began a request that came in pieces, at that time or later. */
bool timeouts_is_new(const struct client *client, uint32_t since_ms);

/* Seconds since the client came, and since bytes passed last, either way (up to 52 days). */
uint64_t timeouts_age_s(const struct client *client);
uint64_t timeouts_idle_s(const struct client *client);

/*
 * A PROXY header or a TLS handshake is waited for; its end, or timeouts_leave, must follow. A quarter of max-clients
 * and
 * of memory-limit is the most that wait on all workers together, or one of each worker where that is more. Beyond it
 * the oldest of this worker is closed for each that begins.
 */
void timeouts_begin_handshake(struct client *client);
void timeouts_end_handshake(struct client *client);

/* Close the oldest of those. False: there is none on this worker. */
bool timeouts_drop_handshake(struct front *front);

/* It is unbound: it is bound when UNBOUND_NS have passed, if it still is unbound. */
void timeouts_begin_unbound(struct client *client);

/* A part of a request is here and the rest is the client's to send; or is not any more. */
void timeouts_begin_request(struct client *client);
void timeouts_end_request(struct client *client);

/* The rules have changed. */
void timeouts_adopt(struct front *front);

/* A walk over the clients, during which nobody is looked at, has ended. */
void timeouts_go_on(struct front *front);

#endif
