#include "upstream/lane/shared.h"

/* chosen: a lane silent for this time plus four round trips gets no new calls */
#define SLUGGISH_NS (10 * NS_PER_MS)
/* chosen: lanes of a session opened beforehand when a lane takes no more calls */
#define SPARE 2
/* chosen: for this time after a huge value another huge value is likely */
#define WARY_NS (60 * NS_PER_S)
/* chosen: most shared lanes without a lease; the oldest is closed first */
#define UNLEASED_MAX 16

struct lane *shared_find(struct lanes *lanes, const struct lane_key *key)
{
    struct lane *lane = lanes_find(lanes, LIST_SHARED, key);
    return lane != NULL ? lane : lanes_find(lanes, LIST_OPENING, key);
}

/* The lane counts for `lane_user` until the lane closes. */
struct lane *shared_open(struct lanes *lanes, const struct lane_key *key,
                         const struct lane_user *lane_user)
{
    return lanes_open(lanes, key, LANE_SHARED, NULL, lanes_share_of(lane_user));
}

/*
 * Redis may delay the calls of one client (CLIENT PAUSE WRITE ...): other clients must not wait
 * behind these calls.
 */
bool shared_is_sluggish(const struct lane *lane)
{
    return lane_is_ready(lane) && !calls_is_empty(&lane->calls) &&
           link_loop(&lane->link)->now_ns >
               lane->moved_ns + SLUGGISH_NS + 4 * lane->round_trip_ns &&
           !lanes_is_past(lanes_of(lane), &lane->key);
}

static struct lane *take_spare(struct lanes *lanes, const struct lane_key *key)
{
    struct lane *lane = lanes_find(lanes, LIST_SPARE, key);
    if (lane == NULL)
        return NULL;
    lane->use = USE_NEW;
    lane->moved_ns = clock_ns();
    lanes_move(lane, LIST_SHARED);
    lanes_sweep(lanes);
    return lane;
}

struct lane *shared_get(struct lanes *lanes, const struct lane_key *key,
                        const struct lane_user *lane_user)
{
    lanes->why_none = ERR_NONE;
    if (!lanes_are_up(lanes))
        return NULL;
    if (key->login == NULL && (key->auth_generation & AUTH_GENERATION_NEEDS_AUTH) != 0)
        node_doubt(lanes_node(lanes));
    struct lane *lane = shared_find(lanes, key);
    if (lane != NULL && !shared_is_sluggish(lane)) {
        /* a spare lane that gets a client before it is open is no longer spare */
        if (lane->use == USE_SPARE)
            lane->use = USE_NEW;
        return lane;
    }
    struct lane *fresh = take_spare(lanes, key);
    if (fresh == NULL)
        fresh = shared_open(lanes, key, lane_user);
    if (fresh == NULL)
        return lane; /* a slow lane is better than none */
    if (lane != NULL)
        (void)shared_retire(lane);
    return fresh;
}

struct lane *shared_get_apart(struct lanes *lanes, const struct lane_key *key,
                              const struct lane_user *lane_user)
{
    struct lane_key apart = *key;
    apart.is_apart = true;
    bool may_open = !room_is_tight(lanes_room(lanes)) && !lanes_is_past(lanes, &apart);
    if (!may_open && shared_find(lanes, &apart) == NULL)
        return NULL;
    struct lane *lane = shared_get(lanes, &apart, lane_user);
    return lane != NULL && lane_is_ready(lane) ? lane : NULL;
}

static unsigned count_spare(struct lanes *lanes, enum lane_list in, const struct lane_key *key)
{
    unsigned n = 0;
    struct list *list = &lanes->lists[in];
    for (struct list *at = list->next; at != list; at = at->next)
        n += lanes_at(at)->use == USE_SPARE && lane_key_eq(&lanes_at(at)->key, key);
    return n;
}

/* Open spare lanes: the next client then need not wait for a connection. */
static void keep_spares(struct lanes *lanes, const struct lane_key *key)
{
    if (lanes_is_past(lanes, key))
        return;
    unsigned n = count_spare(lanes, LIST_SPARE, key) + count_spare(lanes, LIST_OPENING, key);
    for (; n < SPARE && !room_is_tight(lanes_room(lanes)); n++) {
        struct lane *lane = shared_open(lanes, key, NULL);
        if (lane == NULL)
            return;
        lane->use = USE_SPARE;
    }
}

