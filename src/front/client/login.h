/*
 * Who a client says it is: AUTH and HELLO are read here, whole and strictly, and asked at the door in weir's own words.
 *
 * Only the door's +OK changes who somebody is. A lane of the client's own is logged in after that, and must say +OK
 * too. Inside MULTI neither is taken (route.c).
 */
#ifndef WEIR_FRONT_LOGIN_H
#define WEIR_FRONT_LOGIN_H

#include <stdbool.h>

#include "front/client/client.h"
#include "front/route/request.h"
#include "limit/attempts.h"
#include "upstream/login/doors.h"

enum login_result {
    LOGIN_WAITS,  /* WAIT_LOGIN: ask again then */
    LOGIN_PASSED, /* it is who it says: AUTH is answered +OK, HELLO goes on */
    LOGIN_WRONG,  /* login_reply is the answer */
    LOGIN_BARRED, /* too many have failed */
    LOGIN_GONE,   /* the client is leaving */
};

/* True if AUTH or HELLO ... AUTH has begun: then the gate has been passed. */
bool login_has_begun(const struct client *client);

/* Begin, or go on, once login_end has not come in between. Not inside MULTI. */
enum login_result login_ask(struct client *client, const struct hello *hello);

/* Go on with the logins that waited and were decided by another worker: see limit/attempts.h. */
void login_look(struct front *front);

/*
 * Asks Redis anew about the client's own words. LOGIN_GONE: Redis refuses them, and the client is
 * closed. LOGIN_PASSED: the session is proven if the generation of the question lasts. Else as
 * login_ask. Afterwards login_end, but where login_has_begun. is_handshake: of the request that
 * waits, for the length of an outage.
 */
enum login_result login_prove(struct client *client, bool is_handshake);

/*
 * The client's own words are asked again before anything of the client is sent in a new generation of its user.
 * LOGIN_PASSED: it is proven.
 */
enum login_result login_renew(struct client *client, bool is_handshake);

/* Redis has not answered login_prove, which is to ask once more. */
void login_prove_again(struct client *client);

/* True if login_prove has heard that the node does not take the client's words, and the client stays: the command's answer. */
bool login_is_refused(const struct client *client);

/* True if Redis was asked, and has not answered. */
bool login_is_unanswered(const struct client *client);

/* Have a client's own words asked anew though none of its requests waits for that. Refused, the client is closed. */
void login_check(struct client *client);

/* Good until login_end. */
struct slice login_reply(const struct client *client);

/* The request has been answered, or goes its way. Safe when nothing has begun. */
void login_end(struct client *client);

/* The lane of the client's own has answered the AUTH that followed the door's yes. */
void login_lane_answered(struct client *client, const struct glimpse *reply);

/*
 * True if the client's address has failures of logins left. False is counted, and noted for the
 * log.
 */
bool login_may(struct client *client);

#endif
