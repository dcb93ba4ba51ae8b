/*
 * What a request is answered in its place: a refusal, an error, or what weir says itself (QUIT, RESET).
 *
 * The answer stands behind all earlier ones. Inside MULTI an error voids the transaction in Redis too.
 */
#ifndef WEIR_FRONT_ANSWER_H
#define WEIR_FRONT_ANSWER_H

#include "front/client/client.h"
#include "front/route/request.h"
#include "limit/figures/counts.h"
#include "resp/build.h"

/* A whole reply. */
enum route answer_with(struct client *client, struct slice reply);

/*
 * A whole error reply that is no limit's; `lane`: where an open transaction is, else NULL. Nothing of the request
 * travels.
 */
enum route answer_error(struct client *client, struct lane *lane, struct request *request, struct slice reply);

/* A reply that weir has built, which is freed. Broken for want of memory it closes the client. */
void answer_built(struct client *client, struct build *out);

/* An error reply, from its text. */
enum route answer_text(struct client *client, struct request *request, const char *text);

/* What SUBSCRIBE begins with for it, as Redis' error has it. */
const char *answer_subscriber_kinds(const struct client *client);

/* The error for what a subscriber may not send in RESP2. */
enum route answer_subscribed(struct client *client, struct request *request);

/* For express: n > 0 requests are beyond a limit. */
enum route answer_over(struct client *client, const struct verdict *verdict, uint32_t n);

/* Ask the gate. ROUTE_GOES_ON: the request has passed and is charged; otherwise it waits, or has been answered. */
enum route answer_unless_passed(struct client *client, struct lane *lane, struct request *request,
                                struct verdict *verdict);

/* The same before a lane is opened for it, which charges nothing. ROUTE_GOES_ON: a lane is worth while. */
enum route answer_refusal(struct client *client, struct request *request);

/* Is it a login, and have too many from this address failed? answer_barred: the client is told so, and leaves. */
bool answer_is_barred(struct client *client, const struct request *request);
enum route answer_barred(struct client *client, const struct request *request);

enum route answer_quit(struct client *client);

/* Inside a MULTI that weir has broken, as Redis does after an error there: nothing is carried out, and EXEC says so. */
enum route answer_broken_multi(struct client *client, struct request *request);

enum route answer_reset(struct client *client, struct request *request);

/* What has become of the request, for metrics and the slow log. */
void answer_count(struct client *client, const struct request *request, enum counted_result result);

#endif
