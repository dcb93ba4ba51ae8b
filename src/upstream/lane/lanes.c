#include "upstream/lane/lanes.h"

#include <limits.h>
#include <string.h>

#include "base/log.h"
#include "upstream/lane/lane_open.h"

/* chosen: no retry for this time after Redis has refused weir's own login */
#define LOGIN_AGAIN_NS (500 * NS_PER_MS)
/* chosen: retry interval for a node that is away while clients wait */
#define WAITED_FOR_NS (100 * NS_PER_MS)
/*
 * resolution of deadlines and back-off; the timer runs only while a deadline or back-off is pending
 */
#define TICK_MS 20
#define SWEEP_MS 1000 /* interval of the check for idle lanes */
/* number of sweeps within one upstream-timeout */
#define SWEEP_PARTS 4

/* Wake a client that was granted its share in this iteration, even if the client had yielded. */
static void lanes_wake(struct lane_user *lane_user)
{
    lane_user_resume(lane_user, LANE_USER_HAS_SHARE);
    link_wake_now(lane_user_link(lane_user));
}

static struct fair_queue *fair_queue_for(const struct worker_lanes *worker_lanes,
                                         const struct node *node, const struct lanes *before)
{
    /* a client of a cluster has one number in the queue, which must be valid at all nodes */
    bool is_one = node->upstream->is_cluster;
    if (before != NULL && (is_one || before->base.fair->contention == node->contention))
        return fair_queue_get(before->base.fair);
    return fair_queue_new(node->contention, &worker_lanes->loop->pool, lanes_wake);
}

void lanes_init(struct lanes *lanes, struct worker_lanes *worker_lanes, struct node *node,
                const struct lanes *before, const struct lanes_ops *ops, void *arg)
{
    memset(lanes, 0, sizeof *lanes);
    lanes->base.worker_lanes = worker_lanes;
    lanes->base.node = node_get(node);
    lanes->base.fair = fair_queue_for(worker_lanes, node, before);
    lanes->upstream = node->upstream;
    lanes->keeps_shared = !worker_lanes->is_private;
    lanes->ops = ops;
    lanes->arg = arg;
    auth_users_init(&lanes->base.users, &node->proven);
    for (int in = 0; in < LIST_COUNT; in++)
        list_init(&lanes->lists[in]);
    if (!node_has_address(node)) {
        lanes->down = ERR_UPSTREAM_UNAVAILABLE;
        count_set(&lanes->base.counts.is_down, 1);
    }
}

static void close_all(struct list *list)
{
    while (!list_is_empty(list))
        lane_fail(lanes_at(list->next), END_LOST, "weir stops");
}

void lanes_close(struct lanes *lanes)
{
    lanes->is_closing = true;
    for (int in = 0; in < LIST_COUNT; in++)
        close_all(&lanes->lists[in]);
    for (unsigned i = 0; i < LANES_NO_RESET; i++)
        login_put(lanes->no_reset[i]);
    auth_users_fini(&lanes->base.users);
    node_put(lanes->base.node);
}

void lanes_fini(struct lanes *lanes)
{
    fair_queue_put(lanes->base.fair);
}

/* Retires a shared lane for good: the calls finish, and timers.c then closes the lane. */
static void retire_shared(struct lane *lane)
{
    lane_become(lane, LANE_RETIRED);
    lanes_move(lane, LIST_RETIRED);
    lane_end_leases(lane);
    lane_wake_waiting(lane);
}

/* Closes clients' lanes that are still opening. Clients that wait for a closed lane ask again. */
static void give_up_opening(struct lanes *lanes)
{
    struct list now;
    list_take_all(&now, &lanes->lists[LIST_OPENING]);
    while (!list_is_empty(&now)) {
        struct lane *lane = lanes_at(now.next);
        lanes_move(lane, LIST_OPENING);
        if (lane->role == LANE_SHARED || lane->role == LANE_PRIVATE)
            lane_fail(lane, END_LOST, "its node has been replaced");
    }
}

