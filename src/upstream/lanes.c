#include "upstream/lanes.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "upstream/timers.h"

#define FRESH_NS NS_PER_S /* a lane that breaks sooner, and was never used, counts as not opened */

static struct lane *find(struct list *list, const struct lane_key *key, enum lane_role role)
{
    for (struct list *at = list->next; at != list; at = at->next)
        if (lanes_at(at)->role == role && lane_key_eq(&lanes_at(at)->key, key))
            return lanes_at(at);
    return NULL;
}

struct lane_key lanes_newcomer(const struct lanes *lanes)
{
    return (struct lane_key){.protocol = 2, .login = lanes_lent(lanes), .epoch = upstream_epoch(lanes->upstream)};
}

static struct lane_key stranger(const struct lanes *lanes)
{
    return (struct lane_key){.protocol = 2, .epoch = upstream_epoch(lanes->upstream)};
}

/* Redis has just refused weir's own login, and would again. */
static bool is_refused(const struct lanes *lanes, const struct lane_key *key)
{
    return key->login != NULL && key->login->is_own && lanes->own_refused_ns != 0 &&
           clock_ns() < lanes->own_refused_ns + LANES_OWN_AGAIN_NS;
}

static enum lane_home home_of(const struct lanes *lanes, const struct list *list)
{
    const struct list *const lists[HOME_COUNT] = {
        [HOME_OPENING] = &lanes->opening, [HOME_SHARED] = &lanes->shared, [HOME_RETIRED] = &lanes->retired,
        [HOME_PRIVATE] = &lanes->private, [HOME_IDLE] = &lanes->idle,
    };
    int home = HOME_COUNT - 1;
    while (home > HOME_NONE && lists[home] != list)
        home--;
    return (enum lane_home)home;
}

static void note_home(struct lane *lane, enum lane_home home)
{
    struct lane_counts *counts = &lane->home->counts;
    count_add(&counts->homes[lane->in], UINT64_MAX); /* one less */
    count_add(&counts->homes[home], 1);
    lane->in = (uint8_t)home;
}

void lanes_move(struct lane *lane, struct list *list)
{
    list_take(&lane->in_home);
    list_push(list, &lane->in_home);
    note_home(lane, home_of(lane->home, list));
}

void lanes_take(struct lane *lane)
{
    list_take(&lane->in_home);
    note_home(lane, HOME_NONE);
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
    log_at(LOG_SITE_DESCRIPTORS, LOG_WARN, "upstream %s: cannot open a connection: %s", lanes->upstream->text,
           uv_strerror(error));
    const struct lane_key newcomer = lanes_newcomer(lanes);
    if (lanes->keeps_shared && lanes->down == ERR_NONE && list_is_empty(&lanes->shared) &&
        find(&lanes->opening, &newcomer, LANE_SHARED) == NULL)
        go_down(lanes, ERR_UPSTREAM_UNAVAILABLE);
}

static struct lane *open_lane(struct lanes *lanes, const struct lane_key *key, enum lane_role role, struct rider *owner)
{
    int error;
    if (clock_ns() < lanes->starved.due_ns || is_refused(lanes, key))
        return NULL;
    struct lane *lane = lane_open(lanes, key, role, owner, &error);
    if (lane == NULL) {
        cannot_open(lanes, error);
        return NULL;
    }
    backoff_reset(&lanes->starved);
    lane->deadline_ns = clock_ns() + lanes->upstream->connect_timeout_ns;
    lanes_move(lane, &lanes->opening);
    count_add(&lanes->counts.opened, 1);
    timers_tick(lanes);
    return lane;
}

void lanes_keep_idle(struct lanes *lanes, struct lane *lane)
{
    lane->role = LANE_IDLE;
    lane->owner = NULL;
    lane->moved_ns = clock_ns();
    lanes_move(lane, &lanes->idle);
    lanes->n_idle++;
    timers_sweep(lanes);
    if (lanes->n_idle > LANES_IDLE_MAX)
        lane_fail(lanes_at(lanes->idle.next), "there are enough idle ones");
}

