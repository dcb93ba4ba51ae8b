/*
 * A client's session: who it is, in which protocol and database.
 *
 * Redis judges AUTH, HELLO, SELECT and CLIENT SETNAME; what they ask for is noted when they are sent and holds once they
 * have been answered well.
 */
#ifndef WEIR_FRONT_SESSION_H
#define WEIR_FRONT_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "front/client.h"
#include "limit/command.h"
#include "resp/glimpse.h"
#include "upstream/lane.h"

/* Empty until a user other than `default` has logged in. */
struct slice session_user(const struct client *client);

/* What its shared lane is found by. The login stays the session's. */
struct lane_key session_key(const struct client *client);

struct slice session_name(const struct client *client); /* empty: none */
uint8_t session_protocol(const struct client *client);

/* Has it come in by this login? */
bool session_has_login(const struct client *client, const struct login *login);

/* Would Redis answer it NOAUTH? */
bool session_is_anonymous(const struct client *client);

/* An AUTH, HELLO or CLIENT SETNAME is about to be sent; several may be queued before any is answered. */
void session_note(struct client *client, enum effect effect, bool is_queued, struct slice request);

/* It, or a SELECT of database `argument`, or a RESET sent in epoch `argument`, has been answered. */
void session_answered(struct client *client, enum effect effect, uint32_t argument, const struct glimpse *reply);

/*
 * What was noted last was queued in MULTI, and EXEC is over: ACL WHOAMI's answer tells who the client is. False: it does
 * not.
 */
bool session_confirm(struct client *client, const struct glimpse *whoami);

/* Back to what a new connection in this epoch is. */
void session_reset(struct client *client, uint32_t epoch);

/* "10.1.2.3:4711", "[::1]:4711", or "unix", into SESSION_TEXT bytes. */
void session_print_address(const struct client *client, char *out);

/* The client for the log: its address, and its user if it has one ("10.1.2.3:4711 user:alice"). */
#define SESSION_TEXT 512
void session_print(const struct client *client, char *out);

void session_free(struct client *client);

#endif