void lanes_retire(struct lanes *lanes)
{
    lanes->is_retired = true;
    lanes->keeps_shared = false;
    give_up_opening(lanes);
    while (!list_is_empty(&lanes->lists[LIST_SHARED]))
        retire_shared(lanes_at(lanes->lists[LIST_SHARED].next));
    while (!list_is_empty(&lanes->lists[LIST_SPARE]))
        lane_close(lanes_at(lanes->lists[LIST_SPARE].next));
    while (lanes_close_idle(lanes))
        ;
    lanes_tick(lanes);
}

struct lane_key lanes_newcomer(const struct lanes *lanes)
{
    return (struct lane_key){.protocol = 2,
                             .login = worker_lanes_lent(lanes->base.worker_lanes),
                             .auth_generation = node_auth_generation(lanes_node(lanes))};
}

void lanes_tick(struct lanes *lanes)
{
    if (!uv_is_active((uv_handle_t *)&lanes->tick))
        uv_timer_start(&lanes->tick, lanes->on_tick, TICK_MS, TICK_MS);
}

void lanes_sweep(struct lanes *lanes)
{
    if (uv_is_active((uv_handle_t *)&lanes->sweep))
        return;
    uint64_t timeout_ms = lanes->upstream->timeout_ns / NS_PER_MS;
    uint64_t most_ms = upstream_time(lanes->upstream, SWEEP_MS * NS_PER_MS) / NS_PER_MS;
    uint64_t every_ms = timeout_ms > 0 && timeout_ms / SWEEP_PARTS < most_ms
                            ? timeout_ms / SWEEP_PARTS + 1
                            : most_ms;
    uv_timer_start(&lanes->sweep, lanes->on_sweep, every_ms, every_ms);
}

struct lane *lanes_find(struct lanes *lanes, enum lane_list in, const struct lane_key *key)
{
    struct list *list = &lanes->lists[in];
    for (struct list *at = list->next; at != list; at = at->next)
        if (lanes_at(at)->role == LANE_SHARED && lane_key_eq(&lanes_at(at)->key, key))
            return lanes_at(at);
    return NULL;
}

bool lanes_is_taken(const struct lanes *lanes)
{
    const struct list *opening = &lanes->lists[LIST_OPENING];
    for (struct list *at = opening->next; at != opening; at = at->next)
        if (lane_is_taken(lanes_at(at)))
            return true;
    return false;
}

static void note_list(struct lane *lane, enum lane_list in)
{
    struct lanes *lanes = lanes_of(lane);
    count_add(&lanes->base.counts.lists[lane->in], UINT64_MAX); /* minus one */
    count_add(&lanes->base.counts.lists[in], 1);
    lanes->n_idle += (in == LIST_IDLE) - (uint32_t)(lane->in == LIST_IDLE);
    lane->in = (uint8_t)in;
}

void lanes_move(struct lane *lane, enum lane_list in)
{
    list_take(&lane->in_list);
    list_push(&lanes_of(lane)->lists[in], &lane->in_list);
    note_list(lane, in);
}

void lanes_take(struct lane *lane)
{
    list_take(&lane->in_list);
    note_list(lane, LIST_NONE);
}

bool lanes_is_newcomers(const struct lanes *lanes, const struct lane *lane)
{
    const struct lane_key newcomer = lanes_newcomer(lanes);
    return lane->role == LANE_SHARED && lane->use != USE_SPARE &&
           lane_key_eq(&lane->key, &newcomer);
}

bool lanes_is_past(const struct lanes *lanes, const struct lane_key *key)
{
    uint32_t now = node_auth_generation(lanes_node(lanes));
    return key->login == NULL && (now & AUTH_GENERATION_NEEDS_AUTH) != 0 &&
           (key->auth_generation & AUTH_GENERATION_NEEDS_AUTH) == 0;
}

