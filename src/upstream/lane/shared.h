/*
 * The shared lane of a session: found, opened, replaced when it is slow, and vouched for by an
 * older lane of the user (a witness).
 *
 * A lane with calls that wait for long, or with a huge reply, is retired. The calls on a retired
 * lane are answered, and new calls go to another lane. Spare lanes are opened beforehand to take
 * new calls. The worker's thread only.
 */
#ifndef WEIR_UPSTREAM_SHARED_H
#define WEIR_UPSTREAM_SHARED_H

#include "upstream/lane/lanes.h"

/*
 * Returns the shared lane of a session, ready or still opening. If the session has no lane, a lane
 * is opened for `lane_user`. NULL: the node is away, too many lanes are open, or memory is out.
 */
struct lane *shared_get(struct lanes *lanes, const struct lane_key *key,
                        const struct lane_user *lane_user);

/*
 * A huge reply has arrived on this lane, and the calls behind it wait. For WARY_NS the first read
 * of each client goes to a lane for first reads, where only first reads wait behind a huge reply.
 */
void shared_be_wary(struct lane *lane);

/* True if the first reads of clients go to a lane for first reads now. */
static inline bool shared_is_wary(const struct lanes *lanes)
{
    return lanes_loop(lanes)->now_ns < lanes->wary_until_ns;
}

/*
 * Returns the lane for first reads, if that lane is ready. Otherwise a lane for first reads is
 * opened, if room is left. NULL: use the session's shared lane.
 */
struct lane *shared_get_apart(struct lanes *lanes, const struct lane_key *key,
                              const struct lane_user *lane_user);

/* Like shared_get, but opens no lane. */
struct lane *shared_find(struct lanes *lanes, const struct lane_key *key);

/*
 * Opens a lane that counts for `lane_user`; NULL: for no subject. Returns NULL as shared_get does.
 */
struct lane *shared_open(struct lanes *lanes, const struct lane_key *key,
                         const struct lane_user *lane_user);

/*
 * True if the lane has been silent for long although calls wait for answers. New calls should use
 * another lane.
 */
bool shared_is_sluggish(const struct lane *lane);

/*
 * Take no new calls on this lane. False: the lane must stay in use, as no lane like it could be
 * opened.
 */
bool shared_retire(struct lane *lane);

/* A retired lane has answered all its calls, and becomes spare. */
void shared_end_retirement(struct lane *lane);

/*
 * Use a retired or spare lane of this session again. False: the session has no retired or spare
 * lane.
 */
bool shared_bring_back(struct lanes *lanes, const struct lane_key *key);

/* No lease on this lane is left. */
void shared_note_unleased(const struct lane *lane);

/*
 * ---- witnesses ----
 *
 * A witness decides whether a connection may be used for a client that logged in before the
 * connection did.
 *
 * Problem: Redis runs nothing from a connection that it has killed. weir learns of the kill from
 * the end of the connection, which may arrive late. Meanwhile a lane opened with a newer password
 * of the user would serve a client that knows only the revoked password.
 *
 * Mechanism: logins of lanes are numbered. A proof stores the number of logins at the time of its
 * request. A lane suits a client if the lane logged in before that request, or with the client's
 * own password. On behalf of any other lane, weir probes an older lane of the user that suits the
 * client (the witness). If the user had been killed before the new lane logged in, the witness
 * would not answer. Without a witness the client's own login is sent again.
 *
 * Price: a round trip for a client on a lane that another password of its user has opened. Users
 * with one password pay nothing.
 */

/*
 * True if the lane suits a client with this proof. Called with a valid proof of `login`.
 * witness_suits may raise proof->n_logins to the lane's number.
 */
static inline bool witness_suits_by(const struct lane_login *in, const struct auth_proof *proof,
                                    const struct login *login)
{
    return in->number <= proof->n_logins || login_same(in->by, login);
}

static inline bool witness_suits(const struct lane *lane, struct auth_proof *proof,
                                 const struct login *login)
{
    if (witness_suits_by(&lane->let_in, proof, login))
        return true;
    if (lane->vouched.by == NULL || !witness_suits_by(&lane->vouched, proof, login))
        return false;
    proof->n_logins = lane->let_in.number;
    return true;
}

/*
 * Probe an older lane that suits the client. True: lane users that wait for `lane` are woken once
 * the witness answers or closes. False: no witness can be probed now.
 */
bool witness_ask(struct lane *lane, const struct auth_proof *proof, const struct login *login);

/*
 * True if the lane's user has clients with several passwords, and no other shared lane can be a
 * witness. The lane is then not closed as idle.
 */
bool witness_is_last(const struct lane *lane);

/* The oldest call on this lane was a probe of witness_ask, and is answered. */
void witness_answered(struct lane *lane);

/* The lane is closed: its probes will not be answered. */
void witness_lost(struct lane *lane);

#endif
