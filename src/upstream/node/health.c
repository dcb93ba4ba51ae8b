#include "upstream/node/health.h"

#include <limits.h>

#include "base/log.h"
#include "upstream/lane/lend.h"
#include "upstream/lane/shared.h"

/* chosen: delay until weir's newest password is tried again after a refusal */
#define NEWEST_AGAIN_NS (10 * NS_PER_S)
/* chosen: an unused lane that breaks sooner counts as not opened */
#define FRESH_NS NS_PER_S
/* chosen: how long calls may wait behind a reply that its reader does not read */
#define STALL_NS (1 * NS_PER_S)
/*
 * chosen: this many connections closed during the greeting mean that Redis is away; a few may be
 * connections of a deleted user
 */
#define SHUT_MAX 8
/* chosen: least time between lanes that are opened to ask for a node's role */
#define ASK_NS NS_PER_S
/* chosen: as ASK_NS, for a node that is known to be a replica */
#define ASK_REPLICA_NS (30 * NS_PER_S)
/*
 * chosen: connections closed by Redis in a second, or until a lane is ready, before Redis counts as
 * away
 */
#define AGAIN_MAX 40

static bool is_clients(enum lane_role role)
{
    return role == LANE_SHARED || role == LANE_PRIVATE;
}

/* ---- lanes become ready ---- */

/* upstream-timeout bounds the first answers, too: CLIENT PAUSE may delay these answers. */
static void on_greeting(struct lane *lane)
{
    const struct upstream *upstream = lanes_of(lane)->upstream;
    uint64_t timeout_ns =
        lane->use == USE_AGAIN ? upstream_time(upstream, LANES_CLEAN_NS) : upstream->timeout_ns;
    lane->greeted_ns = clock_ns();
    lane->deadline_ns = timeout_ns > 0 ? lane->greeted_ns + timeout_ns : 0;
}

static enum lane_list list_when_ready(const struct lane *lane)
{
    static const enum lane_list lists[] = {
        [LANE_SHARED] = LIST_SHARED,
        [LANE_PRIVATE] = LIST_PRIVATE,
        [LANE_SCRIPT] = LIST_SCRIPT,
        [LANE_AUTH] = LIST_AUTH_LANE,
    };
    if (lane->role == LANE_PRIVATE && lane->owner == NULL)
        return LIST_IDLE;
    return lane->use == USE_SPARE ? LIST_SPARE : lists[lane->role];
}

/*
 * True if the new lane must close. A password was set while the lane was opened, so clients of the
 * lane's session would get NOAUTH. An older lane of the session, if any, is used again.
 */
static bool must_make_way(struct lane *lane)
{
    if (lane->role != LANE_SHARED || !lanes_is_shut_out(lane))
        return false;
    return lane->use == USE_SPARE || lane->key.is_apart ||
           shared_bring_back(lanes_of(lane), &lane->key);
}

static void accept_own_login(struct lanes *lanes)
{
    own_login_accept(&lanes->base.worker_lanes->own);
    node_note_login(lanes_node(lanes), true);
}

/* The node accepts connections: end the outage. */
static void come_up(struct lanes *lanes)
{
    if (atomic_load_explicit(&lanes_node(lanes)->is_told_away, memory_order_relaxed) &&
        atomic_exchange_explicit(&lanes_node(lanes)->is_told_away, false, memory_order_relaxed))
        log_at(LOG_SITE_UPSTREAM_BACK, LOG_INFO, "upstream %s is back", lanes_node(lanes)->text);
    lanes->down = ERR_NONE;
    lanes->is_turned_away = false;
    count_set(&lanes->base.counts.is_down, 0);
    lanes->missed_ns = 0;
    backoff_reset(&lanes->backoff);
    (void)lanes->ops->on_chance(lanes->arg, UINT_MAX);
}

