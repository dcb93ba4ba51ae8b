#include "tests/sim/proof_laws.h"

#include "base/mem.h"
#include "tests/sim/client.h"
#include "tests/sim/kernel.h"
#include "tests/sim/under_way.h"

static struct {
    bool is_taken[USERS][TOKENS];
    unsigned n_unread[USERS]; /* connections that Redis has closed, and weir has not */
    /* number of weir's newest connection at the last time when n_unread was 0 */
    unsigned number[USERS];
} proofs;

/*
 * For each connection that Redis has closed. The bell rings when weir has read the close and has
 * closed its side.
 */
struct closed {
    struct bell bell;
    unsigned user;
};

void proof_laws_start(void)
{
    memset(&proofs, 0, sizeof proofs);
}

/* Returns the user's number; 0: not a user of the plan. */
static unsigned user_of(struct slice name)
{
    return name.len == 2 && name.at[0] == 'u' && name.at[1] > '0' && name.at[1] < '0' + USERS
               ? (unsigned)(name.at[1] - '0')
               : 0;
}

static void settle(unsigned user)
{
    if (proofs.n_unread[user] == 0)
        proofs.number[user] = kernel.n_conns;
}

static void on_both_closed(struct bell *bell)
{
    struct closed *closed = container_of(bell, struct closed, bell);
    proofs.n_unread[closed->user]--;
    settle(closed->user);
    free(closed);
}

void proof_laws_note_closed(struct conn *conn, struct slice name)
{
    unsigned user = user_of(name);
    if (user == 0)
        return;
    struct closed *closed = mem_zalloc(1, sizeof *closed);
    closed->bell.ring = on_both_closed;
    closed->user = user;
    conn->left = &closed->bell;
    proofs.n_unread[user]++;
}

void proof_laws_note_taken(unsigned user, unsigned token)
{
    proofs.is_taken[user][token] = true;
    settle(user);
}

void proof_laws_note_given(unsigned user, unsigned token)
{
    proofs.is_taken[user][token] = false;
}

/*
 * Requests that weir had sent before it knew may still come. So may requests on connections that
 * weir had opened before it knew. Later connections are only for clients that Redis has let in
 * since.
 */
bool proof_laws_are_broken(const struct conn *conn, struct slice name, const struct slice *argv,
                           size_t argc)
{
    unsigned user = user_of(name);
    uint64_t owner = user > 0 && argc > 1 ? under_way_owner(argv[1]) : 0;
    if (owner == 0 || proofs.n_unread[user] > 0 || conn->number <= proofs.number[user])
        return false;
    return proofs.is_taken[user][((owner >> 32) - 1) % TOKENS];
}
