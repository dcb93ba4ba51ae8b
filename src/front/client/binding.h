/*
 * Binding: finds the policy and the subject of a client. Both are found at accept, when the facts
 * about the client change, and when the rules change. The charges of the connection (connections,
 * calls in flight) move along.
 *
 * binding_enter is called at accept. binding_arrive follows once the address is known, and again
 * once the TLS name is known. binding_bind charges limits on connections (front/client/unbound.h
 * says when). Each returns false if the client is one connection too many: the client has been told
 * and leaves, or is closed in its handshake. Each also returns false if memory is out; the client
 * is then closed.
 */
#ifndef WEIR_FRONT_BINDING_H
#define WEIR_FRONT_BINDING_H

#include <stdbool.h>

#include "front/client/client.h"

/* The connection was accepted, and counts for its address. */
__attribute__((warn_unused_result)) bool binding_enter(struct client *client);

/* A PROXY header has changed the address. */
__attribute__((warn_unused_result)) bool binding_move(struct client *client);

/*
 * The address, or the TLS name, has become known. A policy that matches by address or TLS name
 * charges its limits on connects.
 */
bool binding_arrive(struct client *client);

/*
 * The client has logged in, or sends its first command without CMD_HANDSHAKE, or connected
 * UNBOUND_NS ago.
 */
bool binding_bind(struct client *client);

/*
 * The user, or the client name, has changed. A bound connection counts for its new subject. An
 * unbound connection stays unbound.
 */
bool binding_change(struct client *client);

/* RESET has ended the login: the connection is unbound again, as after accept. */
bool binding_unbind(struct client *client);

/*
 * Binds the client to new rules. Called before the client's next command is decided, or by
 * front.binding_walk, whichever is sooner. client_has_old_rules is true until the call. Charges of
 * the connection move without asking the gate. A command that waits for a limit is decided again.
 * False: out of memory, and the client is closed.
 */
bool binding_renew(struct client *client);

/* The client is closed: ends the charges of its connection, and releases its subjects. */
void binding_leave(struct client *client);

/*
 * Call before binding_leave, if an outage of Redis closes the client. If limits on connects have
 * counted the client, or have excused the client, the client's address may connect again uncounted
 * within 10 s (limit/reconnects.h).
 */
void binding_note_outage(const struct client *client);

/* The client shares the overflow subject: gives it a subject of its own, if there is room now. */
void binding_leave_overflow(struct client *client);

#endif
