/*
 * Commands about the cluster itself, from clients in front of a Redis Cluster. weir answers these
 * commands, or refuses them by name.
 *
 * CLUSTER SLOTS, SHARDS and NODES describe a cluster of one master, which is weir
 * (front/cluster/emulated.h). With cluster-commands = refuse weir replies as a server without
 * cluster support does. READONLY, READWRITE, ASKING and SELECT 0 succeed and change nothing.
 *
 * On a single server cluster_commands_answer returns ROUTE_GOES_ON. All functions run on the
 * worker's thread.
 */
#ifndef WEIR_FRONT_CLUSTER_COMMANDS_H
#define WEIR_FRONT_CLUSTER_COMMANDS_H

#include "front/client/client.h"
#include "front/route/request.h"

/*
 * A step of route: answers the commands that weir does not send to Redis. `lane` is the lane of an
 * open transaction, else NULL.
 */
enum route cluster_commands_answer(struct client *client, struct lane *lane,
                                   struct request *request);

#endif
