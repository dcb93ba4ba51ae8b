/*
 * Decides which reads of a cluster's client go to a replica of the slot's master (reads = asked,
 * reads = replicas).
 *
 * Invariant: a client reads its own writes, and never a state older than a state that the client
 * has seen. A replica is read only while both conditions hold:
 * - the replica is in sync (upstream/node/offsets.h);
 * - the replica's known state is later than all replies for this shard that the client got from the
 *   master, from another replica, or from weir itself for stateful commands.
 *
 * Requests for one shard are never in flight at two of its nodes. A request for another node of the
 * shard waits until the earlier requests are answered (shard_reads_must_wait).
 *
 * A replica that refuses the client, or to which no lane can be opened, is not tried for AVOID_NS.
 * Parts of commands over several slots, and requests that need a private lane, go to the masters.
 *
 * A client that reads without a pause would stay at the master for ever, because each reply is
 * later than the replica's known state. weir therefore makes this client wait briefly once a
 * second.
 *
 * The functions run on the worker's thread, only for clients with a read_side, and only on a
 * cluster.
 */
#ifndef WEIR_FRONT_SHARD_READS_H
#define WEIR_FRONT_SHARD_READS_H

#include <stdbool.h>

#include "front/client/client.h"
#include "front/route/request.h"
#include "front/cluster/spread.h"

/* Returns the row that the request goes to: a replica of `master`, or `master`. */
struct nodes_row *shard_reads_row(const struct client *client, const struct request *request,
                                  struct nodes_row *master);

/*
 * Called for a request that goes to `row`. True if the client must wait up to 20 ms. Reason: `row`
 * is the master, and a replica in sync will soon have proven that its data is current for the
 * client. The client's link is woken after the wait. A client waits at most once a second.
 */
bool shard_reads_hold(struct client *client, const struct request *request,
                      const struct nodes_row *row);

/*
 * True if calls of the client are in flight at another node of the row's shard. True also if the
 * row is a replica, and parts of a command over several slots are unfinished (sent or not).
 * Requires a client with a spread.
 */
bool shard_reads_must_wait(const struct client *client, const struct nodes_row *row);

/*
 * True if calls of the client are in flight at a replica. A write to several shards must not
 * overtake those calls.
 */
bool shard_reads_are_under_way(const struct client *client);

/*
 * Called when no lane is available at the place. True if the place is at a replica. weir then
 * avoids the replica for AVOID_NS, and the caller sends the request to the master.
 */
bool shard_reads_give_up(struct place *place);

#endif
