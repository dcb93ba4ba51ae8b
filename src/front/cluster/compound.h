/*
 * A request that becomes several calls on a cluster, and has one reply: a command with keys in
 * several slots, a command for every master, SCAN.
 *
 *   request   MGET a b c           one position in the client's replies, one charge, one entry in
 *                                  the slow log
 *   parts     MGET a c | MGET b    in parallel, each at its own node: hops (hop.h) on shared lanes,
 *                                  or lent private lanes (lent.h)
 *   reply     a b c                joined (resp/join.h) when the last part is answered; an error of
 *                                  one part is the reply
 *
 * A compound is not atomic. A command over several slots that cannot be split is answered with
 * CROSSSLOT, as by Redis Cluster itself. A part of one slot that receives TRYAGAIN continues key by
 * key. Parts on lent lanes start when all earlier requests of the client are answered. Later
 * requests of the client wait until parts on lent lanes have ended.
 *
 * Invariants: no value of a part is replaced by nil. Replies of parts count against output-limit
 * until the client has received the joined reply. compound.counted is released once, with the
 * reply.
 *
 * The client owns its compounds (extra.compounds). A compound owns the memory of its parts. All
 * functions run on the worker's thread.
 */
#ifndef WEIR_FRONT_COMPOUND_H
#define WEIR_FRONT_COMPOUND_H

#include <stdbool.h>

#include "front/client/client.h"
#include "front/route/request.h"

/*
 * True if compound_run answers the request: outside MULTI, on a cluster. compound_run refuses an
 * incomplete request with CROSSSLOT if the keys received so far lie in several slots.
 */
bool compound_takes(const struct client *client, const struct request *request);

/* A step of route: charges and starts the compound. */
__attribute__((warn_unused_result)) enum route compound_run(struct client *client,
                                                            struct request *request);

/*
 * Continues a request of one slot key by key, after TRYAGAIN. The caller must not have answered the
 * request. `done` is called once, possibly before this function returns. The argument of `done` is
 * the reply, or an empty slice if the client is closed or about to be closed. False if the request
 * cannot be split, has one key, or memory is out. If the function returns false, `done` is not
 * called.
 */
__attribute__((warn_unused_result)) bool compound_by_keys(
    struct client *client, struct slice request, void (*done)(void *arg, struct slice reply),
    void *arg);

/* Called when the client's link is woken. Safe without compounds. */
void compounds_go_on(struct client *client);

/*
 * Called when the client has half-closed. If a part blocks in Redis, weir gives up the part and
 * closes the client. Safe without compounds.
 */
void compounds_hurry(struct client *client);

/*
 * Called when the client is closed. Detaches parts on lent lanes; hops_leave detaches hops. Safe
 * without compounds.
 */
void compounds_leave(struct client *client);

/* Called when nothing refers to the client any more. Safe without compounds. */
void compounds_free(struct client *client);

#endif
