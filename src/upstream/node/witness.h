/*
 * Whether a connection that logged in after a client did may carry what that client sends.
 *
 * Problem: Redis itself carries out nothing of a connection that it has killed. weir learns of the kill when the end of
 * that connection comes, which may be late, and meanwhile a lane that is opened by a newer password of the user would
 * serve a client that knows only the one that has been taken away. Mechanism: logins of lanes are numbered, and a proof
 * knows how many there had been when it was asked. A lane suits a client if the lane logged in before that, or by the
 * client's own words. Of another one an older lane of the user is asked that does suit: had the user been killed before
 * the new lane logged in, the old one would not answer. Where there is none, the client's own words are asked again.
 *
 * Price: a round trip for a client on a lane that another password of its user has opened; nothing where a user has
 * one.
 */
#ifndef WEIR_UPSTREAM_WITNESS_H
#define WEIR_UPSTREAM_WITNESS_H

#include "upstream/lane/lanes.h"

/* The proof holds, and is of `login`. It may be as good as a newer one after that. */
static inline bool witness_suits_by(const struct lane_login *in, const struct proof *proof, const struct login *login)
{
    return in->number <= proof->n_logins || login_same(in->by, login);
}

static inline bool witness_suits(const struct lane *lane, struct proof *proof, const struct login *login)
{
    if (witness_suits_by(&lane->let_in, proof, login))
        return true;
    if (lane->vouched.by == NULL || !witness_suits_by(&lane->vouched, proof, login))
        return false;
    proof->n_logins = lane->let_in.number;
    return true;
}

/*
 * An older lane that suits is asked whether it is still there. True: riders that wait for `lane` are woken once there
 * is an answer, or none to come. False: no such lane can be asked now.
 */
bool witness_ask(struct lane *lane, const struct proof *proof, const struct login *login);

/* True if its user has clients by several passwords, and no other shared lane can be asked: it is not closed for want of use. */
bool witness_is_last(const struct lane *lane);

/* The oldest call on this one has been such a question, and is answered. */
void witness_answered(struct lane *lane);

/* The lane is closed: it answers no more. */
void witness_lost(struct lane *lane);

#endif