static void on_ready(struct lane *lane)
{
    struct lanes *lanes = lanes_of(lane);
    lane->deadline_ns = 0;
    lane->ready_ns = lane->moved_ns = clock_ns();
    lane->round_trip_ns = lane->ready_ns - lane->greeted_ns;
    lane_enter_user(lane);
    if (lane->let_in.by != NULL)
        lane_end_leases(lane); /* proofs may have ended while the lane was opened */
    lanes_move(lane, list_when_ready(lane));
    if (lane->in == LIST_PRIVATE && !lanes->keeps_shared)
        lend_list(lane); /* HELLO has told the owner the lane's id */
    lanes_sweep(lanes);
    if (lane->key.login != NULL && lane->key.login->is_weirs)
        accept_own_login(lanes);
    if (lane->key.login == NULL && lane->use != USE_AGAIN)
        node_note_auth(lanes_node(lanes), lane->greeting.needs_auth);
    lanes->is_garbled = false;
    lanes->n_shut = 0;
    lanes->has_let_in = true;
    come_up(lanes);
    if (must_make_way(lane))
        lane_close(lane);
}

/* ---- lanes fail ---- */

/* True if the lane broke before any use. An immediate retry could loop for ever. */
static bool broke_at_once(const struct lane *lane)
{
    return !lane_is_used(lane) && clock_ns() - lane->ready_ns < FRESH_NS;
}

static void health_log_closed(const struct lanes *lanes, const struct lane *lane, const char *why)
{
    static const char *const names[] = {[LANE_SHARED] = "shared",
                                        [LANE_PRIVATE] = "private",
                                        [LANE_SCRIPT] = "script",
                                        [LANE_AUTH] = "login"};
    log_at(LOG_SITE_UPSTREAM_CLOSED, LOG_WARN, "upstream %s: a %s connection is closed: %s",
           lanes_node(lanes)->text, names[lane->role], why);
}

/* True if a client may need a lane of this key. */
static bool has_clients(const struct lanes *lanes, const struct lane_key *key)
{
    if (key->login == NULL || key->login->is_weirs)
        return true;
    const struct auth_user *user = auth_users_find(&lanes->base.users, login_user(key->login));
    return user != NULL && user->n_proofs > 0;
}

static void lose_ready(struct lanes *lanes, const struct lane *lane, const char *why)
{
    health_log_closed(lanes, lane, why);
    if (lanes->is_retired)
        return;
    if (lane->role != LANE_SHARED || lane->use == USE_SPARE ||
        shared_find(lanes, &lane->key) != NULL)
        return;
    /*
     * The lane is reopened at once, because the proofs of its user need a connection. A second
     * early break is not retried.
     */
    if ((lane->use == USE_RETRY && broke_at_once(lane)) || !has_clients(lanes, &lane->key))
        return;
    struct lane *again = shared_open(lanes, &lane->key, NULL);
    if (again != NULL)
        again->use = USE_RETRY;
}

/*
 * True if the failure concerns this lane alone. Redis has accepted the connection, and fewer than
 * SHUT_MAX connections were closed during their greeting. Or Redis has sent bytes that are no RESP,
 * for the first time.
 */
static bool is_its_own_affair(const struct lanes *lanes, const struct lane *lane)
{
    bool is_shut = lane->greeted_ns != 0 && lanes->n_shut < SHUT_MAX;
    return (lane->end != END_LATE && (is_shut || lane->ready_ns != 0)) ||
           (lane->end == END_NONSENSE && !lanes->is_garbled);
}

/*
 * True if the lane can be retried at once. Redis accepted and closed the connection: Redis received
 * CLIENT KILL, or is about to stop. Back-off begins with the next failures.
 */
static bool may_try_again(struct lanes *lanes, const struct lane *lane)
{
    if (!is_clients((enum lane_role)lane->role) || lane->greeted_ns == 0 || lane->end != END_LOST)
        return false;
    uint64_t now_ns = clock_ns();
    if (lanes->has_let_in && now_ns - lanes->again_ns > NS_PER_S) {
        lanes->again_ns = now_ns;
        lanes->n_again = 0;
        lanes->has_let_in = false;
    }
    return lanes->down == ERR_NONE && lanes->n_again++ < AGAIN_MAX;
}

