#include "tests/sim/lane_laws.h"

#include <assert.h>

#include "front/client/client.h"
#include "front/route/reads.h"
#include "front/client/session.h"
#include "tests/sim/loops.h"
#include "upstream/lane/lanes.h"

#define LANES_MAX 64 /* chosen: one struct lanes for each worker and node */

static struct lanes *known[LANES_MAX];
static unsigned n_known;

/* ---- registry: the linker replaces weir's functions by these (WATCHED in Makefile) ---- */

void __real_lanes_init(struct lanes *lanes, struct worker_lanes *worker_lanes, struct node *node,
                       const struct lanes *before, const struct lanes_ops *ops, void *arg);
void __wrap_lanes_init(struct lanes *lanes, struct worker_lanes *worker_lanes, struct node *node,
                       const struct lanes *before, const struct lanes_ops *ops, void *arg);
void __real_lanes_close(struct lanes *lanes);
void __wrap_lanes_close(struct lanes *lanes);

void __wrap_lanes_init(struct lanes *lanes, struct worker_lanes *worker_lanes, struct node *node,
                       const struct lanes *before, const struct lanes_ops *ops, void *arg)
{
    __real_lanes_init(lanes, worker_lanes, node, before, ops, arg);
    assert(n_known < LANES_MAX);
    known[n_known++] = lanes;
}

void __wrap_lanes_close(struct lanes *lanes)
{
    __real_lanes_close(lanes);
    for (unsigned i = 0; i < n_known; i++)
        if (known[i] == lanes)
            known[i--] = known[--n_known];
}

/* ---- the laws of one lane ---- */

static unsigned count_nonces(const struct lane *lane)
{
    unsigned n = 0;
    for (uint32_t at = lane->calls.head; at != lane->calls.tail; at++)
        n += (calls_at(&lane->calls, at)->flags & CALL_NONCE) != 0;
    return n;
}

static bool is_in_its_list(const struct lane *lane)
{
    bool is_shared = lane->role == LANE_SHARED;
    switch ((enum lane_list)lane->in) {
    case LIST_OPENING:
        return lane->state == LANE_CONNECTING || lane->state == LANE_GREETING;
    case LIST_RETIRED:
        return is_shared && lane->state == LANE_RETIRED;
    case LIST_SHARED:
        return is_shared && lane->state == LANE_READY;
    case LIST_SPARE:
        return is_shared && lane->state == LANE_READY && lane->use == USE_SPARE &&
               calls_is_empty(&lane->calls);
    case LIST_PRIVATE:
        return lane->role == LANE_PRIVATE && lane_is_ready(lane) && lane->owner != NULL;
    case LIST_IDLE:
        return lane->role == LANE_PRIVATE && lane->state == LANE_READY && lane->owner == NULL;
    case LIST_SCRIPT:
        return lane->role == LANE_SCRIPT && lane->state == LANE_READY;
    case LIST_AUTH_LANE:
        return lane->role == LANE_AUTH && lane->state == LANE_READY;
    default:
        return false;
    }
}

/*
 * Each lane user of a call points at this lane. If the lane has an owner, all of its calls are the
 * owner's, and the owner has no other calls.
 */
static bool has_its_lane_users(const struct lane *lane)
{
    uint32_t n_owners = 0;
    for (uint32_t at = lane->calls.head; at != lane->calls.tail; at++) {
        const struct lane_user *lane_user = calls_at(&lane->calls, at)->lane_user;
        if (lane_user != NULL && (lane_user->lane != lane || lane_user->in_flight == 0))
            return false;
        if (lane->owner != NULL && lane_user != lane->owner)
            return false;
        n_owners += lane_user != NULL && lane_user == lane->owner;
    }
    return lane->owner == NULL || (lane->owner->lane == lane && lane->owner->in_flight == n_owners);
}

static bool is_asked_as_it_trusts(const struct lane *lane)
{
    return count_nonces(lane) == (lane_is_asked(lane) ? 1 : 0);
}

static bool holds_no_clients_state(const struct lane *lane)
{
    bool may_hold =
        (lane->role == LANE_PRIVATE && lane->in != LIST_IDLE) || lane->role == LANE_SCRIPT;
    bool holds = lane->is_not_reusable || lane->is_parted || lane_is_passthrough(lane) ||
                 lane_is_subscribed(lane) || lane_is_monitoring(lane) || lane_is_asked(lane);
    bool is_shaped =
        lane->role == LANE_SHARED && (lane_is_untrusted(lane) || lane->beside != BESIDE_NOTHING);
    return may_hold || (!holds && !is_shaped);
}

static bool is_framed_as_it_is_called(const struct lane *lane)
{
    bool is_idle = calls_is_empty(&lane->calls);
    if (!lane_is_ready(lane) || lane_is_passthrough(lane) || lane->in == LIST_IDLE)
        return is_idle && !lane_is_in_frame(lane);
    if (!lane_is_in_frame(lane))
        return lane->lag == LAG_NONE;
    switch ((enum lane_framing)lane->framing) {
    case FRAMING_PLAIN:
    case FRAMING_REPLY:
    case FRAMING_MUTED:
        return !is_idle;
    case FRAMING_UNSOLICITED:
    case FRAMING_OWN_WORDS:
        return lane->owner != NULL;
    default:
        return true;
    }
}

/* ---- laws of lanes to a node that has left the topology ---- */

#define LEFT_MAX 512

