/*
 * When the operator has given a limit another algorithm: the keys that a call finds with the former one's state are
 * deleted, one after the other, and the call is asked again.
 *
 * Meanwhile the call asks for the deletion of one of its keys. Whoever begins, or goes on, asks.
 */
#ifndef WEIR_QUOTA_RENEWAL_H
#define WEIR_QUOTA_RENEWAL_H

#include <stdbool.h>

#include "base/slice.h"
#include "quota/decision.h"
#include "quota/outcome.h"

/* Does this error say that a key of its limit has another algorithm's state? Once for each call. */
bool renewal_is_due(const struct decision *call, struct slice error);

/* For a call that only looks, which deletes nothing: what it would find once the key is gone. */
void renewal_look(const struct decision *call, struct quota_outcome *outcome);

/* The call asks for the deletion of its key, or the first of them. */
void renewal_begin(struct decision *call);

/* That has been answered: the call asks for the deletion of the next; behind the last what it asked before. */
void renewal_go_on(struct decision *call, bool is_deleted);

/* It has failed: the call is again what it was. */
void renewal_end(struct decision *call);

#endif
