/*
 * Decides which of a client's requests a replica answers.
 *
 * Problem: replicas lag behind the master by an unknown time. A client could miss its own writes,
 * or read older data than it has read before.
 *
 * Mechanism: replication offsets tell how recent each replica's copy of the master's state is
 * (upstream/node/offsets.h).
 * - A client stays with one replica while the replica is in sync and weir has lost no connection to
 *   the replica.
 * - A client moves to a replica only if the replica's state is later than the client's last answer
 *   from elsewhere. After a write the client's reads go to the master until a replica has the
 *   write.
 * - A client that reads without a break would stay at the master for ever, since each answer is
 *   later than the replicas' state. Once in HOLD_NS the client therefore waits for at most 20 ms,
 *   while master and replicas are polled.
 * - Redis at the replica must accept the client's login. The client's user must also be confirmed
 *   at the master, with a connection that tells when the user ends: ACL DELUSER is not replicated.
 *
 * Apart from this wait once in HOLD_NS, no request waits for a replica. If one of the conditions is
 * not met, the request goes to the master. Thread: the worker's.
 */
#ifndef WEIR_FRONT_READS_H
#define WEIR_FRONT_READS_H

#include <stdbool.h>

#include "front/client/client.h"
#include "front/client/read_side.h"
#include "front/route/request.h"
#include "limit/command/command.h"

/* Prepares a new client for reads from replicas. False: out of memory, and the client is closed. */
__attribute__((warn_unused_result)) bool reads_open(struct client *client);

enum reads_step {
    READS_GO,   /* the client is on the side where the request goes */
    READS_WAIT, /* the client's link will be woken */
};

/* Moves the client to the side where the request goes. The client must have a read_side. */
__attribute__((warn_unused_result)) enum reads_step reads_settle(struct client *client,
                                                                 const struct request *request);

/*
 * The client cannot have a lane on its present side. True: the client is on the default node's side
 * now, where a lane may be found.
 */
bool reads_give_up(struct client *client);

/* The client's replica refuses to answer. For a moment no client reads from the replica. */
void reads_note_refused(const struct client *client);

/*
 * True if the request is READONLY or READWRITE, and takes effect for the client. weir answers +OK.
 */
bool reads_take_word(struct client *client, const struct request *request);

/*
 * Returns the node to which a command of the client would go now. *why is the reason, in words for
 * operators. The client must have a read_side.
 */
const struct node *reads_explain(const struct client *client, const struct command *command,
                                 const char **why);

/* Which commands take the fast path (fast_path.h) on the client's present lane. */
enum reads_kind {
    READS_ANY,
    READS_READS,  /* commands that a replica may answer */
    READS_OTHERS, /* commands that only the master may answer */
    READS_NONE,
};

enum reads_kind reads_kind_now(const struct client *client);

#endif