void shared_be_wary(struct lane *lane)
{
    struct lanes *lanes = lanes_of(lane);
    struct lane_key apart = lane->key;
    apart.is_apart = true;
    lanes->wary_until_ns = lanes_loop(lanes)->now_ns + WARY_NS;
    if (shared_find(lanes, &apart) == NULL)
        keep_spares(lanes, &apart);
}

bool shared_retire(struct lane *lane)
{
    struct lanes *lanes = lanes_of(lane);
    if (lanes_is_past(lanes, &lane->key) || lanes->is_retired)
        return false;
    lane_become(lane, LANE_RETIRED);
    lanes_move(lane, LIST_RETIRED);
    lane_end_leases(lane);
    keep_spares(lanes, &lane->key);
    lanes_tick(lanes);
    return true;
}

void shared_end_retirement(struct lane *lane)
{
    if (lanes_of(lane)->is_retired)
        return; /* timers.c closes the lane */
    lane_become(lane, LANE_READY);
    lane->deadline_ns = 0;
    lane->use = USE_SPARE;
    lane->moved_ns = clock_ns();
    lane_see_user(lane);
    lanes_move(lane, LIST_SPARE);
    lanes_sweep(lanes_of(lane));
}

bool shared_bring_back(struct lanes *lanes, const struct lane_key *key)
{
    struct lane *lane = lanes_find(lanes, LIST_RETIRED, key);
    if (lane != NULL)
        lane_become(lane, LANE_READY);
    else
        lane = lanes_find(lanes, LIST_SPARE, key);
    if (lane == NULL)
        return false;
    lane->use = USE_NEW;
    lanes_move(lane, LIST_SHARED);
    return true;
}

/*
 * A client that changes sessions leaves a lane in each session: at most UNLEASED_MAX lanes without
 * a lease are kept.
 */
void shared_note_unleased(const struct lane *lane)
{
    struct lanes *lanes = lanes_of(lane);
    if (lane->role == LANE_SHARED && !lanes->is_closing && !lanes->is_retired)
        (void)lanes_close_unleased(lanes, UNLEASED_MAX);
}

static bool can_tell(const struct lane *lane, const struct lane *of)
{
    return lane != of && lane->user != NULL && lane->user == of->user && !lane->is_parted &&
           !lane_is_congested(lane);
}

/*
 * Prefers a lane that is not slow. A slow witness is better than none: a client with an expired
 * password cannot log in again.
 */
static struct lane *find(const struct lane *of, const struct auth_proof *proof,
                         const struct login *login)
{
    static const enum lane_list lists[] = {LIST_SHARED, LIST_RETIRED};
    struct lane *sluggish = NULL;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        const struct list *list = &lanes_of(of)->lists[lists[i]];
        for (struct list *at = list->next; at != list; at = at->next) {
            struct lane *lane = lanes_at(at);
            if (!can_tell(lane, of) || !witness_suits_by(&lane->let_in, proof, login))
                continue;
            if (!shared_is_sluggish(lane))
                return lane;
            sluggish = lane;
        }
    }
    return sluggish;
}

bool witness_is_last(const struct lane *lane)
{
    const struct auth_user *user = lane->user;
    if (user == NULL || user->n_proofs == 0 || user->proven[1] == NULL)
        return false;
    const struct list *list = &lanes_of(lane)->lists[LIST_SHARED];
    for (struct list *at = list->next; at != list; at = at->next)
        if (can_tell(lanes_at(at), lane))
            return false;
    return true;
}

bool witness_ask(struct lane *lane, const struct auth_proof *proof, const struct login *login)
{
    if (lane->witness != NULL)
        return true;
    struct lane *witness = find(lane, proof, login);
    if (witness == NULL || !lane_ask(witness, &lane->witness_call))
        return false;
    lane->witness = witness;
    return true;
}

/*
 * End the probes on this witness. If `call` is not NULL, end only the answered probe at position
 * *call.
 */
static void shared_end(struct lane *witness, const uint32_t *call)
{
    const struct lanes *lanes = lanes_of(witness);
    for (int in = LIST_SHARED; in <= LIST_IDLE; in++)
        for (struct list *at = lanes->lists[in].next; at != &lanes->lists[in]; at = at->next) {
            struct lane *lane = lanes_at(at);
            if (lane->witness != witness || (call != NULL && lane->witness_call != *call))
                continue;
            lane->witness = NULL;
            if (call != NULL)
                lane_login_set(&lane->vouched, witness->let_in.by, witness->let_in.number);
            lane_wake_waiting(lane);
        }
}

void witness_answered(struct lane *lane)
{
    shared_end(lane, &lane->calls.head);
}

void witness_lost(struct lane *lane)
{
    shared_end(lane, NULL);
}
