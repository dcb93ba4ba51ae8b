/*
 * Which reads of a cluster's client go to a replica of the slot's master (reads = asked, reads = replicas).
 *
 * A replica is read from while it is in sync (upstream/node/offsets.h), and while its state is as of a later time
 * than all that
 * the client has heard of this shard elsewhere: from the master, from another replica, and as weir's own replies to
 * what is
 * no plain command. So a client reads its own writes, and does not go back in time. Reads and writes of one shard are
 * never in flight at two of its nodes: the next request waits until the others are answered (shard_reads_must_wait). A
 * replica
 * that refuses the client, or lets no lane be opened, is left alone for a while. Parts of a command over several
 * slots, and
 * what needs a lane of its own, go to the masters. A client that reads on without a pause would stay at the master
 * for ever, as each answer is later than what a replica is known to have: once a second it is held for a moment.
 *
 * The worker's thread. Of clients with a read_side; of others, and on one server, nothing is to be called.
 */
#ifndef WEIR_FRONT_SHARD_READS_H
#define WEIR_FRONT_SHARD_READS_H

#include <stdbool.h>

#include "front/client/client.h"
#include "front/route/request.h"
#include "front/cluster/spread.h"

/* Where the request goes: a replica of this master, or the master. */
struct nodes_row *shard_reads_row(const struct client *client, const struct request *request, struct nodes_row *master);

/*
 * The request goes to this row. True: that is the master, though a replica is in sync, and the client waits for a
 * moment
 * until the replica is known to have all that the client has heard; its link will be woken. At most once a second.
 */
bool shard_reads_hold(struct client *client, const struct request *request, const struct nodes_row *row);

/*
 * True if calls of the client are in flight at another node of the row's shard, or the row is a replica's and parts
 * of a command over several slots are under way, sent or not. Of a client with a spread.
 */
bool shard_reads_must_wait(const struct client *client, const struct nodes_row *row);

/* True if calls of the client are in flight at a replica: a write that goes to several shards must not overtake them. */
bool shard_reads_are_under_way(const struct client *client);

/* No lane can be had at the place. True: it is at a replica, which is left alone now; the master is to be asked. */
bool shard_reads_give_up(struct place *place);

#endif