static void share(struct lanes *lanes, struct lane *lane)
{
    lane->role = LANE_SHARED;
    lane->owner = NULL;
    lane->is_watching = false;
    lanes->version++;
    lanes_move(lane, &lanes->shared);
    timers_sweep(lanes);
}

bool lanes_is_newcomers(const struct lanes *lanes, const struct lane *lane)
{
    const struct lane_key newcomer = lanes_newcomer(lanes);
    return lane->role == LANE_SHARED && lane_key_eq(&lane->key, &newcomer);
}

/* Opened when no password was wanted, and now one is: there will be no other like it. */
static bool is_irreplaceable(const struct lanes *lanes, const struct lane *lane)
{
    uint32_t now = upstream_epoch(lanes->upstream);
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
    if (is_due && lanes->keeps_shared && find(&lanes->opening, &newcomer, LANE_SHARED) == NULL) {
        lanes->backoff.due_ns = 0;
        if (open_lane(lanes, &newcomer, LANE_SHARED, NULL) == NULL)
            backoff_fail(&lanes->backoff, now_ns);
    }
    return lanes->backoff.due_ns != 0 && lanes->keeps_shared;
}

/* ---- asking for a lane ---- */

static bool is_up(const struct lanes *lanes)
{
    if (atomic_load_explicit(&lanes->upstream->is_barred, memory_order_relaxed))
        return false;
    /* Without a shared lane to probe with, whoever asks when the back-off is over is the probe. */
    return lanes->down == ERR_NONE || (!lanes->keeps_shared && clock_ns() >= lanes->backoff.due_ns);
}

enum err lanes_why_none(const struct lanes *lanes)
{
    return lanes->down != ERR_NONE ? lanes->down : ERR_UPSTREAM_UNAVAILABLE;
}

struct lane *lanes_find_shared(struct lanes *lanes, const struct lane_key *key)
{
    struct lane *lane = find(&lanes->shared, key, LANE_SHARED);
    return lane != NULL ? lane : find(&lanes->opening, key, LANE_SHARED);
}

/* A client may be held back in Redis (CLIENT PAUSE WRITE ...): others must not be for its sake. */
bool lanes_is_sluggish(const struct lanes *lanes, const struct lane *lane)
{
    return lane_is_ready(lane) && !calls_is_empty(&lane->calls) &&
           lanes->loop->now_ns > lane->moved_ns + LANES_SLUGGISH_NS + 4 * lane->round_trip_ns &&
           !is_irreplaceable(lanes, lane);
}

static struct lane *share_idle(struct lanes *lanes, const struct lane_key *key)
{
    struct lane *lane = find(&lanes->idle, key, LANE_IDLE);
    if (lane == NULL || lane->has_name)
        return NULL;
    lanes->n_idle--;
    share(lanes, lane);
    return lane;
}

struct lane *lanes_shared(struct lanes *lanes, const struct lane_key *key)
{
    if (!is_up(lanes))
        return NULL;
    if (key->login == NULL && (key->epoch & EPOCH_NEEDS_AUTH) != 0)
        atomic_store_explicit(&lanes->upstream->is_doubted, true, memory_order_relaxed);
    struct lane *lane = lanes_find_shared(lanes, key);
    if (lane != NULL && !lanes_is_sluggish(lanes, lane))
        return lane;
    struct lane *fresh = share_idle(lanes, key);
    if (fresh == NULL)
        fresh = open_lane(lanes, key, LANE_SHARED, NULL);
    if (fresh == NULL)
        return lane; /* better slow than none */
    if (lane != NULL)
        (void)lanes_retire(lanes, lane);
    return fresh;
}

/* The one that has been idle longest, made over: no new connection. */
static struct lane *renew_idle(struct lanes *lanes, const struct lane_key *key, struct rider *owner)
{
    struct lane *lane = lanes_at(lanes->idle.next);
    lanes->n_idle--;
    lanes_move(lane, &lanes->opening);
    timers_tick(lanes);
    if (lane_renew(lane, key, owner))
        return lane;
    lane_fail(lane, "out of memory");
    return NULL;
}

