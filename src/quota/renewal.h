/*
 * When the operator has given a named limit another algorithm: keys in which a call finds the former algorithm's state
 * are deleted, one after the other, and then the call is asked again.
 *
 * Meanwhile the decision is changed into one that deletes one of its keys; the caller sends it.
 */
#ifndef WEIR_QUOTA_RENEWAL_H
#define WEIR_QUOTA_RENEWAL_H

#include <stdbool.h>

#include "base/slice.h"
#include "quota/decision.h"
#include "quota/outcome.h"

/* Does this error say that a key of its named limit holds another algorithm's state? True only once for each call. */
bool renewal_is_due(const struct decision *decision, struct slice error);

/* For PEEK, which deletes nothing: the outcome that it would have if the key did not exist. */
void renewal_look(const struct decision *decision, struct quota_outcome *outcome);

/* Change the call into the deletion of its key, or of the first of them. */
void renewal_begin(struct decision *decision);

/* After that has been answered: change it into the deletion of the next key; after the last, back into what it was. */
void renewal_go_on(struct decision *decision, bool is_deleted);

/* After a failure: change it back into what it was. */
void renewal_end(struct decision *decision);

#endif