/* The calls of a lane to such a node when the check first saw the lane. */
static struct left {
    const struct lane *lane;
    unsigned conn; /* number of the connection; pointer and number together identify the lane */
    uint32_t tail;
} left[LEFT_MAX];
static unsigned n_left;

static struct left *left_of(const struct lane *lane)
{
    unsigned conn = loop_conn_number(lane->link.watch.fd);
    for (unsigned i = 0; i < n_left; i++)
        if (left[i].lane == lane && left[i].conn == conn)
            return &left[i];
    struct left *one = &left[n_left < LEFT_MAX ? n_left++ : conn % LEFT_MAX];
    *one = (struct left){lane, conn, lane->calls.tail};
    return one;
}

/*
 * A private lane may send more unless its node is a replica: the lane's client finishes what the
 * client has begun.
 */
static bool is_sent_nothing_more(const struct lane *lane)
{
    const struct lanes *lanes = lanes_of(lane);
    bool may = lane->role == LANE_PRIVATE && !node_is_demoted(lanes_node(lanes));
    return !lanes->is_retired || !lane_is_ready(lane) || may ||
           left_of(lane)->tail == lane->calls.tail;
}

static const struct law {
    const char *text;
    bool (*holds)(const struct lane *lane);
} laws[] = {
    {"a lane: its list is that of its role and state", is_in_its_list},
    {"a lane: its calls are its owner's, and all of them; each rider of a call is on it",
     has_its_lane_users},
    {"a lane: a nonce is in flight just while its trust says so", is_asked_as_it_trusts},
    {"a lane: shared or kept, it holds no client's state", holds_no_clients_state},
    {"a lane: what is read of a frame answers a call, or is its owner's",
     is_framed_as_it_is_called},
    {"a lane: nothing more is sent to a node that has been left", is_sent_nothing_more},
};

/* ---- laws of leases ---- */

static bool is_ready(const struct lease *lease)
{
    return lease_holds(lease) && lane_is_ready(lease->lane);
}

/*
 * A lease at a replica outlives the confirmed login at the default node. reads_kind_now checks that
 * login before each read.
 */
static bool may_go_at_once(const struct client *client)
{
    return is_ready(&client->shared) &&
           (!read_side_is_at_replica(client) || reads_kind_now(client) != READS_NONE);
}

static bool is_witnessed_there(const struct client *client)
{
    struct read_side *reading = read_side_of(client);
    struct login *login = session_login(client);
    const struct auth_users *users = &lanes_of(client->shared.lane)->base.users;
    return login == NULL || auth_proof_is_witnessed(&reading->proof, users, login);
}

/*
 * The fast path checks no login before it sends. The switch back to the default node's lane checks
 * no login either.
 */
static bool are_leases_proven(const struct client *client)
{
    bool is_there = read_side_is_at_replica(client);
    bool is_default_node_needed =
        may_go_at_once(client) || (is_there && is_ready(&read_side_of(client)->other));
    if (is_default_node_needed && !session_is_witnessed(client))
        return false;
    return !may_go_at_once(client) || (session_suits(client, client->shared.lane) &&
                                       (!is_there || is_witnessed_there(client)));
}

/*
 * A valid lease is on a lane that its client may use at once. That is a shared lane, the client's
 * private lane, or a private lane that is kept for the client.
 */
static bool are_leases_true(const struct client *client)
{
    const struct lease *shared = &client->shared, *kept = &client_extra(client)->kept;
    if (lease_holds(shared) &&
        (shared->lane->role != LANE_SHARED || shared->lane->state == LANE_RETIRED ||
         lane_is_closed(shared->lane)))
        return false;
    if (!are_leases_proven(client))
        return false;
    if (!lease_holds(kept))
        return true;
    const struct lane *lane = kept->lane;
    return lane->role == LANE_PRIVATE && !lane_is_closed(lane) &&
           (lane->owner == NULL || lane->owner == &client->lane_user);
}

/* ---- all laws ---- */

static const char *broken_by(const struct lane *lane)
{
    for (size_t i = 0; i < sizeof laws / sizeof laws[0]; i++)
        if (!laws[i].holds(lane))
            return laws[i].text;
    return NULL;
}

static const char *broken_lane(const struct lanes *lanes)
{
    const char *broken = NULL;
    for (int in = LIST_OPENING; in < LIST_COUNT; in++) {
        const struct list *list = &lanes->lists[in];
        for (struct list *at = list->next; at != list && broken == NULL; at = at->next)
            broken = broken_by(lanes_at(at));
    }
    return broken;
}

static const char *broken_lease(const struct front *front)
{
    for (struct list *at = front->clients.next; at != &front->clients; at = at->next)
        if (!are_leases_true(container_of(at, struct client, in_front)))
            return "a lease holds on a lane that its client may not use";
    return NULL;
}

/* A worker's lanes change only in its own iterations. */
static bool has_had_a_turn(const struct lanes *lanes)
{
    const struct sim_loop *loop = lanes_loop(lanes)->uv.internal_fields;
    return world.last == &loop->party;
}

const char *lane_laws_broken(void)
{
    const char *broken = NULL;
    for (unsigned i = 0; i < n_known && broken == NULL; i++) {
        if (!has_had_a_turn(known[i]))
            continue;
        broken = broken_lane(known[i]);
        if (broken == NULL)
            broken = broken_lease(known[i]->arg);
    }
    return broken;
}
