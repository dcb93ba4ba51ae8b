/*
 * Which of a client's requests are read from a replica.
 *
 * Problem: reads could be spread over replicas, which are behind the master by a time that nobody knows; a client would
 * miss its own writes, or read what is older than what it has read before. Mechanism: each replica's state is as of a
 * time, known by offsets (upstream/node/offsets.h).
 *   - A client stays with one replica while that is in sync, and its connections to weir have not been lost.
 *   - It comes to a replica, again or for the first time, only if the replica's state is as of a later time than the
 *   last
 *     answer that the client has had elsewhere. After a write its reads go to the master until then.
 *   - A client that reads on without a pause would be at the master for ever: each answer is later. So once in a
 *   while it
 *     is held for a moment, in which master and replicas are asked.
 *   - Redis at the replica must have taken the client's words, too; and its user must be proven at the master, with a
 *     connection there that would tell of its end: ACL DELUSER is not replicated.
 * Nothing waits for a replica: whatever is missing there, the request goes to the master meanwhile.
 *
 * The worker's thread.
 */
#ifndef WEIR_FRONT_READS_H
#define WEIR_FRONT_READS_H

#include <stdbool.h>

#include "front/client/client.h"
#include "front/client/read_side.h"
#include "front/route/request.h"
#include "limit/command/command.h"

/* A client has come. False: out of memory, and it is closed. */
__attribute__((warn_unused_result)) bool reads_open(struct client *client);

enum reads_step {
    READS_GO,   /* the client is on the side where the request goes */
    READS_WAIT, /* its link will be woken */
};

/* Bring the client to the side where the request goes. Only of a client with a read_side. */
__attribute__((warn_unused_result)) enum reads_step reads_settle(struct client *client, const struct request *request);

/* The client can have no lane where it is. True: it is at the home node now, where one may be found. */
bool reads_give_up(struct client *client);

/* The replica that the client is at refuses to answer: nothing is read from it for a moment. */
void reads_note_refused(const struct client *client);

/* Is the request READONLY or READWRITE, to which weir answers +OK? Then it holds for the client from now on. */
bool reads_take_word(struct client *client, const struct request *request);

/* The node to which the command of a client with a read_side would go now, and why, for people. */
const struct node *reads_explain(const struct client *client, const struct command *command, const char **why);

/* Which commands go the short way (express.h) on the lane that the client is on. */
enum reads_kind {
    READS_ANY,
    READS_READS,  /* those that a replica may answer */
    READS_OTHERS, /* those that it may not */
    READS_NONE,
};

enum reads_kind reads_kind_now(const struct client *client);

#endif
