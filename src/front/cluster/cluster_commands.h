/*
 * Commands about the cluster itself, of clients in front of one: answered by weir, or refused by
 * name. On one server nothing of it is called but
 * cluster_commands_answer.
 *
 * CLUSTER SLOTS and so on tell of one master, which is weir (front/cluster/emulated.h), or are refused as
 * by a server that is in no cluster: cluster-commands. READONLY, READWRITE, ASKING and SELECT 0 are
 * accepted and change nothing. The worker's thread.
 */
#ifndef WEIR_FRONT_CLUSTER_COMMANDS_H
#define WEIR_FRONT_CLUSTER_COMMANDS_H

#include "front/client/client.h"
#include "front/route/request.h"

/*
 * As a step of route: what Redis is not asked about. `lane`: where an open transaction is, else
 * NULL.
 */
enum route cluster_commands_answer(struct client *client, struct lane *lane, struct request *request);

#endif
