#include "upstream/lanes.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "upstream/lend.h"
#include "upstream/timers.h"

#define FRESH_NS NS_PER_S /* a lane that breaks sooner, and was never used, counts as not opened */

static struct lane *find(struct lanes *lanes, enum lane_list in, const struct lane_key *key)
{
    struct list *list = &lanes->lists[in];
    for (struct list *at = list->next; at != list; at = at->next)
        if (lanes_at(at)->role == LANE_SHARED && lane_key_eq(&lanes_at(at)->key, key))
            return lanes_at(at);
    return NULL;
}

struct lane_key lanes_newcomer(const struct lanes *lanes)
{
    return (struct lane_key){.protocol = 2, .login = lanes_lent(lanes), .epoch = node_epoch(lanes->node)};
}

/* Redis has just refused weir's own login, and would again. */
static bool is_refused(const struct lanes *lanes, const struct lane_key *key)
{
    return key->login != NULL && key->login->is_weirs && lanes->login_refused_ns != 0 &&
           clock_ns() < lanes->login_refused_ns + LANES_LOGIN_AGAIN_NS;
}

uint64_t lanes_time(const struct lanes *lanes, uint64_t ns)
{
    return lanes->upstream->hurry > 0 ? ns / lanes->upstream->hurry : ns;
}

static void note_list(struct lane *lane, enum lane_list in)
{
    struct lanes *lanes = lane->lanes;
    count_add(&lanes->counts.lists[lane->in], UINT64_MAX); /* one less */
    count_add(&lanes->counts.lists[in], 1);
    lanes->n_idle += (in == LIST_IDLE) - (uint32_t)(lane->in == LIST_IDLE);
    lane->in = (uint8_t)in;
}

void lanes_move(struct lane *lane, enum lane_list in)
{
    list_take(&lane->in_list);
    list_push(&lane->lanes->lists[in], &lane->in_list);
    note_list(lane, in);
}

void lanes_take(struct lane *lane)
{
    struct upstream *upstream = lane->lanes->upstream;
    list_take(&lane->in_list);
    note_list(lane, LIST_NONE);
    if (lane->role == LANE_PRIVATE && lane->owner != NULL)
        lend_end_use(lane);
    if (lane->role == LANE_SHARED)
        room_give_back(&upstream->room, lane->share);
    if (lane->role == LANE_SHARED || lane->role == LANE_PRIVATE)
        room_close(&upstream->room);
}

/* Nobody is served until a lane could be opened again, which is tried in the background. */
static void go_down(struct lanes *lanes, enum err why)
{
    lanes->down = why;
    count_set(&lanes->counts.is_down, 1);
    backoff_fail(&lanes->backoff, clock_ns());
    timers_tick(lanes);
}

/* Each attempt is a system call that helps nobody: whoever asks again soon is told so without one. */
static void cannot_open(struct lanes *lanes, int error)
{
    count_add(&lanes->counts.lost[LOSS_SYSTEM], 1);
    backoff_fail(&lanes->starved, clock_ns());
    log_at(LOG_SITE_DESCRIPTORS, LOG_WARN, "upstream %s: cannot open a connection: %s", lanes->node->text,
           uv_strerror(error));
    const struct lane_key newcomer = lanes_newcomer(lanes);
    if (lanes->keeps_shared && lanes->down == ERR_NONE && list_is_empty(&lanes->lists[LIST_SHARED]) &&
        find(lanes, LIST_OPENING, &newcomer) == NULL)
        go_down(lanes, ERR_UPSTREAM_UNAVAILABLE);
}

bool lanes_may_hope(struct lanes *lanes, struct rider *rider)
{
    if (lanes->why_none != ERR_UPSTREAM_BUSY)
        return false;
    if (room_is_full(&lanes->upstream->room)) {
        room_want(&lanes->upstream->room);
        rider->is_wanting = true;
    }
    upstream_shed(lanes->upstream);
    list_take(&rider->waiting);
    list_push(&lanes->hoping, &rider->waiting);
    timers_tick(lanes);
    return true;
}

