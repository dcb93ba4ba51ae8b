/*
 * The LIMIT commands that Redis decides, on one worker: from a client's call to its reply.
 *
 * Calls of one turn of the loop travel together: those with the same script and arguments in one EVALSHA, equal ones on
 * one key as one entry with a count. A denial is remembered until it may have ended. A call with WAIT goes on when its
 * turn comes, when the window may have moved, or when a holder has released.
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

/* It is done: decision->reply is its reply. The owner then calls quota_end. */
typedef void (*quota_on_done)(struct decision *decision);

#define QUOTA_ALARMS 2 /* the release listener's, and one for batches that are asked again */

/* `alarms` have room for QUOTA_ALARMS. */
struct quota *quota_new(struct nodes *nodes, struct alarms *alarms, struct quota_settings *settings,
                        quota_on_done on_done);

/* The worker has adopted another topology: limits are decided by its nodes from now on. */
void quota_adopt(struct quota *quota);

void quota_free(struct quota *quota);

/*
 * Make a call from a whole multibulk request of the command `name`. NULL: an error, out of memory included; `error` is
 * the reply. Otherwise on_done follows once quota_start has been called, unless quota_cancel is called first.
 */
struct decision *quota_begin(struct quota *quota, const struct quota_context *context, struct slice name,
                             struct slice request, void *owner, struct build *error);

/*
 * The slot of the keys of such a call, as they stand in Redis. KEYS_CROSSING (limit/command/keys.h): they have several;
 * KEYS_NO_SLOT: it is no call, or memory is short.
 */
int32_t quota_slot(struct quota *quota, const struct quota_context *context, struct slice name, struct slice request);

/* Start it, once, after quota_begin, when the owner has it in its list. on_done may be called before this returns. */
void quota_start(struct decision *decision);

/* The client has gone: no on_done. What Redis was asked stands, but what ACQUIRE gets is released. */
void quota_cancel(struct decision *decision);

/* From now on it must not begin to wait. True: it waits already, until its alarm. */
bool quota_hurry(struct decision *decision);

/* The node that decides it now; NULL: there is none. */
const struct node *quota_node(const struct decision *decision);

/* Free it, after on_done, when its reply has been used. */
void quota_end(struct decision *decision);

/* True if Redis decides this command. */
bool quota_decides(const struct command *command);

/*
 * True if the operator leaves it to Redis (cl-throttle = off): then it is no command that weir
 * knows. CL.THROTTLE is the only one of weir's commands with its key as first argument.
 */
static inline bool quota_is_left(enum quota_cell cell, const struct command *command)
{
    return cell == QUOTA_CELL_OFF && command->flow == FLOW_OWN && command->first_key == 1;
}

#endif
