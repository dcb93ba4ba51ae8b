/*
 * The LIMIT commands that Redis decides, on one worker: from a client's call to its outcome.
 *
 * Calls of one turn of the loop travel together: those with the same script and numbers in one EVALSHA, equal ones on
 * one key as one with a count. A denial is remembered until it may have ended. A call that waits is woken when it is
 * its turn, when the window may have moved on, or when a place has become free.
 */
#ifndef WEIR_QUOTA_QUOTA_H
#define WEIR_QUOTA_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "limit/command.h"
#include "net/alarms.h"
#include "quota/decision.h"
#include "quota/settings.h"
#include "upstream/lanes.h"

struct quota;

/* A call has been answered: call->reply. */
typedef void (*quota_on_done)(struct decision *call);

/* `alarms` go off at their time only: nobody rings them for another reason. */
struct quota *quota_new(struct lanes *lanes, struct alarms *alarms, struct quota_settings *settings,
                        quota_on_done on_done);
void quota_free(struct quota *quota);

/*
 * Begin a call: a whole multibulk request of the command `name`. NULL: it is wrong, or there is no memory, and `error`
 * is the reply. Otherwise on_done follows, perhaps at once, unless quota_cancel comes first.
 */
struct decision *quota_begin(struct quota *quota, const struct quota_context *context, struct slice name,
                             struct slice request, void *owner, struct build *error);

/* A call that has been answered already, with a whole reply. NULL: no memory. */
struct decision *quota_answered(struct quota *quota, struct slice reply, void *owner);

/* Ask, answer, or wait: once after quota_begin, when the owner has it in its list. */
void quota_start(struct decision *call);

/* Nobody waits for it any more. Whatever Redis has been asked stands; a place that it acquires is released. */
void quota_cancel(struct decision *call);

/* Its client listens no longer than it must. True: it is waiting now; else it will not. */
bool quota_hurry(struct decision *call);

/* After on_done, when the reply has been used. */
void quota_end(struct decision *call);

/* Is it one of the commands that Redis decides? */
bool quota_decides(const struct command *command);

/* Is it CL.THROTTLE? No other one's key is the word behind its name. */
static inline bool quota_is_cell(const struct command *command)
{
    return command->flow == FLOW_OWN && command->first_key == 1;
}

#endif