bool lanes_wake_hoping(struct lanes *lanes)
{
    if (list_is_empty(&lanes->hoping))
        return false;
    struct rider *rider = container_of(lanes->hoping.next, struct rider, waiting);
    list_take(&rider->waiting);
    if (rider->is_wanting)
        room_unwant(&lanes->upstream->room);
    rider->is_wanting = false;
    link_wake(rider_link(rider));
    return true;
}

/* Room for one more of clients' own: what is kept without use goes first. */
static bool make_room(struct lanes *lanes)
{
    while (!room_open(&lanes->upstream->room))
        if (!lend_close_one(lanes) && !lanes_close_unleased(lanes, 0)) {
            lanes->why_none = ERR_UPSTREAM_BUSY;
            return false;
        }
    return true;
}

static bool is_clients(enum lane_role role)
{
    return role == LANE_SHARED || role == LANE_PRIVATE;
}

struct lane *lanes_open(struct lanes *lanes, const struct lane_key *key, enum lane_role role, struct rider *rider)
{
    int error;
    if (clock_ns() < lanes->starved.due_ns || is_refused(lanes, key))
        return NULL;
    if (is_clients(role) && !make_room(lanes))
        return NULL;
    struct lane *lane = lane_open(lanes, key, role, rider, &error);
    if (lane == NULL) {
        if (is_clients(role))
            room_close(&lanes->upstream->room);
        cannot_open(lanes, error);
        return NULL;
    }
    backoff_reset(&lanes->starved);
    lane->deadline_ns = clock_ns() + lanes->upstream->connect_timeout_ns;
    lanes_move(lane, LIST_OPENING);
    count_add(&lanes->counts.opened, 1);
    timers_tick(lanes);
    return lane;
}

static struct room_share share_of(const struct rider *rider)
{
    return rider != NULL && rider->ops->share != NULL ? rider->ops->share(rider) : (struct room_share){0};
}

/* A shared lane counts for whom it was opened, for as long as it is there. */
static struct lane *open_shared(struct lanes *lanes, const struct lane_key *key, const struct rider *rider)
{
    struct room_share share = share_of(rider);
    if (!room_use(&lanes->upstream->room, share)) {
        lanes->why_none = ERR_UPSTREAM_BUSY;
        return NULL;
    }
    struct lane *lane = lanes_open(lanes, key, LANE_SHARED, NULL);
    if (lane == NULL)
        room_give_back(&lanes->upstream->room, share);
    else
        lane->share = share;
    return lane;
}

struct lane *lanes_open_for_weir(struct lanes *lanes, const struct lane_key *key, enum lane_role role,
                                 struct rider *rider)
{
    return lanes_are_up(lanes) ? lanes_open(lanes, key, role, rider) : NULL;
}

bool lanes_is_newcomers(const struct lanes *lanes, const struct lane *lane)
{
    const struct lane_key newcomer = lanes_newcomer(lanes);
    return lane->role == LANE_SHARED && !lane->is_spare && lane_key_eq(&lane->key, &newcomer);
}

/* Opened when no password was wanted, and now one is: there will be no other like it. */
static bool is_irreplaceable(const struct lanes *lanes, const struct lane *lane)
{
    uint32_t now = node_epoch(lanes->node);
    return lane->key.login == NULL && (now & EPOCH_NEEDS_AUTH) != 0 && (lane->key.epoch & EPOCH_NEEDS_AUTH) == 0;
}

/* ---- for the timers ---- */

bool lanes_is_expendable(const struct lanes *lanes, const struct lane *lane)
{
    if (lane->role != LANE_SHARED || lanes_is_newcomers(lanes, lane) || !calls_is_empty(&lane->calls) ||
        !list_is_empty(&lane->waiting))
        return false;
    return !is_irreplaceable(lanes, lane) || !lanes->ops->has_epoch(lanes->arg, lane->key.epoch);
}

bool lanes_retry(struct lanes *lanes, uint64_t now_ns)
{
    const struct lane_key newcomer = lanes_newcomer(lanes);
    bool is_due = lanes->backoff.due_ns != 0 && now_ns >= lanes->backoff.due_ns;
    if (is_due && lanes->keeps_shared && find(lanes, LIST_OPENING, &newcomer) == NULL) {
        lanes->backoff.due_ns = 0;
        if (open_shared(lanes, &newcomer, NULL) == NULL)
            backoff_fail(&lanes->backoff, now_ns);
    }
    return lanes->backoff.due_ns != 0 && lanes->keeps_shared;
}