/* Waiting clients ask for another lane. A lane for newcomers is opened here. */
static void try_again(struct lanes *lanes, const struct lane *lane, const char *why)
{
    health_log_closed(lanes, lane, why);
    if (!lanes_is_newcomers(lanes, lane) || !lanes->keeps_shared ||
        shared_find(lanes, &lane->key) != NULL)
        return;
    struct lane *again = shared_open(lanes, &lane->key, NULL);
    if (again != NULL)
        again->use = USE_RETRY;
}

/*
 * True if lane users that wait for the lane should look again: another password of the lane's user
 * is left.
 */
static bool lose_login(struct lanes *lanes, const struct lane *lane)
{
    struct auth_user *user = auth_users_find(&lanes->base.users, login_user(lane->key.login));
    log_at(LOG_SITE_UPSTREAM_LOGIN, LOG_WARN,
           "upstream %s no longer accepts a password that clients logged in with",
           lanes_node(lanes)->text);
    if (user != NULL && auth_user_refuse(user, lane->key.login))
        return true;
    if (user != NULL)
        lanes->ops->on_user_refused(lanes->arg, user);
    return false;
}

/* Like lose_login, for weir's own login. */
static bool lose_own_login(struct lanes *lanes, const struct lane *lane)
{
    uint64_t again_ns = upstream_time(lanes->upstream, NEWEST_AGAIN_NS);
    upstream_note_refusal(lanes->upstream);
    if (own_login_refuse(&lanes->base.worker_lanes->own, lane->key.login, clock_ns(), again_ns)) {
        log_at(
            LOG_SITE_UPSTREAM_LOGIN, LOG_WARN,
            "upstream %s rejects one of the last two passwords of upstream-password-file: weir tries the other one",
            lanes_node(lanes)->text);
        return true;
    }
    log_at(LOG_SITE_UPSTREAM_LOGIN, LOG_WARN,
           "upstream %s rejects %s: weir opens no more connections with this login",
           lanes_node(lanes)->text, node_login_keys(lanes_node(lanes)));
    node_note_login(lanes_node(lanes), false);
    lanes->login_refused_ns = clock_ns();
    return false;
}

static void lose_opening(struct lanes *lanes, const struct lane *lane, const char *why)
{
    /*
     * Redis may refuse one more connection while earlier connections stay: only the client of the
     * refused connection is affected.
     */
    if (lane->end == END_REFUSED)
        return;
    if (!lanes_is_newcomers(lanes, lane) &&
        (!list_is_empty(&lanes->lists[LIST_SHARED]) || is_its_own_affair(lanes, lane))) {
        lanes->is_garbled |= lane->end == END_NONSENSE;
        lanes->n_shut += lane->greeted_ns != 0;
        log_at(LOG_SITE_UPSTREAM_OPEN, LOG_WARN, "upstream %s: cannot open another connection: %s",
               lanes_node(lanes)->text, why);
        return;
    }
    if (lanes->down == ERR_NONE &&
        !atomic_exchange_explicit(&lanes_node(lanes)->is_told_away, true, memory_order_relaxed))
        log_at(LOG_SITE_UPSTREAM_AWAY, LOG_WARN, "upstream %s is away: %s", lanes_node(lanes)->text,
               why);
    lanes->is_turned_away = lane->end == END_TURNED_AWAY;
    lanes_go_down(lanes, lane->end == END_LATE ? ERR_UPSTREAM_TIMEOUT : ERR_UPSTREAM_UNAVAILABLE);
}

static enum lane_loss loss_of(const struct lane *lane, bool was_ready)
{
    static const enum lane_loss losses[] = {
        [END_LOST] = LOSS_CONNECT,      [END_TURNED_AWAY] = LOSS_CONNECT, [END_LATE] = LOSS_TIMEOUT,
        [END_NONSENSE] = LOSS_PROTOCOL, [END_LOGIN_REFUSED] = LOSS_AUTH,  [END_REFUSED] = LOSS_AUTH,
        [END_NO_RESET] = LOSS_UNCLEAN,  [END_UNCLEAN] = LOSS_UNCLEAN,
    };
    if (lane->use == USE_AGAIN && !was_ready)
        return LOSS_UNCLEAN;
    return was_ready && lane->end == END_LOST ? LOSS_CLOSED : losses[lane->end];
}

