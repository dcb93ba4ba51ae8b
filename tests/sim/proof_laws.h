/*
 * A law of clients whose password is taken from their user, and whose user is killed then: Redis itself gets nothing of
 * them as that user any more, however they stood with weir. It is told by Redis' side, and knows nothing of weir.
 *
 * Each client has a password of its own of each user, but for those that share one: TOKENS of each user.
 */
#ifndef WEIR_SIM_PROOF_LAWS_H
#define WEIR_SIM_PROOF_LAWS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

#define TOKENS 4

struct conn;

void proof_laws_start(void);

/* The server closes a connection of this user. */
void proof_laws_note_closed(struct conn *conn, struct slice user);

/* The password is gone, and so are all connections of its user; or it may be there again. */
void proof_laws_note_taken(unsigned user, unsigned token);
void proof_laws_note_given(unsigned user, unsigned token);

/* True if this request of a connection of the user must not have come. */
bool proof_laws_are_broken(const struct conn *conn, struct slice user, const struct slice *argv, size_t argc);

#endif
