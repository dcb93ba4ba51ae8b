/*
 * A client's session: its user, protocol, database, name and library, and the lanes that may carry
 * the session.
 *
 * Only session_log_in and session_reset change the user: front/client/login.h says when. The caller
 * of one of these functions then binds the client again (front/client/binding.h). Redis decides
 * SELECT, the protocol of HELLO and CLIENT SETNAME. weir notes the arguments when it sends one of
 * these commands, and adopts the arguments when Redis accepts them.
 */
#ifndef WEIR_FRONT_SESSION_H
#define WEIR_FRONT_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "front/client/client.h"
#include "limit/command/command.h"
#include "limit/policy/identity.h"
#include "resp/glimpse.h"
#include "upstream/lane/lane.h"

/* The user that has logged in. Empty for `default` and before a login. */
struct slice session_user(const struct client *client);

/* The key of the client's shared lane to a node. The session keeps the reference on the login. */
struct lane_key session_key(const struct client *client, const struct node *node);

struct slice session_name(const struct client *client); /* empty: none */
uint8_t session_protocol(const struct client *client);
uint32_t session_database(const struct client *client);

/* ---- library: one copy of each name and version for all clients of a worker ---- */

/* bytes of a name or a version; weir sends longer texts on no other lane */
#define LIBRARY_TEXT_MAX 256

/* Reference-counted; one worker's. */
struct library {
    struct list in_known;
    unsigned holders;
    size_t name_len;
    size_t version_len;
    char text[]; /* the name, then the version */
};

struct slice library_name(const struct library *library); /* NULL: empty */
struct slice library_version(const struct library *library);

/* The library that the client has announced; NULL: none. */
const struct library *session_library(const struct client *client);
/* Sets the name or the version of the client's library. False: out of memory. */
__attribute__((warn_unused_result)) bool session_set_library(struct client *client, bool is_version,
                                                             struct slice value);
void session_forget_library(struct client *client);

/*
 * The library that a transaction has queued, until EXEC is answered. session_take_asked_library
 * makes the queued library the client's. session_drop_asked_library forgets the queued library.
 * session_ask_library returns false out of memory.
 */
__attribute__((warn_unused_result)) bool session_ask_library(struct client *client, bool is_version,
                                                             struct slice value);
bool session_has_asked_library(const struct client *client);
void session_take_asked_library(struct client *client);
void session_drop_asked_library(struct client *client);

/*
 * True for a subscribed client in RESP2: only subscriber commands are allowed, as in Redis, since
 * the client could mistake other replies for messages.
 */
bool session_may_only_subscribe(const struct client *client);

/* The login of the client, no reference added; NULL: the client has not logged in. */
struct login *session_login(const struct client *client);

/* True if the client has not logged in, and weir's own login is not lent to it. */
bool session_has_no_login(const struct client *client);

/* ---- the proof of the login (upstream/login/auth_users.h) ---- */

/*
 * The row of the node that gets the client's next request: the private lane's node, if there is
 * one. If the client has no private lane: on a cluster the row of the request's target, else the
 * default node's row.
 */
struct nodes_row *session_row(const struct client *client);

/*
 * The proof of the client's credentials at the default node. Only for a client that has logged in.
 */
const struct auth_proof *session_proof(const struct client *client);

/*
 * True if Redis has accepted the credentials in the present generation of the user, or the client
 * has not logged in.
 */
bool session_is_proven(const struct client *client);

/*
 * True if session_is_proven, and a connection of the user (a witness, upstream/lane/shared.h) has
 * been open ever since the proof.
 */
bool session_is_witnessed(const struct client *client);

/* True if the client's proof is of this user. */
bool session_is_of(const struct client *client, const struct auth_user *user);

/*
 * True if the client's credentials must be checked again before anything is sent. The client is not
 * proven, or has a ready private lane and is not witnessed.
 */
bool session_must_prove(const struct client *client);

