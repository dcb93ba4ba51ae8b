/*
 * A request that becomes several calls on a cluster, and has one reply: a command with keys in several slots, one for
 * every master, SCAN.
 *
 *   request   MGET a b c           one position among the client's replies, one charge, one entry of the slow log
 *   parts     MGET a c | MGET b    in parallel, each at its own node: hops (hop.h) on shared lanes, or lent lanes
 *   (lent.h)
 *   reply     a b c                joined (resp/join.h) when the last part is answered; an error of one part is the
 *   reply
 *
 * Not atomic. A command of several slots that cannot be split hears CROSSSLOT, as from Redis Cluster itself.
 * A part of one slot that hears TRYAGAIN goes on key by key. Parts on lent lanes begin when all that the client asked
 * before is answered, and what it asks next waits for them.
 *
 * Invariants: no part's value is replaced by a nil. What the parts have answered counts against output-limit until the
 * client has it. `counted` is given back once, with the reply. Owner: the client (extra.compounds), its parts' memory
 * is the compound's; the worker's thread.
 */
#ifndef WEIR_FRONT_COMPOUND_H
#define WEIR_FRONT_COMPOUND_H

#include <stdbool.h>

#include "front/client/client.h"
#include "front/route/request.h"

/*
 * True if compound_run answers the request: outside MULTI, on a cluster. A request that is not here in full hears
 * CROSSSLOT there, too, if the keys that are here lie in several slots.
 */
bool compound_takes(const struct client *client, const struct request *request);

/* As a step of route: it has not been charged. */
__attribute__((warn_unused_result)) enum route compound_run(struct client *client, struct request *request);

/*
 * TRYAGAIN was the answer to this request of one slot, which has no reply yet: its keys go on one by one. `done` is
 * called
 * once, perhaps before this returns, with the reply, or with an empty one where there will be none: the client is
 * closed, or about to be. False: it is none that is split, or it has one key, or out of memory; nothing is called.
 */
__attribute__((warn_unused_result)) bool compound_by_keys(struct client *client, struct slice request,
                                                          void (*done)(void *arg, struct slice reply), void *arg);

/* The client's link was woken. Safe without any. */
void compounds_go_on(struct client *client);

/* The client has ended its side: a part that blocks in Redis is given up, and the client is closed. Safe without any. */
void compounds_hurry(struct client *client);

/* The client is closed: parts on lent lanes are let go; hops_leave lets go the others. Safe without any. */
void compounds_leave(struct client *client);

/* Nothing calls the client any more. Safe without any. */
void compounds_free(struct client *client);

#endif