/* ---- asking for a lane ---- */

bool lanes_are_up(const struct lanes *lanes)
{
    if (node_is_barred(lanes->node))
        return false;
    /* Without a shared lane to probe with, whoever asks when the back-off is over is the probe. */
    return lanes->down == ERR_NONE || (!lanes->keeps_shared && clock_ns() >= lanes->backoff.due_ns);
}

enum err lanes_why_none(const struct lanes *lanes)
{
    if (lanes->down != ERR_NONE)
        return lanes->down;
    return lanes->why_none != ERR_NONE ? lanes->why_none : ERR_UPSTREAM_UNAVAILABLE;
}

struct lane *lanes_find_shared(struct lanes *lanes, const struct lane_key *key)
{
    struct lane *lane = find(lanes, LIST_SHARED, key);
    return lane != NULL ? lane : find(lanes, LIST_OPENING, key);
}

/* A client may be held back in Redis (CLIENT PAUSE WRITE ...): others must not be for its sake. */
bool lanes_is_sluggish(const struct lanes *lanes, const struct lane *lane)
{
    return lane_is_ready(lane) && !calls_is_empty(&lane->calls) &&
           lanes->loop->now_ns > lane->moved_ns + LANES_SLUGGISH_NS + 4 * lane->round_trip_ns &&
           !is_irreplaceable(lanes, lane);
}

static struct lane *take_spare(struct lanes *lanes, const struct lane_key *key)
{
    struct lane *lane = find(lanes, LIST_SPARE, key);
    if (lane == NULL)
        return NULL;
    lane->is_spare = false;
    lane->moved_ns = clock_ns();
    lanes_move(lane, LIST_SHARED);
    timers_sweep(lanes);
    return lane;
}

struct lane *lanes_shared(struct lanes *lanes, const struct lane_key *key, const struct rider *rider)
{
    lanes->why_none = ERR_NONE;
    if (!lanes_are_up(lanes))
        return NULL;
    if (key->login == NULL && (key->epoch & EPOCH_NEEDS_AUTH) != 0)
        node_doubt(lanes->node);
    struct lane *lane = lanes_find_shared(lanes, key);
    if (lane != NULL && !lanes_is_sluggish(lanes, lane)) {
        lane->is_spare = false; /* one that is being opened is in use before it is spare */
        return lane;
    }
    struct lane *fresh = take_spare(lanes, key);
    if (fresh == NULL)
        fresh = open_shared(lanes, key, rider);
    if (fresh == NULL)
        return lane; /* better slow than none */
    if (lane != NULL)
        (void)lanes_retire(lanes, lane);
    return fresh;
}

/* ---- from a lane ---- */

void lanes_init(struct lanes *lanes, struct loop *loop, struct node *node, bool keeps_shared,
                const struct lanes_ops *ops, void *arg)
{
    memset(lanes, 0, sizeof *lanes);
    lanes->ops = ops;
    lanes->arg = arg;
    lanes->loop = loop;
    lanes->node = node_get(node);
    lanes->upstream = node->upstream;
    lanes->keeps_shared = keeps_shared;
    for (int in = 0; in < LIST_COUNT; in++)
        list_init(&lanes->lists[in]);
    list_init(&lanes->hoping);
    timers_init(lanes);
    upstream_enter_shed(lanes->upstream, &lanes->shed);
}

void lanes_set_login(struct lanes *lanes, struct slice user, struct slice password)
{
    struct login *login = login_new(user, password);
    if (login == NULL)
        return;
    login->is_weirs = true;
    login_put(lanes->login);
    lanes->login = login;
    lanes->login_refused_ns = 0;
}

void lanes_start(struct lanes *lanes)
{
    const struct lane_key newcomer = lanes_newcomer(lanes);
    if (lanes->keeps_shared)
        (void)open_shared(lanes, &newcomer, NULL);
}

