/*
 * A login as `auth-failures` counts it: for the address of its client, from before Redis is asked until it has
 * answered.
 *
 * The policy is the one that binds a connection from there as it comes, whoever the client is by now. What is counted
 * does not need the client, which may be gone before the answer: a failure is charged all the same.
 */
#ifndef WEIR_FRONT_LOGIN_ATTEMPT_H
#define WEIR_FRONT_LOGIN_ATTEMPT_H

#include <stdbool.h>

#include "front/client/client.h"
#include "limit/attempts.h"

/* Embedded in a login step. Zeroed: not begun. */
struct login_attempt {
    struct attempt base;
    struct policies *policies; /* those that were in force when it began, one reference; NULL: no limit counts it */
    struct account account;    /* of the address, under them; holds its subject */
};

/* Has the client's address failures left? False is counted, and noted for the log. */
bool login_attempt_may(struct client *client);

/* Begin: as attempts_begin. Where no policy limits failures it is ATTEMPT_UNDER_WAY. */
enum attempt_state login_attempt_begin(struct client *client, struct login_attempt *attempt);

/* It was barred while it waited: count that, and note it for the log. */
void login_attempt_note_barred(struct front *front, const struct login_attempt *attempt);

/* It has ended, in whichever state it is. Safe on one that has not begun. */
void login_attempt_end(struct front *front, struct login_attempt *attempt, bool is_failure);

/* Will its failure be charged? Then it outlives its client. */
static inline bool login_attempt_is_counted(const struct login_attempt *attempt)
{
    return attempt->policies != NULL;
}

#endif
