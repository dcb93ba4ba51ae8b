/*
 * The shared lane of a session: found, opened, replaced by another when it takes its time, and
 * witnessed by an older one.
 *
 * A lane whose calls wait for long, or that is full of one huge reply, is retired: it answers what it has, and new
 * calls go to another, opened beforehand if possible (a spare one). The worker's thread only.
 */
#ifndef WEIR_UPSTREAM_SHARED_H
#define WEIR_UPSTREAM_SHARED_H

#include "upstream/lane/lanes.h"

/*
 * The shared lane for a session, opened for `rider` if there is none: ready, or to be waited for; NULL when the
 * node is away, there are too many lanes, or memory is out.
 */
struct lane *shared_get(struct lanes *lanes, const struct lane_key *key, const struct rider *rider);

/*
 * A huge reply has come on this lane, and whoever had calls behind it waits until it has passed. For a while the first
 * reads of clients of whom nothing is known have a lane of their own, where only their like is behind them.
 */
void shared_be_wary(struct lane *lane);

/* Is it so now? */
static inline bool shared_is_wary(const struct lanes *lanes)
{
    return lanes_loop(lanes)->now_ns < lanes->wary_until_ns;
}

/* The lane for such a read, if one is ready; else one is opened, if there is room. NULL: the session's own must do. */
struct lane *shared_get_apart(struct lanes *lanes, const struct lane_key *key, const struct rider *rider);

/* The same as shared_get, if there is one; opens none. */
struct lane *shared_find(struct lanes *lanes, const struct lane_key *key);

/* A new one, that counts for `rider`, or for nobody (NULL). NULL as shared_get. */
struct lane *shared_open(struct lanes *lanes, const struct lane_key *key, const struct rider *rider);

/* Has the lane been silent for long, though calls wait for answers? Then new ones had better go elsewhere. */
bool shared_is_sluggish(const struct lane *lane);

/* No new calls for this lane. False: it must go on, as none like it could be opened. */
bool shared_retire(struct lane *lane);

/* A retired lane has answered everything: it is spare. */
void shared_end_retirement(struct lane *lane);

/* One that was retired, or is spare, takes new calls after all. False: there is none of this session. */
bool shared_bring_back(struct lanes *lanes, const struct lane_key *key);

/* Nobody remembers this lane any more. */
void shared_note_unleased(const struct lane *lane);

/*
 * ---- witnesses ----
 *
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