/* Remembers the user of the last session: the user of the next session is not at fault. */
static void remember_no_reset(struct lanes *lanes, const struct lane *lane)
{
    struct login **oldest = &lanes->no_reset[lanes->next_no_reset++ % LANES_NO_RESET];
    login_put(*oldest);
    *oldest = login_get(lane->last_login);
}

/*
 * Another connection replaces the lane: only the counters and the log note the failure of the lane.
 */
static void lose_lent(struct lanes *lanes, const struct lane *lane, const char *why)
{
    if (lane->end == END_NO_RESET)
        remember_no_reset(lanes, lane);
    log_at(LOG_SITE_UPSTREAM_CLOSED, LOG_WARN, "upstream %s: a used connection is closed: %s",
           lanes_node(lanes)->text, why);
}

/* Records the start of the first failed dial: clients wait for a connection since that time. */
static void note_missed(struct lanes *lanes, const struct lane *lane)
{
    uint64_t began_ns = lane->greeted_ns != 0
                            ? lane->greeted_ns
                            : lane->deadline_ns - lanes->upstream->connect_timeout_ns;
    if (lanes->missed_ns == 0)
        lanes->missed_ns = began_ns;
}

static bool health_on_failed(struct lane *lane, bool was_ready, const char *why)
{
    struct lanes *lanes = lanes_of(lane);
    if (!was_ready && lane->end == END_LOST)
        note_missed(lanes, lane);
    bool is_idle = lane->role == LANE_PRIVATE && lane->owner == NULL;
    lanes->base.worker_lanes->n_broken += was_ready;
    if (was_ready)
        reach_doubt(&lanes_node(lanes)->reach);
    if (lanes->is_closing || is_idle || lane->use == USE_SPARE)
        return was_ready;
    /* the lane is given up, and other lanes are opened to the node that replaces this node */
    if (lanes->is_retired && !was_ready)
        return is_clients((enum lane_role)lane->role);
    count_add(&lanes->base.counts.lost[loss_of(lane, was_ready)], 1);
    if (lane->end == END_LOST || lane->end == END_LATE || lane->end == END_TURNED_AWAY)
        node_ask(lanes_node(lanes));
    bool is_storm =
        lanes_is_newcomers(lanes, lane) && lane->use == USE_RETRY && broke_at_once(lane);
    if (lane->use == USE_AGAIN && !was_ready) {
        lose_lent(lanes, lane, why);
        if (lane->end == END_LOGIN_REFUSED && lane->key.login->is_weirs)
            (void)lose_own_login(lanes, lane);
    } else if (was_ready && !is_storm) {
        lose_ready(lanes, lane, why);
    } else if (lane->end == END_LOGIN_REFUSED) {
        bool has_other =
            lane->key.login->is_weirs ? lose_own_login(lanes, lane) : lose_login(lanes, lane);
        return has_other && is_clients((enum lane_role)lane->role);
    } else if (may_try_again(lanes, lane)) {
        try_again(lanes, lane, why);
        return true;
    } else {
        lose_opening(lanes, lane, why);
    }
    return was_ready;
}

/*
 * Ends the auth proofs of the lane's user: clients of the user must log in again before their next
 * request, on any lane.
 */
static void health_kick(struct lane *lane)
{
    struct lanes *lanes = lanes_of(lane);
    struct list *shared = &lanes->lists[LIST_SHARED];
    for (struct list *at = shared->next; at != shared; at = at->next)
        if (lanes_at(at)->user == lane->user)
            lane_end_leases(lanes_at(at));
    lane_leave_user(lane, true);
}

static void health_on_closed(struct lane *lane)
{
    struct room *room = lanes_room(lanes_of(lane));
    lanes_take(lane);
    witness_lost(lane);
    if (lane->user != NULL && lane->end == END_LOST)
        health_kick(lane);
    else
        lane_leave_user(lane, false);
    if (lane->role == LANE_PRIVATE && lane->owner != NULL)
        lend_end_use(lane);
    if (lane->role == LANE_SHARED)
        room_give_back(room, lane->share);
    if (is_clients((enum lane_role)lane->role))
        room_close(room);
}

