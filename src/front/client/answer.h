/*
 * Replies of weir's own to a request: a refusal, an error, or a reply to QUIT or RESET.
 *
 * The reply is sent after all earlier replies. Inside MULTI an error reply also makes Redis discard
 * the transaction.
 */
#ifndef WEIR_FRONT_ANSWER_H
#define WEIR_FRONT_ANSWER_H

#include "front/client/client.h"
#include "front/route/request.h"
#include "limit/figures/counts.h"
#include "resp/build.h"

/* Answers with a whole reply. */
enum route answer_with(struct client *client, struct slice reply);

/*
 * Answers with a whole error reply that no limit caused. Nothing of the request is sent to Redis.
 * `lane`: the lane of an open transaction, else NULL.
 */
enum route answer_error(struct client *client, struct lane *lane, struct request *request,
                        struct slice reply);

/* Answers with a built reply, and frees it. If building ran out of memory, closes the client. */
void answer_built(struct client *client, struct build *out);

/* Answers with an error of this text. */
enum route answer_text(struct client *client, struct request *request, const char *text);

/*
 * The letters before SUBSCRIBE in Redis' error for subscribers; the letters depend on Redis'
 * version.
 */
const char *answer_subscriber_kinds(const struct client *client);

/* Answers with the error for a command that a RESP2 subscriber may not send. */
enum route answer_subscribed(struct client *client, struct request *request);

/* For the fast path: answers n > 0 requests that are beyond a limit. */
enum route answer_over(struct client *client, const struct verdict *verdict, uint32_t n);

/*
 * Asks the gate. ROUTE_GOES_ON: the request has passed and is charged. Otherwise the request waits,
 * or has been answered.
 */
enum route answer_unless_passed(struct client *client, struct lane *lane, struct request *request,
                                struct verdict *verdict);

/*
 * As answer_unless_passed, before a lane is opened for the request; charges nothing. ROUTE_GOES_ON:
 * open the lane.
 */
enum route answer_refusal(struct client *client, struct request *request);

/*
 * True if the request is a login, and too many logins from the client's address have failed.
 * answer_barred tells the client, which then leaves.
 */
bool answer_is_barred(struct client *client, const struct request *request);
enum route answer_barred(struct client *client, const struct request *request);

enum route answer_quit(struct client *client);

/*
 * Answers a request inside a MULTI that weir has broken. As in Redis after an error in MULTI,
 * nothing is run, and EXEC fails.
 */
enum route answer_broken_multi(struct client *client, struct request *request);

enum route answer_reset(struct client *client, struct request *request);

/* Counts the result of the request, for metrics and the slow log. */
void answer_count(struct client *client, const struct request *request, enum counted_result result);

#endif
