/*
 * A client's session: its user, protocol, database, name and library, and the lanes that may carry
 * it.
 *
 * The user changes in session_log_in and session_reset alone: front/client/login.h says when. The
 * caller of these then has the client bound anew (binding_change). Redis judges SELECT, the
 * protocol of HELLO and CLIENT SETNAME where they travel. What they ask for is noted when they are
 * sent, and holds once they are answered well.
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

/* Empty until a user other than `default` has logged in. */
struct slice session_user(const struct client *client);

/* What its shared lane to a node is found by. The login stays the session's. */
struct lane_key session_key(const struct client *client, const struct node *node);

struct slice session_name(const struct client *client); /* empty: none */
uint8_t session_protocol(const struct client *client);
uint32_t session_database(const struct client *client);

/*
 * ---- its library: name and version, kept once for all clients of a worker that say the same ----
 */

#define LIBRARY_TEXT_MAX 256 /* bytes of a name or version; a longer one is not told to other lanes */

/* Counted. */
struct library {
    struct list in_known;
    unsigned holders;
    size_t name_len;
    size_t version_len;
    char text[]; /* the name, then the version */
};

struct slice library_name(const struct library *library); /* NULL: empty */
struct slice library_version(const struct library *library);

/* What it has said of its library; NULL: nothing. */
const struct library *session_library(const struct client *client);
__attribute__((warn_unused_result)) bool session_set_library(struct client *client, bool is_version,
                                                             struct slice value); /* False: out of memory. */
void session_forget_library(struct client *client);

/*
 * The same of what is queued in a transaction. Nothing is known of EXEC's outcome then: session_take_asked_library
 * makes it the library, session_drop_asked_library forgets it.
 */
__attribute__((warn_unused_result)) bool session_ask_library(struct client *client, bool is_version,
                                                             struct slice value); /* False: out of memory. */
bool session_has_asked_library(const struct client *client);
void session_take_asked_library(struct client *client);
void session_drop_asked_library(struct client *client);

/* As in Redis: in RESP2 a subscribed client could take a reply for a message. */
bool session_may_only_subscribe(const struct client *client);

/* By which the client has logged in; NULL: it has not. */
struct login *session_login(const struct client *client);

/* True if the client has not logged in, nor weir for it. */
bool session_has_no_login(const struct client *client);

/* ---- its proof (upstream/login/auth_users.h) ---- */

/* Where its next request goes, as far as it is bound: to the node of its own lane; else to the home node. */
struct nodes_row *session_row(const struct client *client);

/* The proof of its words, at the node where it is bound: of a client that has logged in. */
const struct proof *session_proof(const struct client *client);

/* True if Redis has said, in the present generation of its user, that it is that user; or the client has not logged in. */
bool session_is_proven(const struct client *client);

/* The same, and a connection of the user has been open ever since. */
bool session_is_witnessed(const struct client *client);

/* True if it has come in as this user. */
bool session_is_of(const struct client *client, const struct auth_user *user);

/*
 * True if its words are to be asked again before it sends anything: it is not proven; or it has a lane of its own, and
 * no connection of its user tells whether the user is still there.
 */
bool session_must_prove(const struct client *client);

/* Redis has taken its words again. */
void session_prove(struct client *client, const struct proof *proof);

/* No lane could be opened by its user's passwords: it is not proven. False: nor was one after its last proof. */
bool session_doubt(struct client *client);

/* It holds, and this lane may carry what the client sends (upstream/lane/shared.h). */
bool session_suits(const struct client *client, const struct lane *lane);

/* This lane does not. True: the client may wait for it. False: it is not proven any more. */
bool session_ask_witness(struct client *client, struct lane *lane);

/* There is a lane for it. */
void session_note_lane(struct client *client);

/* Would Redis answer the client -NOAUTH? */
bool session_is_anonymous(const struct client *client);

/* The same of a request that is refused for it; whether a password is still wanted is then asked of Redis. */
bool session_must_log_in(const struct client *client);

/*
 * Redis has said +OK to this login on an auth lane, with this proof; binding_change follows. False: out of memory, and
 * the client keeps its user.
 */
__attribute__((warn_unused_result)) bool session_log_in(struct client *client, struct login *login,
                                                        const struct proof *proof);

/*
 * It asks for a protocol (0: for none), or for a name, or both, or for neither (a database); only one is asked for at a
 * time. False: out of memory.
 */
__attribute__((warn_unused_result)) bool session_ask(struct client *client, uint8_t protocol, bool has_name,
                                                     struct slice name);

/* What session_ask has noted holds, and Redis has changed the lane along. True: the client has another name. */
bool session_take_asked(struct client *client);

/* The client is in that database. False: out of memory. */
__attribute__((warn_unused_result)) bool session_select(struct client *client, uint32_t database);

/* The client has come: its epoch is the node's of now. */
void session_begin(struct client *client);

/* Back to what a new connection in this epoch is, but for the library; binding_change follows. */
void session_reset(struct client *client);

/* "10.1.2.3:4711", "[::1]:4711", or "unix", into SESSION_TEXT bytes. */
void session_print_address(const struct client *client, char *out);

/* The client for the log: its address, and its user if it has one ("10.1.2.3:4711 user:alice"). */
#define SESSION_TEXT 512
void session_print(const struct client *client, char *out);

/* The same of one who gives an order: "the operators' socket", or as session_print has it. */
void session_print_operator(const struct client *client, char *out, size_t room);

/* A line of the log: the client is closed, and why. */
void session_log_closed(const struct client *client, enum log_site site, const char *why);

void session_free(struct client *client);

/* ---- what policies match and identities are made of ---- */

/* What is known of the client now. */
struct facts facts_of(const struct client *client);

/* What was known when it came, and nothing that it says can change. */
struct facts facts_on_arrival(const struct client *client);

/* ---- its lanes, as rider_ops wants it ---- */

/*
 * The share in which the client's private lanes count. An address stands for all clients that come
 * from it.
 */
struct room_share session_lane_share(const struct rider *rider);
struct room_share session_share(const struct client *client);

/*
 * A lane that carries its requests is its own, or one for its session, or a shared one for HELLO and SELECT to be
 * judged.
 */
void session_audit_lane(const struct rider *rider, const struct lane *lane);

#endif