/* ---- other callbacks of a lane ---- */

static void on_huge(struct lane *lane)
{
    if (lane->in != LIST_SHARED)
        return;
    shared_be_wary(lane);
    (void)shared_retire(lane);
}

static void on_stalled(struct lane *lane)
{
    lanes_sweep(lanes_of(lane));
    /*
     * Successive slow readers share one deadline, because the calls behind wait for all of these
     * readers.
     */
    if (lane->deadline_ns == 0)
        lane->deadline_ns = clock_ns() + STALL_NS;
    if (lane->in == LIST_SHARED && !shared_retire(lane))
        lanes_tick(lanes_of(lane));
}

static void on_watched(struct lane *lane)
{
    lanes_sweep(lanes_of(lane));
}

/*
 * If weir may not ask for the role itself, open a lane with this client's login: the greeting of
 * that lane asks.
 */
static void on_doubted(struct lane *lane)
{
    struct lanes *lanes = lanes_of(lane);
    struct node *node = lanes_node(lanes);
    uint64_t every_ns =
        upstream_time(lanes->upstream, node_role(node) == ROLE_REPLICA ? ASK_REPLICA_NS : ASK_NS);
    uint64_t now_ns = lanes_loop(lanes)->now_ns;
    node_ask(node);
    if (!atomic_load_explicit(&node->asks_lanes, memory_order_relaxed) || lane->key.login == NULL ||
        lanes->is_retired || (lanes->doubted_ns != 0 && now_ns < lanes->doubted_ns + every_ns))
        return;
    lanes->doubted_ns = now_ns;
    struct lane_key key = lane->key;
    key.database = 0;
    struct lane *asker = shared_open(lanes, &key, NULL);
    if (asker != NULL)
        asker->use = USE_SPARE;
}

static void on_empty(struct lane_base *base)
{
    struct lanes *lanes = container_of(base, struct lanes, base);
    if (lanes->on_unused != NULL)
        lanes->on_unused(lanes);
}

const struct lane_ops health_ops = {
    .on_greeting = on_greeting,
    .on_ready = on_ready,
    .on_failed = health_on_failed,
    .on_closed = health_on_closed,
    .on_huge = on_huge,
    .on_stalled = on_stalled,
    .on_emptied = shared_end_retirement,
    .on_unleased = shared_note_unleased,
    .on_watched = on_watched,
    .on_vouched = witness_answered,
    .on_doubted = on_doubted,
    .on_empty = on_empty,
};

/* ---- retries ---- */

void health_start(struct lanes *lanes)
{
    const struct lane_key newcomer = lanes_newcomer(lanes);
    if (lanes->keeps_shared && node_has_address(lanes_node(lanes)))
        (void)shared_open(lanes, &newcomer, NULL);
}

/*
 * Without a shared lane as a probe, one waiting client opens a lane. If no client waits, weir's own
 * connection decides. False: the node is up.
 */
static bool find_probe(struct lanes *lanes, bool is_due)
{
    bool may_wake = is_due && lanes->down != ERR_NONE && list_is_empty(&lanes->lists[LIST_OPENING]);
    if (!lanes->ops->on_chance(lanes->arg, may_wake ? 1 : 0) && may_wake &&
        node_answers(lanes_node(lanes)))
        come_up(lanes);
    return lanes->down != ERR_NONE;
}

bool health_retry(struct lanes *lanes, uint64_t now_ns)
{
    const struct lane_key newcomer = lanes_newcomer(lanes);
    bool is_due = lanes->backoff.due_ns != 0 && now_ns >= lanes->backoff.due_ns;
    if (is_due && lanes->keeps_shared && lanes_find(lanes, LIST_OPENING, &newcomer) == NULL) {
        lanes->backoff.due_ns = 0;
        if (shared_open(lanes, &newcomer, NULL) == NULL)
            backoff_fail(&lanes->backoff, now_ns);
    }
    if (!lanes->keeps_shared)
        return find_probe(lanes, is_due);
    return lanes->backoff.due_ns != 0;
}
