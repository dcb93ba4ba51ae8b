/*
 * Logins of clients. weir parses AUTH and HELLO strictly, and asks Redis on an auth lane with an
 * AUTH of its own.
 *
 * Only +OK on the auth lane changes the user of a client. A private lane is logged in afterwards,
 * and must answer +OK too. Inside MULTI weir refuses AUTH and a HELLO that logs in (route.c).
 */
#ifndef WEIR_FRONT_LOGIN_H
#define WEIR_FRONT_LOGIN_H

#include <stdbool.h>

#include "front/client/client.h"
#include "front/route/request.h"
#include "limit/attempts.h"
#include "upstream/login/auth_lanes.h"

enum login_result {
    LOGIN_WAITS,  /* the client waits (WAIT_LOGIN); call again when the client resumes */
    LOGIN_PASSED, /* Redis has accepted the login: AUTH is answered +OK, HELLO goes on */
    LOGIN_WRONG,  /* answer with login_reply */
    LOGIN_BARRED, /* too many logins from the address have failed */
    LOGIN_GONE,   /* the client is leaving, or closed */
};

/* True if an AUTH or HELLO ... AUTH has begun. The gate has passed the request already. */
bool login_has_begun(const struct client *client);

/* Begins the login, or goes on with it until login_end. Not allowed inside MULTI. */
enum login_result login_ask(struct client *client, const struct hello *hello);

/* Goes on with logins that have waited and that other workers have decided: limit/attempts.h. */
void login_look(struct front *front);

/*
 * Asks Redis again about the client's credentials. LOGIN_GONE: Redis refuses the credentials, and
 * the client leaves. LOGIN_PASSED: the session is proven, if the user's generation has not ended
 * since the question. Other results are as for login_ask.
 *
 * Call login_end afterwards unless login_has_begun. `is_handshake`: the request that waits is a
 * handshake, which decides how long an outage may last.
 */
enum login_result login_prove(struct client *client, bool is_handshake);

/*
 * Proves the client's credentials again, if session_must_prove, before anything is sent in a new
 * generation of the client's user. LOGIN_PASSED: the client is proven.
 */
enum login_result login_renew(struct client *client, bool is_handshake);

/* Makes the next login_prove ask Redis again. Called if Redis did not answer the last question. */
void login_prove_again(struct client *client);

/*
 * True if a node refused the client's credentials in login_prove, and the client stays: the refusal
 * answers the command.
 */
bool login_is_refused(const struct client *client);

/* True if Redis was asked, and the reply was lost. */
bool login_is_unanswered(const struct client *client);

/*
 * Asks Redis again about the client's credentials, though no request waits for the answer. A
 * refusal closes the client.
 */
void login_check(struct client *client);

/* The error reply of LOGIN_WRONG. Valid until login_end. */
struct slice login_reply(const struct client *client);

/* Ends the client's login, if one has begun. */
void login_end(struct client *client);

/* The private lane has answered the AUTH that follows the +OK on the auth lane. */
void login_lane_answered(struct client *client, const struct glimpse *reply);

/*
 * True if the client's address may log in. A refusal is counted, and the address is noted for the
 * log.
 */
bool login_may(struct client *client);

#endif