struct lane *lanes_private(struct lanes *lanes, const struct lane_key *key, struct rider *owner)
{
    if (!is_up(lanes))
        return NULL;
    struct lane *lane = find(&lanes->idle, key, LANE_IDLE);
    if (lane == NULL && lanes->n_idle > 0 && !lanes->cannot_reset)
        return renew_idle(lanes, key, owner);
    if (lane == NULL)
        return open_lane(lanes, key, LANE_PRIVATE, owner);
    lanes->n_idle--;
    lane->role = LANE_PRIVATE;
    lane->owner = owner;
    lane->is_watching = false;
    lane->is_used = false;
    lane->ready_ns = clock_ns();
    owner->lane = lane;
    lanes_move(lane, &lanes->private);
    return lane;
}

/* It finishes what it has. Nobody knows in which protocol HELLO has left it: it is nobody's as it is. */
static void replace_door(struct lanes *lanes, enum door door)
{
    struct lane *lane = lanes->doors[door];
    lanes->doors[door] = NULL;
    lane->key.protocol = 0;
    lane->role = lane_is_ready(lane) ? LANE_RETIRED : LANE_IDLE;
    if (lane_is_ready(lane) && calls_is_empty(&lane->calls))
        lanes_keep_idle(lanes, lane);
    else if (lane_is_ready(lane))
        lanes_move(lane, &lanes->retired);
}

struct lane *lanes_door(struct lanes *lanes, enum door door)
{
    if (!is_up(lanes))
        return NULL;
    const struct lane_key nobody = stranger(lanes);
    if (lanes->doors[door] != NULL && lanes->doors[door]->key.epoch != nobody.epoch)
        replace_door(lanes, door);
    if (lanes->doors[door] == NULL)
        lanes->doors[door] = open_lane(lanes, &nobody, LANE_DOOR, NULL);
    return lanes->doors[door];
}

/* ---- giving one back ---- */

void lanes_release(struct lanes *lanes, struct lane *lane)
{
    if (lanes->keeps_shared && !lane->has_name && lanes_find_shared(lanes, &lane->key) == NULL) {
        share(lanes, lane);
        return;
    }
    lanes_keep_idle(lanes, lane);
}

/* ---- from a lane ---- */

void lanes_init(struct lanes *lanes, struct loop *loop, struct upstream *upstream, bool keeps_shared,
                const struct lanes_ops *ops, void *arg)
{
    memset(lanes, 0, sizeof *lanes);
    lanes->ops = ops;
    lanes->arg = arg;
    lanes->loop = loop;
    lanes->upstream = upstream;
    lanes->keeps_shared = keeps_shared;
    lanes->version = 1;
    list_init(&lanes->opening);
    list_init(&lanes->shared);
    list_init(&lanes->retired);
    list_init(&lanes->private);
    list_init(&lanes->idle);
    timers_init(lanes);
}

void lanes_set_own(struct lanes *lanes, struct slice user, struct slice password)
{
    struct login *own = login_new(user, password);
    if (own == NULL)
        return;
    own->is_own = true;
    login_put(lanes->own);
    lanes->own = own;
    lanes->own_refused_ns = 0;
}

void lanes_start(struct lanes *lanes)
{
    const struct lane_key newcomer = lanes_newcomer(lanes);
    if (lanes->keeps_shared)
        (void)open_lane(lanes, &newcomer, LANE_SHARED, NULL);
}

/* How long the first answers may take is upstream-timeout's to say: CLIENT PAUSE holds them back too. */
void lanes_on_connected(struct lanes *lanes, struct lane *lane)
{
    uint64_t timeout_ns = lanes->upstream->timeout_ns;
    lane->greeted_ns = clock_ns();
    lane->deadline_ns = timeout_ns > 0 ? lane->greeted_ns + timeout_ns : 0;
}