/* How long the first answers may take is upstream-timeout's to say: CLIENT PAUSE holds them back too. */
void lanes_on_connected(struct lanes *lanes, struct lane *lane)
{
    uint64_t timeout_ns = lane->is_lent ? lanes_time(lanes, LANES_CLEAN_NS) : lanes->upstream->timeout_ns;
    lane->greeted_ns = clock_ns();
    lane->deadline_ns = timeout_ns > 0 ? lane->greeted_ns + timeout_ns : 0;
}

static enum lane_list list_when_ready(const struct lane *lane)
{
    static const enum lane_list lists[] = {
        [LANE_SHARED] = LIST_SHARED,
        [LANE_PRIVATE] = LIST_PRIVATE,
        [LANE_SCRIPT] = LIST_SCRIPT,
        [LANE_DOOR] = LIST_DOOR,
    };
    if (lane->role == LANE_PRIVATE && lane->owner == NULL)
        return LIST_IDLE;
    return lane->is_spare ? LIST_SPARE : lists[lane->role];
}

void lanes_on_ready(struct lanes *lanes, struct lane *lane, bool needs_auth)
{
    lane->deadline_ns = 0;
    lane->ready_ns = lane->moved_ns = clock_ns();
    lane->round_trip_ns = lane->ready_ns - lane->greeted_ns;
    lanes_move(lane, list_when_ready(lane));
    if (lane->in == LIST_PRIVATE && !lanes->keeps_shared)
        lend_list(lane); /* HELLO has told its owner the id */
    timers_sweep(lanes);
    if (lane->key.login == NULL && !lane->is_lent)
        node_note_auth(lanes->node, needs_auth);
    if (lanes->down != ERR_NONE)
        log_at(LOG_SITE_UPSTREAM_BACK, LOG_INFO, "upstream %s is back", lanes->node->text);
    lanes->down = ERR_NONE;
    count_set(&lanes->counts.is_down, 0);
    lanes->is_garbled = false;
    lanes->n_shut = 0;
    lanes->has_let_in = true;
    backoff_reset(&lanes->backoff);
}

/* As good as never opened: to try again at once would be to try for ever. */
static bool broke_at_once(const struct lane *lane)
{
    return !lane->is_used && clock_ns() - lane->ready_ns < FRESH_NS;
}

static void log_closed(const struct lanes *lanes, const struct lane *lane, const char *why)
{
    static const char *const names[] = {
        [LANE_SHARED] = "shared", [LANE_PRIVATE] = "private", [LANE_SCRIPT] = "script", [LANE_DOOR] = "login"};
    log_at(LOG_SITE_UPSTREAM_CLOSED, LOG_WARN, "upstream %s: a %s connection is closed: %s", lanes->node->text,
           names[lane->role], why);
}

static void lose_ready(struct lanes *lanes, const struct lane *lane, const char *why)
{
    log_closed(lanes, lane, why);
    if (lane->role != LANE_SHARED || lane->is_spare || lanes_find_shared(lanes, &lane->key) != NULL)
        return;
    /* Opened again at once: if its user has been deleted, its clients have to hear of it. But not for ever. */
    if (lane->is_retry && broke_at_once(lane))
        return;
    struct lane *again = open_shared(lanes, &lane->key, NULL);
    if (again != NULL)
        again->is_retry = true;
}

/* Redis is there and has let it in before, or says for the first time what is no Redis' answer. */
static bool is_its_own_affair(const struct lanes *lanes, const struct lane *lane)
{
    bool is_shut = lane->greeted_ns != 0 && lanes->n_shut < LANES_SHUT_MAX;
    return (lane->end != END_LATE && (is_shut || lane->ready_ns != 0)) ||
           (lane->end == END_NONSENSE && !lanes->is_garbled);
}

/*
 * Redis was there, took the connection and closed it: somebody has sent CLIENT KILL, or it is about to stop. Back-off
 * begins with what fails after that.
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
    return lanes->down == ERR_NONE && lanes->n_again++ < LANES_AGAIN_MAX;
}

/* Who waits for it will ask for another; for newcomers one is opened in any case. */
static void try_again(struct lanes *lanes, const struct lane *lane, const char *why)
{
    log_closed(lanes, lane, why);
    if (!lanes_is_newcomers(lanes, lane) || !lanes->keeps_shared || lanes_find_shared(lanes, &lane->key) != NULL)
        return;
    struct lane *again = open_shared(lanes, &lane->key, NULL);
    if (again != NULL)
        again->is_retry = true;
}