bool lanes_is_shut_out(const struct lane *lane)
{
    return lane->greeting.needs_auth && lanes_is_past(lanes_of(lane), &lane->key);
}

bool lanes_is_expendable(const struct lanes *lanes, const struct lane *lane)
{
    if (lane->role != LANE_SHARED || lanes_is_newcomers(lanes, lane) ||
        !calls_is_empty(&lane->calls) || !list_is_empty(&lane->waiting))
        return false;
    return !lanes_is_past(lanes, &lane->key) ||
           !lanes->ops->has_auth_generation(lanes->arg, lanes_node(lanes),
                                            lane->key.auth_generation);
}

bool lanes_close_idle(struct lanes *lanes)
{
    struct list *idle = &lanes->lists[LIST_IDLE];
    struct list *at = idle->next;
    while (at != idle && auth_user_needs_it(lanes_at(at)->user))
        at = at->next;
    if (lanes->n_idle == 0)
        return false;
    lane_close(lanes_at(at != idle ? at : idle->next));
    return true;
}

/* True if closing the lane loses nothing. */
static bool is_unleased(const struct lanes *lanes, const struct lane *lane)
{
    return lane->n_leases == 0 && lanes_is_expendable(lanes, lane);
}

bool lanes_close_unleased(struct lanes *lanes, unsigned most)
{
    unsigned n = 0;
    struct lane *oldest = NULL;
    struct lane *needed = NULL;
    struct list *shared = &lanes->lists[LIST_SHARED];
    for (struct list *at = shared->next; at != shared; at = at->next) {
        struct lane *lane = lanes_at(at);
        if (!is_unleased(lanes, lane))
            continue;
        if (auth_user_needs_it(lane->user)) {
            needed = lane;
            continue;
        }
        n++;
        if (oldest == NULL || lane->moved_ns < oldest->moved_ns)
            oldest = lane;
    }
    if (oldest == NULL && most == 0)
        oldest = needed; /* the auth proofs of the user's clients end */
    if (oldest == NULL || (n <= most && most > 0))
        return false;
    lane_close(oldest);
    return true;
}

bool lanes_are_up(const struct lanes *lanes)
{
    if (node_is_barred(lanes_node(lanes)) || !node_has_address(lanes_node(lanes)) ||
        lanes->is_retired)
        return false;
    /* Without a shared lane as a probe, the first request after the back-off is the probe. */
    return lanes->down == ERR_NONE || (!lanes->keeps_shared && clock_ns() >= lanes->backoff.due_ns);
}

bool lanes_are_starved(const struct lanes *lanes)
{
    return clock_ns() < lanes->starved.due_ns;
}

enum err lanes_why_away(const struct lanes *lanes)
{
    return lanes->down != ERR_NONE ? lanes->down : ERR_UPSTREAM_UNAVAILABLE;
}

enum err lanes_why_none(const struct lanes *lanes)
{
    bool is_full = lanes->down == ERR_NONE && lanes->why_none != ERR_NONE;
    return is_full ? lanes->why_none : lanes_why_away(lanes);
}

void lanes_hurry(struct lanes *lanes)
{
    uint64_t soon_ns = clock_ns() + WAITED_FOR_NS;
    if (lanes->backoff.due_ns > soon_ns)
        lanes->backoff.due_ns = soon_ns;
    lanes_tick(lanes);
}

void lanes_go_down(struct lanes *lanes, enum err why)
{
    bool is_news = lanes->down != why;
    lanes->down = why;
    count_set(&lanes->base.counts.is_down, 1);
    uint64_t now_ns = clock_ns();
    if (why == ERR_UPSTREAM_UNAVAILABLE)
        atomic_store_explicit(&lanes->upstream->away_ns, now_ns, memory_order_relaxed);
    backoff_fail(&lanes->backoff, now_ns);
    lanes_tick(lanes);
    /* A new reason may change how long clients wait. */
    if (lanes->ops->on_chance(lanes->arg, is_news ? UINT_MAX : 0))
        lanes_hurry(lanes);
}

