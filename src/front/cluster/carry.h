/*
 * What a client of a cluster sends on its own lane, kept until it is answered: what a node says not to have run is
 * sent again, and a redirect never reaches the client.
 *
 *   one request (EVAL, BLPOP, WATCH ...)   SENT ---> answered                    nothing newer is taken before the
 *   answer
 *                                          SENT ---> WAITS ---> SENT ...         MOVED, ASK, TRYAGAIN, CLUSTERDOWN ...
 *   a transaction (front/session/multi.h)          queued; a redirect is +QUEUED to the client, and is remembered
 *                            EXEC:         WAITS ---> BEGINS ---> REPLAYS ---> SENT
 *                                          the node     MULTI       the queue    EXEC
 *
 *   MOVED, ASK    at most CARRY_REDIRECTS and redirect-timeout, then `-UPSTREAM moved`; a node that is not in the
 *   topology is
 *                 waited for, never dialled. MOVED to a known node changes the slot's node at once
 *   TRYAGAIN      again after 1, 2, 4 .. 50 ms, for redirect-timeout, then passed on; redirects are counted anew
 *   CLUSTERDOWN, LOADING, READONLY, MASTERDOWN   again after 10 .. 100 ms, for failover-wait, then passed on
 *   MOVED, UNBLOCKED of a blocked command        as MOVED, with the time that is left. XREAD with `$` that has waited
 *   is told
 *                 UNBLOCKED: what came to the stream while it was sent again would be missed
 *   EVAL, EVALSHA, FCALL, what weir does not know   their scripts can forge replies. After MOVED or ASK weir asks
 *   EXISTS of the
 *                 first key, which only Redis answers and redirects: the request goes to the node that has answered
 *                 EXISTS.
 *                 If that is the node which has answered the redirect: `-UPSTREAM moved`. All other errors are passed
 *                 on
 *
 * Invariants: never sent again after a lost lane, nor if it was too large to be kept (`-UPSTREAM moved`). Charged once.
 * Price: a copy of each request on a client's own lane, and no pipelining there outside MULTI. One server has none of
 * it. The worker's thread. The state is in front/cluster/carried.h.
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

/* Made when first needed. NULL: out of memory, and the client is closed. */
struct carry *carry_need(struct client *client);

/*
 * A request outside MULTI has just been called on the client's own lane. Nothing newer is taken before it is
 * answered. False: out of memory, and the client is closed.
 */
__attribute__((warn_unused_result)) bool carry_note_sent(struct client *client, const struct request *request);

/*
 * Before a request with keys that is too large to be kept: if its slot is on its way, or has seen a redirect in the
 * last
 * minute, EXISTS is sent first, which learns the owner (carry->owner). ROUTE_GOES_ON: that is not needed, or is done.
 */
__attribute__((warn_unused_result)) enum route carry_probe(struct client *client, const struct request *request);

/* The large request goes to `lane`. False: out of memory, and the client is closed. */
__attribute__((warn_unused_result)) bool carry_end_probe(struct client *client, struct lane *lane);

/*
 * Bytes of replies have come on the client's own lane: those that the client is to hear go to `pass`, others take
 * their place or none. True: that was all.
 */
bool carry_take_bytes(struct client *client, const char *data, size_t n,
                      void (*pass)(struct rider *rider, const char *data, size_t n));

/* True if the client outlives the loss of its lane: what was under way has come back. */
bool carry_outlives_lane(const struct client *client);

/* The client's link was woken. Safe where nothing is kept. */
void carry_go_on(struct client *client);

/* The client is closed; carry_free: and nothing calls it any more. Both are safe where nothing was kept. */
void carry_stop(struct client *client);
void carry_free(struct client *client);

/* ---- for front/session/multi.h ---- */

/* `request` is to be sent as soon as it can go, with what is known of its call in `carry`. */
__attribute__((warn_unused_result)) bool carry_keep(struct client *client, const struct request *request);

/*
 * The whole error reply is no answer, but says where to go: it is noted what comes next. False: it is an answer. A
 * redirect of another slot, or without one, is over at once: the client hears `-UPSTREAM moved`.
 */
bool carry_read_refusal(struct client *client, struct slice reply);

/* True if carry_read_refusal would look at it: the error is no answer. Nothing is noted. */
bool carry_is_refusal(const struct client *client, struct slice reply);

/* True if it goes to the node that an ASK has named, behind ASKING: that ASK is not old. */
bool carry_asks(const struct carry *carry);

/* Where it goes now. NULL: no node is known. */
struct nodes_row *carry_row(const struct carry *carry);

/* It is not to be sent before its pause is over; the end of its wait is told at once. */
void carry_pause(struct client *client);

/* ASKING in weir's words, if the node needs that. False: out of memory. */
__attribute__((warn_unused_result)) bool carry_ask(struct client *client, struct lane *lane);

enum carry_found { CARRY_FOUND, CARRY_FOUND_NONE, CARRY_FOUND_WAITS, CARRY_FOUND_GONE };

/* A lane at the node of carry_row, for the kept request. */
enum carry_found carry_find_lane(struct client *client, struct lane **lane);

/* The client hears this in place of the reply, and the call is over. */
void carry_answer(struct client *client, struct slice reply);

#endif