static void lose_opening(struct lanes *lanes, const struct lane *lane, const char *why)
{
    /* One more connection may be refused where the first ones stand: that is that client's affair alone. */
    if (lane->end == END_LOGIN_REFUSED && lane->key.login->is_weirs) {
        log_at(LOG_SITE_UPSTREAM_LOGIN, LOG_WARN,
               "upstream %s does not accept upstream-user and upstream-password-file: no new connections of weir's own",
               lanes->node->text);
        lanes->login_refused_ns = clock_ns();
        return;
    }
    if (lane->end == END_LOGIN_REFUSED) {
        log_at(LOG_SITE_UPSTREAM_LOGIN, LOG_WARN,
               "upstream %s does not accept the login of a user any more: its clients are closed", lanes->node->text);
        lanes->ops->on_login_refused(lanes->arg, lane->key.login);
        return;
    }
    if (lane->end == END_REFUSED)
        return;
    if (!lanes_is_newcomers(lanes, lane) &&
        (!list_is_empty(&lanes->lists[LIST_SHARED]) || is_its_own_affair(lanes, lane))) {
        lanes->is_garbled |= lane->end == END_NONSENSE;
        lanes->n_shut += lane->greeted_ns != 0;
        log_at(LOG_SITE_UPSTREAM_OPEN, LOG_WARN, "upstream %s: cannot open another connection: %s", lanes->node->text,
               why);
        return;
    }
    if (lanes->down == ERR_NONE)
        log_at(LOG_SITE_UPSTREAM_AWAY, LOG_WARN, "upstream %s is away: %s", lanes->node->text, why);
    go_down(lanes, lane->end == END_LATE ? ERR_UPSTREAM_TIMEOUT : ERR_UPSTREAM_UNAVAILABLE);
}

static enum lane_loss loss_of(const struct lane *lane, bool was_ready)
{
    static const enum lane_loss losses[] = {
        [END_LOST] = LOSS_CONNECT,      [END_TURNED_AWAY] = LOSS_CONNECT, [END_LATE] = LOSS_TIMEOUT,
        [END_NONSENSE] = LOSS_PROTOCOL, [END_LOGIN_REFUSED] = LOSS_AUTH,  [END_REFUSED] = LOSS_AUTH,
        [END_NO_RESET] = LOSS_UNCLEAN,  [END_UNCLEAN] = LOSS_UNCLEAN,
    };
    if (lane->is_lent && !was_ready)
        return LOSS_UNCLEAN;
    return was_ready && lane->end == END_LOST ? LOSS_CLOSED : losses[lane->end];
}

/* The user of the session that it had: whoever it would have been for had nothing to do with it. */
static void remember_no_reset(struct lanes *lanes, const struct lane *lane)
{
    struct login **place = &lanes->no_reset[lanes->next_no_reset++ % LANES_NO_RESET];
    login_put(*place);
    *place = login_get(lane->last_login);
}

/* One more connection takes its place: nobody needs to know, but whoever counts. */
static void lose_lent(struct lanes *lanes, const struct lane *lane, const char *why)
{
    if (lane->end == END_NO_RESET)
        remember_no_reset(lanes, lane);
    log_at(LOG_SITE_UPSTREAM_CLOSED, LOG_WARN, "upstream %s: a used connection is closed: %s", lanes->node->text, why);
}

bool lanes_on_failed(struct lanes *lanes, struct lane *lane, bool was_ready, const char *why)
{
    bool is_idle = lane->role == LANE_PRIVATE && lane->owner == NULL;
    lanes->n_broken += was_ready;
    if (lanes->is_closing || is_idle || lane->is_spare)
        return was_ready;
    count_add(&lanes->counts.lost[loss_of(lane, was_ready)], 1);
    bool is_storm = lanes_is_newcomers(lanes, lane) && lane->is_retry && broke_at_once(lane);
    if (lane->is_lent && !was_ready) {
        lose_lent(lanes, lane, why);
    } else if (was_ready && !is_storm) {
        lose_ready(lanes, lane, why);
    } else if (may_try_again(lanes, lane)) {
        try_again(lanes, lane, why);
        return true;
    } else {
        lose_opening(lanes, lane, why);
    }
    return was_ready;
}

