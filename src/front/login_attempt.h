/*
 * Attempts to log in (request_logs_in): how many from one address may fail.
 */
#ifndef WEIR_FRONT_LOGIN_ATTEMPT_H
#define WEIR_FRONT_LOGIN_ATTEMPT_H

#include <stdbool.h>

#include "front/client.h"

/*
 * May it try to log in? False: too many from its address have failed, under the policy that binds newcomers from there.
 */
bool login_attempt_may(struct client *client);
bool login_attempt_may_still(struct client *client); /* the same, and it is not counted again */
void login_attempt_failed(struct client *client);

#endif