/* Takes over a new proof: Redis has accepted the credentials again. */
void session_prove(struct client *client, const struct auth_proof *proof);

/*
 * Voids the proof, since no lane could be opened with the user's passwords. False: no login, or
 * session_doubt was called since the last login or session_note_lane.
 */
bool session_doubt(struct client *client);

/*
 * True if the client's requests may be sent on this lane (upstream/lane/shared.h). Only while the
 * client is proven.
 */
bool session_suits(const struct client *client, const struct lane *lane);

/*
 * For a lane that may not carry the client's requests: probes an older lane of the user, the
 * witness. True: the client may wait for the lane. False: the client is no longer proven.
 */
bool session_ask_witness(struct client *client, struct lane *lane);

/* A lane for the client was found: session_doubt may be called again. */
void session_note_lane(struct client *client);

/* True if Redis would answer the client with -NOAUTH. */
bool session_is_anonymous(const struct client *client);

/*
 * As session_is_anonymous, for a request that is refused. When the result is true, weir also asks
 * Redis whether a password is still needed.
 */
bool session_must_log_in(const struct client *client);

/*
 * Gives the client a login that Redis has accepted on an auth lane, with this proof; adds a
 * reference. The caller calls binding_bind. False: out of memory, and the client keeps its user.
 */
__attribute__((warn_unused_result)) bool session_log_in(struct client *client, struct login *login,
                                                        const struct auth_proof *proof);

/*
 * Notes the arguments of a request until Redis accepts them: a protocol (0: none), a name, or both.
 * SELECT passes no protocol and no name. One request at a time. False: out of memory.
 */
__attribute__((warn_unused_result)) bool session_ask(struct client *client, uint8_t protocol,
                                                     bool has_name, struct slice name);

/*
 * Redis has accepted the arguments of session_ask, and has changed the lane. True: the client has a
 * new name.
 */
bool session_take_asked(struct client *client);

/* The client has selected this database. False: out of memory. */
__attribute__((warn_unused_result)) bool session_select(struct client *client, uint32_t database);

/* The client begins at the default node, in the node's present auth generation. */
void session_begin(struct client *client);

/*
 * Sets the session back to the state of a new connection, except for the library. The caller calls
 * binding_unbind after a login, else binding_change.
 */
void session_reset(struct client *client);

/* Prints the client's address into SESSION_TEXT bytes: "10.1.2.3:4711", "[::1]:4711", or "unix". */
void session_print_address(const struct client *client, char *out);

/*
 * Prints the client for the log: its address and its user, if there is one ("10.1.2.3:4711
 * user:alice").
 */
#define SESSION_TEXT 512
void session_print(const struct client *client, char *out);

/*
 * Prints the sender of an admin command as session_print does. For a client of the operators'
 * socket, prints "the operators' socket".
 */
void session_print_operator(const struct client *client, char *out, size_t room);

/* Logs one line: the client is closed, and why. */
void session_log_closed(const struct client *client, enum log_site site, const char *why);

void session_free(struct client *client);

/* ---- facts that policies match and subjects are named by ---- */

/* The present facts about the client. */
struct facts facts_of(const struct client *client);

/* The facts about the client at accept. Nothing that the client sends changes these facts. */
struct facts facts_on_arrival(const struct client *client);

/* ---- lanes, for lane_user_ops ---- */

/*
 * Returns the counts (upstream/lane/room.h) that include the client's private lanes: the count of
 * its subject, and the count of its address, for all clients together.
 */
struct room_share session_lane_share(const struct lane_user *lane_user);
struct room_share session_share(const struct client *client);

/*
 * Asserts that a lane may carry the client's requests. Allowed lanes are the private lane and the
 * shared lane of the session. A HELLO or SELECT that Redis has to decide may also use another
 * shared lane.
 */
void session_audit_lane(const struct lane_user *lane_user, const struct lane *lane);

#endif
