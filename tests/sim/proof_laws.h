/*
 * A law for passwords that an administrator removes before killing the user's connections. From
 * then on Redis gets no request as that user from a client with only that password. An earlier
 * login confirmed by weir does not count. The law sees only Redis' side.
 *
 * Each user has TOKENS passwords. Each client uses one password of every user, so some clients
 * share a password.
 */
#ifndef WEIR_SIM_PROOF_LAWS_H
#define WEIR_SIM_PROOF_LAWS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/slice.h"

#define TOKENS 4

struct conn;

void proof_laws_start(void);

/* Redis closes a connection of this user. */
void proof_laws_note_closed(struct conn *conn, struct slice user);

/*
 * taken: the password is removed, and all connections of its user are closed. given: the password
 * may be valid again.
 */
void proof_laws_note_taken(unsigned user, unsigned token);
void proof_laws_note_given(unsigned user, unsigned token);

/* True if the connection must not have sent this request as the user. */
bool proof_laws_are_broken(const struct conn *conn, struct slice user, const struct slice *argv,
                           size_t argc);

#endif