void lanes_on_ready(struct lanes *lanes, struct lane *lane, bool needs_auth)
{
    lane->deadline_ns = 0;
    lane->ready_ns = clock_ns();
    lane->round_trip_ns = lane->ready_ns - lane->greeted_ns;
    if (lane->role == LANE_IDLE)
        lanes_keep_idle(lanes, lane);
    else
        lanes_move(lane, lane->role == LANE_PRIVATE ? &lanes->private : &lanes->shared);
    timers_sweep(lanes);
    lanes->version++;
    if (lane->key.login == NULL)
        upstream_note_auth(lanes->upstream, needs_auth);
    if (lanes->down != ERR_NONE)
        log_at(LOG_SITE_UPSTREAM_BACK, LOG_INFO, "upstream %s is back", lanes->upstream->text);
    lanes->down = ERR_NONE;
    count_set(&lanes->counts.is_down, 0);
    lanes->is_garbled = false;
    backoff_reset(&lanes->backoff);
}

/* As good as never opened: to try again at once would be to try for ever. */
static bool broke_at_once(const struct lane *lane)
{
    return !lane->is_used && clock_ns() - lane->ready_ns < FRESH_NS;
}

static void lose_ready(struct lanes *lanes, const struct lane *lane, const char *why)
{
    log_at(LOG_SITE_UPSTREAM_CLOSED, LOG_WARN, "upstream %s: a %s connection is closed: %s", lanes->upstream->text,
           lane->role == LANE_PRIVATE ? "private" : "shared", why);
    if (lane->role != LANE_SHARED || lanes_find_shared(lanes, &lane->key) != NULL)
        return;
    /* Opened again at once: if its user has been deleted, its clients have to hear of it. But not for ever. */
    if (lane->is_retry && broke_at_once(lane))
        return;
    struct lane *again = open_lane(lanes, &lane->key, LANE_SHARED, NULL);
    if (again != NULL)
        again->is_retry = true;
}

/* Redis is there and has let it in before, or says for the first time what is no Redis' answer. */
static bool is_its_own_affair(const struct lanes *lanes, const struct lane *lane)
{
    return (lane->ready_ns != 0 && !lane->is_late) || (lane->greeting_end == GREETING_GARBLED && !lanes->is_garbled);
}

static void lose_opening(struct lanes *lanes, const struct lane *lane, const char *why)
{
    /* One more connection may be refused where the first ones stand: that is that client's affair alone. */
    if (lane->greeting_end == GREETING_LOGIN_ENDED && lane->key.login->is_own) {
        log_at(LOG_SITE_UPSTREAM_LOGIN, LOG_WARN,
               "upstream %s does not accept upstream-user and upstream-password-file: no new connections of weir's own",
               lanes->upstream->text);
        lanes->own_refused_ns = clock_ns();
        return;
    }
    if (lane->greeting_end == GREETING_LOGIN_ENDED) {
        log_at(LOG_SITE_UPSTREAM_LOGIN, LOG_WARN,
               "upstream %s does not accept the login of a user any more: its clients are closed",
               lanes->upstream->text);
        lanes->ops->on_login_refused(lanes->arg, lane->key.login);
        return;
    }
    if (lane->greeting_end == GREETING_ANSWERED_NO)
        return;
    if (!lanes_is_newcomers(lanes, lane) && (!list_is_empty(&lanes->shared) || is_its_own_affair(lanes, lane))) {
        lanes->is_garbled |= lane->greeting_end == GREETING_GARBLED;
        log_at(LOG_SITE_UPSTREAM_OPEN, LOG_WARN, "upstream %s: cannot open another connection: %s",
               lanes->upstream->text, why);
        return;
    }
    if (lanes->down == ERR_NONE)
        log_at(LOG_SITE_UPSTREAM_AWAY, LOG_WARN, "upstream %s is away: %s", lanes->upstream->text, why);
    go_down(lanes, lane->is_late ? ERR_UPSTREAM_TIMEOUT : ERR_UPSTREAM_UNAVAILABLE);
}

