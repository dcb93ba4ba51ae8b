/*
 * The LIMIT commands that Redis decides, on one worker: from a client's call to its reply.
 *
 * Calls of one event loop iteration travel together. Calls with the same script and arguments share
 * one EVALSHA. Equal calls on one key are one entry with a count. A denial is cached until the key
 * may have room again. A call with WAIT continues at its scheduled time, when the window may have
 * room, or when a holder releases its permit.
 *
 * Thread: the worker's.
 */
#ifndef WEIR_QUOTA_QUOTA_H
#define WEIR_QUOTA_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/command/command.h"
#include "net/alarms.h"
#include "quota/decision.h"
#include "quota/denials.h"
#include "upstream/node/nodes.h"

struct quota;

/* The call is done, and decision->reply is its reply. The owner then calls quota_end. */
typedef void (*quota_on_done)(struct decision *decision);

/* the alarm of the release listener, and the alarm for batches that are retried */
#define QUOTA_ALARMS 2

/* `alarms` has room for QUOTA_ALARMS more alarms. */
struct quota *quota_new(struct nodes *nodes, struct alarms *alarms, struct quota_settings *settings,
                        quota_on_done on_done);

/*
 * Called when the worker has adopted another topology. From now on the nodes of the new topology
 * decide the limits.
 */
void quota_adopt(struct quota *quota);

void quota_free(struct quota *quota);

/*
 * Creates a call from a whole multibulk request of the command `name`. NULL: an error, out of
 * memory included, and `error` is the reply. Otherwise quota_start leads to on_done, unless
 * quota_cancel is called first.
 */
struct decision *quota_begin(struct quota *quota, const struct quota_context *context,
                             struct slice name, struct slice request, void *owner,
                             struct build *error);

/*
 * Returns the cluster slot of the call's keys, prefix included. KEYS_CROSSING
 * (limit/command/keys.h): the keys have several slots. KEYS_NO_SLOT: the request is invalid, or
 * memory is short.
 */
int32_t quota_slot(struct quota *quota, const struct quota_context *context, struct slice name,
                   struct slice request);

/*
 * Starts the call. Called once, after quota_begin, when the call is in the owner's list. on_done
 * may run before quota_start returns.
 */
void quota_start(struct decision *decision);

/*
 * Cancels the call of a client that has closed: on_done does not follow. Units that Redis was asked
 * to charge stay charged. A permit that ACQUIRE gets is released.
 */
void quota_cancel(struct decision *decision);

/* Keeps the call from beginning a wait. True: the call waits already, until its alarm. */
bool quota_hurry(struct decision *decision);

/* Returns the node that decides the call now; NULL: no node does. */
const struct node *quota_node(const struct decision *decision);

/* Frees the call, after on_done, when its reply has been used. */
void quota_end(struct decision *decision);

bool quota_decides(const struct command *command);

/*
 * True if the operator leaves the command to Redis (cl-throttle = off), so weir does not handle it.
 * CL.THROTTLE is weir's only command with a key as first argument.
 */
static inline bool quota_is_left(enum quota_cell cell, const struct command *command)
{
    return cell == QUOTA_CELL_OFF && command->flow == FLOW_OWN && command->first_key == 1;
}

#endif
