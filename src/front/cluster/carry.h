/*
 * Requests that a client of a cluster sends on its private lane. weir keeps each request until its
 * reply. A request that a node refused without running it is sent again. A redirect never reaches
 * the client.
 *
 *   one request (EVAL, BLPOP, WATCH ...)   SENT ---> answered            newer requests wait
 *                                          SENT ---> WAITS ---> SENT     MOVED, ASK, TRYAGAIN ...
 *   a transaction (front/session/multi.h)  queued; a redirect is reported to the client as +QUEUED
 *                                EXEC:     WAITS ---> BEGINS ---> REPLAYS ---> SENT
 *                                          the node     MULTI       the queue    EXEC
 *
 * - MOVED, ASK: followed at most CARRY_REDIRECTS times within redirect-timeout, then `-UPSTREAM
 *   moved`. A redirect to a node outside the topology waits until the topology has the node; weir
 *   never dials such a node. MOVED to a known node changes the slot's node at once.
 * - TRYAGAIN: sent again after 1, 2, 4 .. 50 ms for redirect-timeout, then passed on. TRYAGAIN
 *   resets the count of redirects.
 * - CLUSTERDOWN, LOADING, READONLY, MASTERDOWN: sent again after 10 .. 100 ms for failover-wait,
 *   then passed on.
 * - MOVED or UNBLOCKED in reply to a blocked command: handled as MOVED, with the remaining block
 *   time. Exception: the client of an XREAD with `$` that has blocked receives UNBLOCKED, because a
 *   second sending could miss entries.
 * - EVAL, EVALSHA, FCALL, unknown commands: a script can forge their replies. After MOVED or ASK
 *   weir sends EXISTS of the first key, which only Redis answers and redirects. The request goes to
 *   the node that answers EXISTS. If that node also sent the redirect, the client receives
 *   `-UPSTREAM moved`. All other errors are passed on.
 *
 * Invariants: no request is sent again after its lane is lost. A request that is too large to be
 * kept is not sent again after a redirect (`-UPSTREAM moved`). A request is charged once.
 *
 * Price: a copy of each request on a private lane, and no pipelining on that lane outside MULTI.
 * Clients of a single server have no carry. All functions run on the worker's thread. The state is
 * in front/cluster/carried.h.
 */
#ifndef WEIR_FRONT_CARRY_H
#define WEIR_FRONT_CARRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "front/cluster/carried.h"
#include "front/client/client.h"
#include "front/route/request.h"

#define CARRY_REDIRECTS 5

/*
 * Returns the client's carry (struct carry, front/cluster/carried.h), made when first needed. NULL
 * if out of memory; the client is then closed.
 */
struct carry *carry_need(struct client *client);

/*
 * Called after a request outside MULTI is sent on the client's private lane. No newer request is
 * taken before the reply. False if out of memory; the client is then closed.
 */
__attribute__((warn_unused_result)) bool carry_note_sent(struct client *client,
                                                         const struct request *request);

/*
 * Called before a request with keys that is too large to be kept. If the request's slot migrates,
 * or saw a redirect in the last minute, EXISTS is sent first to find the serving node
 * (carry->owner). Returns ROUTE_GOES_ON if no EXISTS is needed, or EXISTS is answered.
 */
__attribute__((warn_unused_result)) enum route carry_probe(struct client *client,
                                                           const struct request *request);

/*
 * Called before the large request of carry_probe is sent on `lane`; sends ASKING if required. False
 * if out of memory; the client is then closed.
 */
__attribute__((warn_unused_result)) bool carry_end_probe(struct client *client, struct lane *lane);

/*
 * Takes reply bytes from the client's private lane. Bytes for the client, or their replacement, go
 * to `pass`. False if the caller must handle these bytes itself.
 */
bool carry_take_bytes(struct client *client, const char *data, size_t n,
                      void (*pass)(struct lane_user *lane_user, const char *data, size_t n));

/*
 * True if the client stays open when its lane is lost: the call was refused and waits to be sent
 * again.
 */
bool carry_outlives_lane(const struct client *client);

/* Called when the client's link is woken. Continues the kept call. Safe without a kept call. */
void carry_go_on(struct client *client);

/*
 * carry_stop: called when the client is closed. carry_free: called later, when nothing refers to
 * the client any more. Both functions are safe without a carry.
 */
void carry_stop(struct client *client);
void carry_free(struct client *client);

/* ---- for front/session/multi.h ---- */

/*
 * Keeps `request`, to be sent as soon as possible, and records its call in `carry`. False if out of
 * memory; the client is then closed.
 */
__attribute__((warn_unused_result)) bool carry_keep(struct client *client,
                                                    const struct request *request);

/*
 * Takes a whole error reply. True if the reply is a refusal. The function then records the next
 * step. False if the reply is an answer. After a redirect for another slot, or without a slot, the
 * call ends at once with `-UPSTREAM moved` for the client.
 */
bool carry_read_refusal(struct client *client, struct slice reply);

/* True if carry_read_refusal would take this reply as a refusal. Changes nothing. */
bool carry_is_refusal(const struct client *client, struct slice reply);

/* True if the request goes to the target of an ASK, behind ASKING. An old ASK does not count. */
bool carry_asks(const struct carry *carry);

/* Returns the node that the request goes to now, NULL if no node is known. */
struct nodes_row *carry_row(const struct carry *carry);

/* Delays the next sending. The delay doubles each time, up to a maximum. */
void carry_pause(struct client *client);

/* Sends ASKING on the lane. False if out of memory; the client is then closed. */
__attribute__((warn_unused_result)) bool carry_ask(struct client *client, struct lane *lane);

enum carry_found { CARRY_FOUND, CARRY_FOUND_NONE, CARRY_FOUND_WAITS, CARRY_FOUND_GONE };

/* Finds a lane at the node of carry_row for the kept request. */
enum carry_found carry_find_lane(struct client *client, struct lane **lane);

/* Answers the client with `reply` in place of Redis' reply, and ends the call. */
void carry_answer(struct client *client, struct slice reply);

#endif