void lanes_on_stalled(struct lanes *lanes, struct lane *lane)
{
    timers_sweep(lanes);
    /* Of all who do not read in turn: who waits behind them waits for all of them. */
    if (lane->deadline_ns == 0)
        lane->deadline_ns = clock_ns() + LANES_STALL_NS;
    if (lane->in == LIST_SHARED)
        (void)lanes_retire(lanes, lane);
}

static unsigned count_spare(struct lanes *lanes, enum lane_list in, const struct lane_key *key)
{
    unsigned n = 0;
    struct list *list = &lanes->lists[in];
    for (struct list *at = list->next; at != list; at = at->next)
        n += lanes_at(at)->is_spare && lane_key_eq(&lanes_at(at)->key, key);
    return n;
}

/* Who comes next should not have to wait for a connection to be made. */
static void keep_spares(struct lanes *lanes, const struct lane_key *key)
{
    unsigned n = count_spare(lanes, LIST_SPARE, key) + count_spare(lanes, LIST_OPENING, key);
    for (; n < LANES_SPARE && !room_is_tight(&lanes->upstream->room); n++) {
        struct lane *lane = open_shared(lanes, key, NULL);
        if (lane == NULL)
            return;
        lane->is_spare = true;
    }
}

bool lanes_retire(struct lanes *lanes, struct lane *lane)
{
    if (is_irreplaceable(lanes, lane) && lane->stalled == NULL)
        return false;
    lanes_move(lane, LIST_RETIRED);
    lane_end_leases(lane);
    keep_spares(lanes, &lane->key);
    timers_tick(lanes);
    return true;
}

bool lanes_absorb(struct lanes *lanes, struct lane *lane, struct rider *rider)
{
    if (lane->is_absorbing)
        return true;
    uint64_t size = lane->frame_bytes + lane->scan.bulk_left;
    uint64_t room = lane->is_unread ? LANES_ABSORB_LATE_BYTES : LANES_ABSORB_BYTES;
    if (!lane_is_retired(lane) || lanes->absorbed + size > room || !lane_has_others_waiting(lane))
        return false;
    lane->is_absorbing = true;
    rider->absorbed += (uint32_t)size;
    lanes->absorbed += (uint32_t)size;
    return true;
}

void lanes_absorbed(struct lanes *lanes, struct rider *rider)
{
    lanes->absorbed -= rider->absorbed;
    rider->absorbed = 0;
}

void lanes_on_emptied(struct lanes *lanes, struct lane *lane)
{
    lane->deadline_ns = 0;
    lane->is_spare = true;
    lane->moved_ns = clock_ns();
    lanes_move(lane, LIST_SPARE);
    timers_sweep(lanes);
}

bool lanes_close_unleased(struct lanes *lanes, unsigned most)
{
    unsigned n = 0;
    struct lane *oldest = NULL;
    struct list *shared = &lanes->lists[LIST_SHARED];
    for (struct list *at = shared->next; at != shared; at = at->next) {
        struct lane *lane = lanes_at(at);
        if (lane->n_leases > 0 || !lanes_is_expendable(lanes, lane))
            continue;
        n++;
        if (oldest == NULL || lane->moved_ns < oldest->moved_ns)
            oldest = lane;
    }
    if (n <= most)
        return false;
    lane_close(oldest);
    return true;
}

/* A client that wanders from session to session leaves one behind in each: a few are kept. */
void lanes_on_unleased(struct lanes *lanes, const struct lane *lane)
{
    if (lane->role == LANE_SHARED && !lanes->is_closing)
        (void)lanes_close_unleased(lanes, LANES_UNLEASED_MAX);
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
    upstream_leave_shed(lanes->upstream, &lanes->shed);
    timers_close(lanes);
    login_put(lanes->login);
    lanes->login = NULL;
    node_put(lanes->node);
}