void lanes_wake_soon(struct lanes *lanes, struct lane_user *lane_user)
{
    worker_lanes_wake_soon(lanes->base.worker_lanes, lane_user);
    lanes_tick(lanes);
}

bool lanes_wait_to_dial(struct lanes *lanes, struct lane_user *lane_user)
{
    if (lanes->down != ERR_NONE || lanes->why_none != ERR_UPSTREAM_DIALS)
        return false;
    lanes_wake_soon(lanes, lane_user);
    return true;
}

bool lanes_may_retry(struct lanes *lanes, struct lane_user *lane_user)
{
    if (lanes->why_none != ERR_UPSTREAM_BUSY)
        return false;
    worker_lanes_retry(lanes->base.worker_lanes, lane_user);
    upstream_shed(lanes->upstream);
    lanes_tick(lanes);
    return true;
}

bool lanes_may_log_in(const struct lanes *lanes)
{
    return lanes->login_refused_ns == 0 || clock_ns() >= lanes->login_refused_ns + LOGIN_AGAIN_NS;
}

static bool is_refused(const struct lanes *lanes, const struct lane_key *key)
{
    return key->login != NULL && key->login->is_weirs && !lanes_may_log_in(lanes);
}

/*
 * Called when other workers have all permitted connections. Without a connection this worker cannot
 * notice that Redis is back. The node therefore counts as up, and clients get ERR_UPSTREAM_BUSY.
 */
static void find_full(struct lanes *lanes)
{
    lanes->why_none = ERR_UPSTREAM_BUSY;
    if (lanes->down == ERR_NONE ||
        atomic_load_explicit(&lanes_node(lanes)->is_told_away, memory_order_relaxed))
        return;
    lanes->down = ERR_NONE;
    lanes->missed_ns = 0;
    count_set(&lanes->base.counts.is_down, 0);
}

/*
 * Make room for one more connection of clients: idle lanes and lanes without a lease are closed
 * first.
 */
static bool lanes_make_room(struct lanes *lanes)
{
    while (!room_open(lanes_room(lanes)))
        if (!lanes_close_idle(lanes) && !lanes_close_unleased(lanes, 0)) {
            find_full(lanes);
            return false;
        }
    return true;
}

/*
 * Each attempt costs a useless system call: during the back-off requests are answered without a
 * system call.
 */
static void cannot_open(struct lanes *lanes, int error)
{
    count_add(&lanes->base.counts.lost[LOSS_SYSTEM], 1);
    backoff_fail(&lanes->starved, clock_ns());
    log_at(LOG_SITE_DESCRIPTORS, LOG_WARN, "upstream %s: cannot open a connection: %s",
           lanes_node(lanes)->text, uv_strerror(error));
    const struct lane_key newcomer = lanes_newcomer(lanes);
    if (lanes->keeps_shared && lanes->down == ERR_NONE &&
        list_is_empty(&lanes->lists[LIST_SHARED]) &&
        lanes_find(lanes, LIST_OPENING, &newcomer) == NULL)
        lanes_go_down(lanes, ERR_UPSTREAM_UNAVAILABLE);
}

static bool may_open(const struct lanes *lanes, const struct lane_key *key)
{
    return !lanes_are_starved(lanes) && !is_refused(lanes, key);
}

static struct lane *lanes_open_now(struct lanes *lanes, const struct lane_key *key,
                                   enum lane_role role, struct lane_user *lane_user)
{
    int error;
    struct lane *lane = lane_open(&lanes->base, key, role, lane_user, &error);
    if (lane == NULL) {
        cannot_open(lanes, error);
        return NULL;
    }
    backoff_reset(&lanes->starved);
    lane->deadline_ns = clock_ns() + lanes->upstream->connect_timeout_ns;
    lanes_move(lane, LIST_OPENING);
    count_add(&lanes->base.counts.opened, 1);
    lanes_tick(lanes);
    return lane;
}

