#include "upstream/lane/lend.h"

#include <string.h>

#include "upstream/lane/lane_open.h"

/*
 * Chosen: how long a lane is reserved for its last owner, doubled each time the owner comes back in
 * time. A client that sends one script after the other keeps its lane. The lane of a client that
 * sends one script a second goes to other clients.
 */
#define LEFT_NS (NS_PER_MS / 2)
#define LEFT_DOUBLINGS 6

#define IDLE_MAX 128 /* chosen: idle lanes of a worker to a node; more are closed at once */

/* ---- targets of REDIRECT ---- */

void lend_list(struct lane *lane)
{
    if (lane->id == 0 || lane->is_listed)
        return;
    lane->is_listed = true;
    owned_enter(lane_node(lane)->owned, lane->id, lane->key.login);
}

/*
 * A lane to which other connections redirect invalidations is not reusable: the invalidations are
 * for the last owner.
 */
static void unlist(struct lane *lane)
{
    if (lane->is_listed && owned_leave(lane_node(lane)->owned, lane->id))
        lane_forbid_reuse(lane);
    lane->is_listed = false;
}

void lend_note_login(struct lane *lane)
{
    lane_enter_user(lane);
    if (!lane->is_listed)
        return;
    unlist(lane);
    lend_list(lane);
}

void lend_end_use(struct lane *lane)
{
    room_give_back(lanes_room(lanes_of(lane)), lane->share);
    unlist(lane);
}

/* ---- lending ---- */

/* Give the lane back to its last owner, as it was. */
static struct lane *resume(struct lane *lane, struct lane_user *owner)
{
    if (!lanes_use(lanes_of(lane), lane->share))
        return NULL;
    if (clock_ns() - lane->moved_ns < LEFT_NS << lane->returns && lane->returns < LEFT_DOUBLINGS)
        lane->returns++;
    lane->owner = owner;
    lane_return(lane);
    lane->use = USE_AGAIN;
    owner->lane = lane;
    lanes_move(lane, LIST_PRIVATE);
    return lane;
}

/* Greet the lane for another owner: no new connection. */
static struct lane *lend_renew(struct lanes *lanes, struct lane *lane, const struct lane_key *key,
                               struct lane_user *owner, struct slice written)
{
    struct room_share share = lanes_share_of(owner);
    if (!lanes_use(lanes, share))
        return NULL;
    lane->share = share;
    lanes_move(lane, LIST_OPENING);
    lane->returns = 0;
    lanes_tick(lanes);
    if (lane_renew(lane, key, owner, written))
        return lane;
    lane_fail(lane, END_LOST, "out of memory");
    return NULL;
}

static struct lane *open_new(struct lanes *lanes, const struct lane_key *key,
                             struct lane_user *owner)
{
    return lanes_open(lanes, key, LANE_PRIVATE, owner, lanes_share_of(owner));
}

/*
 * Returns the lane that has been idle longest. Lanes that are reserved for their last owner count
 * only if no lane can be opened, as do last connections of users. NULL: no lane is left.
 */
static struct lane *find_left(struct lanes *lanes)
{
    uint64_t now_ns = clock_ns();
    bool is_full = room_is_full(lanes_room(lanes));
    struct list *idle = &lanes->lists[LIST_IDLE];
    for (struct list *at = idle->next; at != idle; at = at->next) {
        struct lane *lane = lanes_at(at);
        bool is_left =
            (lane->n_leases == 0 || now_ns - lane->moved_ns > LEFT_NS << lane->returns) &&
            !auth_user_needs_it(lane->user);
        if (is_full || is_left)
            return lane;
    }
    return NULL;
}

struct lane *lend_private(struct lanes *lanes, const struct lane_key *key, struct lane_user *owner,
                          struct lease *last, bool wants_new)
{
    lanes->why_none = ERR_NONE;
    if (!lanes_are_up(lanes))
        return NULL;
    bool is_kept = last != NULL && lease_holds(last) && last->lane->in == LIST_IDLE &&
                   lanes_of(last->lane) == lanes;
    if (is_kept && lane_key_eq(&last->lane->key, key))
        return resume(last->lane, owner);
    struct lane *left = wants_new ? NULL : find_left(lanes);
    return left != NULL ? lend_renew(lanes, left, key, owner, slice_of("", 0))
                        : open_new(lanes, key, owner);
}

struct lane *lend_covering(struct lanes *lanes, const struct lane_key *key, struct lane_user *owner,
                           struct slice written, bool wants_new)
{
    lanes->why_none = ERR_NONE;
    if (!lanes_are_up(lanes))
        return NULL;
    struct lane *left = wants_new ? NULL : find_left(lanes);
    if (left != NULL)
        return lend_renew(lanes, left, key, owner, written);
    struct lane *lane = open_new(lanes, key, owner);
    if (lane != NULL)
        lane_cover(lane, written);
    return lane;
}

/* ---- taking back ---- */

/* True if weir knows that lanes of this user cannot be RESET. */
static bool cannot_reset(const struct lanes *lanes, const struct lane *lane)
{
    for (unsigned i = 0; i < LANES_NO_RESET; i++)
        if (lanes->no_reset[i] != NULL && login_same_user(lanes->no_reset[i], lane->key.login))
            return true;
    return false;
}

/*
 * True if a lane user of another worker waits for a connection, and no lane user of this worker
 * waits.
 */
static bool is_wanted_elsewhere(struct lanes *lanes)
{
    return list_is_empty(&lanes->base.worker_lanes->retrying) && room_is_wanted(lanes_room(lanes));
}

/*
 * End the owner's use. False: the caller must close the lane, because the lane is not reusable, or
 * another worker needs the room.
 */
static bool end_ownership(struct lanes *lanes, struct lane *lane)
{
    lend_end_use(lane);
    lane->owner = NULL;
    return !lane->is_not_reusable && !lanes->is_retired &&
           node_nonce_form(lanes_node(lanes)) != NONCE_NONE && !cannot_reset(lanes, lane) &&
           !is_wanted_elsewhere(lanes);
}

static void keep_few(struct lanes *lanes)
{
    lanes_sweep(lanes);
    (void)worker_lanes_wake_retrying(lanes->base.worker_lanes);
    if (lanes->n_idle > IDLE_MAX)
        (void)lanes_close_idle(lanes);
}

void lend_take_back(struct lane *lane, struct lease *last)
{
    struct lanes *lanes = lanes_of(lane);
    if (!end_ownership(lanes, lane)) {
        lane_close(lane);
        return;
    }
    lane->moved_ns = clock_ns();
    lane_see_user(lane);
    lanes_move(lane, LIST_IDLE);
    if (!(lease_holds(last) && last->lane == lane))
        lease_take(last, lane);
    keep_few(lanes);
}

/* RESET is sent at once: other clients may wait for state that Redis keeps for the owner. */
void lend_take_back_as_is(struct lane *lane)
{
    struct lanes *lanes = lanes_of(lane);
    const struct lane_key nobody = {.protocol = 2,
                                    .auth_generation = node_auth_generation(lanes_node(lanes))};
    bool is_done = lane_is_ready(lane) && !lane_is_passthrough(lane) && !lane_is_in_frame(lane) &&
                   calls_is_empty(&lane->calls);
    if (!end_ownership(lanes, lane) || !is_done) {
        lane_close(lane);
        return;
    }
    lanes_move(lane, LIST_OPENING);
    lanes_tick(lanes);
    if (!lane_renew(lane, &nobody, NULL, slice_of("", 0)))
        lane_close(lane);
    else
        keep_few(lanes);
}