static enum lane_loss loss_of(const struct lane *lane, bool was_ready)
{
    if (lane->is_late || lane->is_hung)
        return LOSS_TIMEOUT;
    if (lane->is_broken || lane->greeting_end == GREETING_GARBLED)
        return LOSS_PROTOCOL;
    if (lane->greeting_end == GREETING_LOGIN_ENDED || lane->greeting_end == GREETING_ANSWERED_NO)
        return LOSS_AUTH;
    return was_ready ? LOSS_CLOSED : LOSS_CONNECT;
}

void lanes_on_failed(struct lanes *lanes, struct lane *lane, bool was_ready, const char *why)
{
    lanes->version++;
    for (int door = 0; door < DOOR_COUNT; door++)
        if (lanes->doors[door] == lane)
            lanes->doors[door] = NULL;
    if (lane->role == LANE_IDLE && was_ready)
        lanes->n_idle--;
    if (lanes->is_closing || lane->role == LANE_IDLE)
        return;
    count_add(&lanes->counts.lost[loss_of(lane, was_ready)], 1);
    lanes->cannot_reset |= lane->greeting_end == GREETING_NOT_RESET;
    bool is_storm = lanes_is_newcomers(lanes, lane) && lane->is_retry && broke_at_once(lane);
    if (was_ready && !is_storm)
        lose_ready(lanes, lane, why);
    else
        lose_opening(lanes, lane, why);
}

void lanes_on_stalled(struct lanes *lanes, struct lane *lane)
{
    timers_sweep(lanes);
    lane->deadline_ns = clock_ns() + LANES_STALL_NS;
    if (lane->role == LANE_SHARED)
        (void)lanes_retire(lanes, lane);
}

/* Who comes next should not have to wait for a connection to be made. */
static void keep_spares(struct lanes *lanes, const struct lane_key *key)
{
    unsigned n = 0;
    for (struct list *at = lanes->idle.next; at != &lanes->idle; at = at->next)
        n += lane_key_eq(&lanes_at(at)->key, key);
    for (struct list *at = lanes->opening.next; at != &lanes->opening; at = at->next)
        n += lanes_at(at)->role == LANE_IDLE && lane_key_eq(&lanes_at(at)->key, key);
    for (; n < LANES_SPARE; n++)
        (void)open_lane(lanes, key, LANE_IDLE, NULL);
}

bool lanes_retire(struct lanes *lanes, struct lane *lane)
{
    if (is_irreplaceable(lanes, lane) && lane->stalled == NULL)
        return false;
    keep_spares(lanes, &lane->key);
    lane->role = LANE_RETIRED;
    lane->deadline_ns = clock_ns() + LANES_STALL_NS;
    lanes->version++;
    lanes_move(lane, &lanes->retired);
    timers_tick(lanes);
    return true;
}

bool lanes_absorb(struct lanes *lanes, struct lane *lane, struct rider *rider)
{
    if (lane->is_absorbing)
        return true;
    uint64_t size = lane->frame_bytes + lane->scan.bulk_left;
    uint64_t room = lane->is_unread ? LANES_ABSORB_LATE_BYTES : LANES_ABSORB_BYTES;
    if (lane->role != LANE_RETIRED || lanes->absorbed + size > room || !lane_has_others_waiting(lane))
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
    lanes_keep_idle(lanes, lane);
}

static void close_all(struct list *list)
{
    while (!list_is_empty(list))
        lane_fail(lanes_at(list->next), "weir stops");
}

void lanes_close(struct lanes *lanes)
{
    lanes->is_closing = true;
    close_all(&lanes->opening);
    close_all(&lanes->shared);
    close_all(&lanes->retired);
    close_all(&lanes->private);
    close_all(&lanes->idle);
    timers_close(lanes);
    login_put(lanes->own);
    lanes->own = NULL;
}