/*
 * Applies upstream-dial-rate: returning clients are let in as fast as Redis accepts connections.
 * Shared lanes skip the rate: shared lanes are few, and many clients wait for each.
 */
static bool may_dial(struct lanes *lanes, enum lane_role role)
{
    struct upstream *upstream = lanes->upstream;
    if (role == LANE_SHARED || upstream->dial_rate.count == 0 ||
        funnel_take(&upstream->dials, &upstream->dial_rate, clock_ns(), 1) == 0)
        return true;
    lanes->why_none = ERR_UPSTREAM_DIALS;
    return false;
}

/* Room is reserved before the connection exists. */
static struct lane *open_in_room(struct lanes *lanes, const struct lane_key *key,
                                 enum lane_role role, struct lane_user *lane_user)
{
    if (!may_open(lanes, key) || !lanes_make_room(lanes))
        return NULL;
    struct lane *lane = may_dial(lanes, role) ? lanes_open_now(lanes, key, role, lane_user) : NULL;
    if (lane == NULL)
        room_close(lanes_room(lanes));
    return lane;
}

struct room_share lanes_share_of(const struct lane_user *lane_user)
{
    return lane_user != NULL && lane_user->ops->share != NULL ? lane_user->ops->share(lane_user)
                                                              : (struct room_share){0};
}

/* False if the subject or the address of the share is at its bound. */
bool lanes_use(struct lanes *lanes, struct room_share share)
{
    if (room_use(lanes_room(lanes), share))
        return true;
    lanes->why_none = ERR_UPSTREAM_BUSY;
    return false;
}

struct lane *lanes_open(struct lanes *lanes, const struct lane_key *key, enum lane_role role,
                        struct lane_user *owner, struct room_share share)
{
    if (!lanes_use(lanes, share))
        return NULL;
    struct lane *lane = open_in_room(lanes, key, role, owner);
    if (lane == NULL)
        room_give_back(lanes_room(lanes), share);
    else
        lane->share = share;
    return lane;
}

/*
 * Opens a lane of weir's own, of role LANE_SCRIPT or LANE_AUTH, which becomes ready later. NULL: no
 * lane may be opened now.
 */
static struct lane *lanes_open_for_weir(struct lanes *lanes, const struct lane_key *key,
                                        enum lane_role role, struct lane_user *lane_user)
{
    return lanes_are_up(lanes) && may_open(lanes, key) ? lanes_open_now(lanes, key, role, lane_user)
                                                       : NULL;
}

void weir_lane_init(struct weir_lane *base, struct lanes *lanes,
                    const struct lane_user_ops *lane_user_ops, const struct link_ops *link_ops)
{
    base->lanes = lanes;
    base->lane_user.ops = lane_user_ops;
    list_init(&base->lane_user.waiting);
    link_init_hollow(&base->hollow, lanes_loop(lanes), link_ops);
}

bool weir_lane_open(struct weir_lane *base, struct login *login, enum lane_role role)
{
    const struct lane_key key = {.protocol = 2,
                                 .login = login,
                                 .auth_generation = node_auth_generation(lanes_node(base->lanes))};
    base->is_open = lanes_open_for_weir(base->lanes, &key, role, &base->lane_user) != NULL;
    return base->is_open;
}

void weir_lane_lost(struct weir_lane *base)
{
    base->is_open = false;
    base->lane_user.lane = NULL;
    base->lane_user.in_flight = 0;
}

void weir_lane_close(struct weir_lane *base)
{
    list_take(&base->lane_user.waiting);
    if (base->lane_user.lane != NULL)
        lane_forget(base->lane_user.lane, &base->lane_user);
    weir_lane_lost(base);
}

void weir_lane_fini(struct weir_lane *base)
{
    weir_lane_close(base);
    list_take(&base->hollow.woken);
}
