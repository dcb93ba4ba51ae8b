#include "upstream/lanes.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"

#define TICK_MS 20        /* resolution of deadlines and back-off; only while one of them runs */
#define SWEEP_MS 1000     /* looking for lanes that have been idle for long */
#define FRESH_NS NS_PER_S /* a lane that breaks sooner, and was never used, counts as not opened */
#define SWEEP_PARTS 4     /* an upstream-timeout is noticed this many times finer than it is */

static const struct lane_key newcomer = {.protocol = 2};

static void on_tick(uv_timer_t *timer);
static void on_sweep(uv_timer_t *timer);

static struct lane *lane_at(struct list *at)
{
    return container_of(at, struct lane, in_home);
}

static struct lane *find(struct list *list, const struct lane_key *key, enum lane_role role)
{
    for (struct list *at = list->next; at != list; at = at->next)
        if (lane_at(at)->role == role && lane_key_eq(&lane_at(at)->key, key))
            return lane_at(at);
    return NULL;
}

static void move_to(struct lane *lane, struct list *list)
{
    list_take(&lane->in_home);
    list_push(list, &lane->in_home);
}

static void keep_ticking(struct lanes *lanes)
{
    if (!uv_is_active((uv_handle_t *)&lanes->tick))
        uv_timer_start(&lanes->tick, on_tick, TICK_MS, TICK_MS);
}

static void keep_sweeping(struct lanes *lanes)
{
    uint64_t timeout_ms = lanes->upstream->timeout_ns / NS_PER_MS;
    uint64_t every_ms = timeout_ms > 0 && timeout_ms / SWEEP_PARTS < SWEEP_MS ? timeout_ms / SWEEP_PARTS + 1 : SWEEP_MS;
    if (!uv_is_active((uv_handle_t *)&lanes->sweep))
        uv_timer_start(&lanes->sweep, on_sweep, every_ms, every_ms);
}

static struct lane *open_lane(struct lanes *lanes, const struct lane_key *key, enum lane_role role, struct rider *owner)
{
    struct lane *lane = lane_open(lanes, key, role, owner);
    if (lane == NULL)
        return NULL;
    lane->deadline_ns = clock_ns() + lanes->upstream->connect_timeout_ns;
    list_push(&lanes->opening, &lane->in_home);
    keep_ticking(lanes);
    return lane;
}

static void keep_idle(struct lanes *lanes, struct lane *lane)
{
    lane->role = LANE_IDLE;
    lane->owner = NULL;
    lane->moved_ns = clock_ns();
    move_to(lane, &lanes->idle);
    lanes->n_idle++;
    keep_sweeping(lanes);
    if (lanes->n_idle > LANES_IDLE_MAX)
        lane_fail(lane_at(lanes->idle.next), "there are enough idle ones");
}

static void share(struct lanes *lanes, struct lane *lane)
{
    lane->role = LANE_SHARED;
    lane->owner = NULL;
    lane->is_watching = false;
    lanes->version++;
    move_to(lane, &lanes->shared);
    keep_sweeping(lanes);
}

/* ---- the timers ---- */

static void expire_opening(struct lanes *lanes, uint64_t now_ns)
{
    struct list *next;
    for (struct list *at = lanes->opening.next; at != &lanes->opening; at = next) {
        next = at->next;
        uint64_t deadline_ns = lane_at(at)->deadline_ns;
        if (deadline_ns == 0 || now_ns < deadline_ns)
            continue;
        lane_at(at)->is_late = lane_at(at)->state == LANE_GREETING;
        lane_fail(lane_at(at), "it does not answer in time");
    }
}

static bool has_others_waiting(const struct lane *lane)
{
    for (uint32_t at = lane->calls.head; at != lane->calls.tail; at++) {
        const struct rider *rider = calls_at(&lane->calls, at)->rider;
        if (rider != NULL && rider != calls_oldest(&lane->calls)->rider)
            return true;
    }
    return false;
}

/* Whoever holds others up with a reply it does not read has a second. */
static void expire_retired(struct lanes *lanes, uint64_t now_ns)
{
    struct list *next;
    for (struct list *at = lanes->retired.next; at != &lanes->retired; at = next) {
        struct lane *lane = lane_at(at);
        next = at->next;
        if (lane->stalled == NULL || !has_others_waiting(lane))
            continue;
        lane->is_unread = true;
        if (lanes_absorb(lanes, lane, lane->stalled)) {
            lane_catch_up(lane->stalled);
            continue;
        }
        if (now_ns < lane->deadline_ns)
            continue;
        lane->stalled->ops->on_blocking(lane->stalled);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct lanes *lanes = timer->data;
    uint64_t now_ns = clock_ns();
    expire_opening(lanes, now_ns);
    expire_retired(lanes, now_ns);
    bool is_due = lanes->backoff.due_ns != 0 && now_ns >= lanes->backoff.due_ns;
    if (is_due && lanes->keeps_shared && find(&lanes->opening, &newcomer, LANE_SHARED) == NULL) {
        lanes->backoff.due_ns = 0;
        if (open_lane(lanes, &newcomer, LANE_SHARED, NULL) == NULL)
            backoff_fail(&lanes->backoff, now_ns);
    }
    bool is_waiting = lanes->backoff.due_ns != 0 && lanes->keeps_shared;
    if (list_is_empty(&lanes->opening) && list_is_empty(&lanes->retired) && !is_waiting)
        uv_timer_stop(timer);
}

static void fail_hung(struct list *list, uint64_t since_ns)
{
    struct list now;
    list_take_all(&now, list);
    while (!list_is_empty(&now)) {
        struct lane *lane = lane_at(now.next);
        move_to(lane, list);
        if (lane_is_hung(lane, since_ns))
            lane_fail(lane, "it does not answer within upstream-timeout");
    }
}

static void close_old(struct lanes *lanes, uint64_t now_ns)
{
    while (!list_is_empty(&lanes->idle) && now_ns - lane_at(lanes->idle.next)->moved_ns > LANES_IDLE_NS)
        lane_fail(lane_at(lanes->idle.next), "it was idle");
}

static void judge_unread(struct list *list, uint64_t now_ns)
{
    struct list now;
    list_take_all(&now, list);
    while (!list_is_empty(&now)) {
        struct lane *lane = lane_at(now.next);
        move_to(lane, list);
        if (lane_is_unread(lane, now_ns, now_ns - LANES_UNREAD_NS))
            lane->stalled->ops->on_unread(lane->stalled, lane->frame_bytes + lane->scan.bulk_left);
    }
}

static bool has_stalled(const struct list *list)
{
    for (const struct list *at = list->next; at != list; at = at->next)
        if (container_of(at, struct lane, in_home)->stalled != NULL)
            return true;
    return false;
}

static bool is_newcomers(const struct lane *lane)
{
    return lane->role == LANE_SHARED && lane_key_eq(&lane->key, &newcomer);
}

static bool has_only_newcomers(const struct lanes *lanes)
{
    for (const struct list *at = lanes->shared.next; at != &lanes->shared; at = at->next)
        if (!is_newcomers(container_of(at, struct lane, in_home)))
            return false;
    return true;
}

static void close_unused(struct lanes *lanes, uint64_t now_ns)
{
    struct list *next;
    for (struct list *at = lanes->shared.next; at != &lanes->shared; at = next) {
        struct lane *lane = lane_at(at);
        next = at->next;
        bool may_go = lane->role == LANE_SHARED && !is_newcomers(lane) && calls_is_empty(&lane->calls);
        if (may_go && list_is_empty(&lane->waiting) && now_ns - lane->moved_ns > LANES_UNUSED_NS)
            keep_idle(lanes, lane);
    }
}

static void on_sweep(uv_timer_t *timer)
{
    struct lanes *lanes = timer->data;
    uint64_t now_ns = clock_ns();
    uint64_t timeout_ns = lanes->upstream->timeout_ns;
    close_old(lanes, now_ns);
    close_unused(lanes, now_ns);
    judge_unread(&lanes->retired, now_ns);
    judge_unread(&lanes->private, now_ns);
    if (timeout_ns > 0) {
        uint64_t since_ns = now_ns - timeout_ns;
        fail_hung(&lanes->shared, since_ns);
        fail_hung(&lanes->retired, since_ns);
        fail_hung(&lanes->private, since_ns);
    } else if (list_is_empty(&lanes->idle) && has_only_newcomers(lanes) && list_is_empty(&lanes->retired) &&
               !has_stalled(&lanes->private)) {
        uv_timer_stop(timer);
    }
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
           lanes->loop->now_ns > lane->moved_ns + LANES_SLUGGISH_NS + 4 * lane->round_trip_ns;
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
    struct lane *lane = lanes_find_shared(lanes, key);
    if (lane != NULL && lanes_is_sluggish(lanes, lane)) {
        lanes_retire(lanes, lane);
        lane = NULL;
    }
    if (lane == NULL)
        lane = share_idle(lanes, key);
    return lane != NULL ? lane : open_lane(lanes, key, LANE_SHARED, NULL);
}

/* The one that has been idle longest, made over: no new connection. */
static struct lane *renew_idle(struct lanes *lanes, const struct lane_key *key, struct rider *owner)
{
    struct lane *lane = lane_at(lanes->idle.next);
    lanes->n_idle--;
    move_to(lane, &lanes->opening);
    keep_ticking(lanes);
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
    move_to(lane, &lanes->private);
    return lane;
}

struct lane *lanes_door(struct lanes *lanes, enum door door)
{
    if (!is_up(lanes))
        return NULL;
    if (lanes->doors[door] == NULL)
        lanes->doors[door] = open_lane(lanes, &newcomer, LANE_DOOR, NULL);
    return lanes->doors[door];
}

/* ---- giving one back ---- */

void lanes_release(struct lanes *lanes, struct lane *lane)
{
    if (lanes->keeps_shared && !lane->has_name && lanes_find_shared(lanes, &lane->key) == NULL) {
        share(lanes, lane);
        return;
    }
    keep_idle(lanes, lane);
}

/* ---- from a lane ---- */

void lanes_init(struct lanes *lanes, struct loop *loop, struct upstream *upstream, bool keeps_shared,
                void (*on_login_refused)(void *arg, const struct login *login), void *arg)
{
    memset(lanes, 0, sizeof *lanes);
    lanes->on_login_refused = on_login_refused;
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
    uv_timer_init(&loop->uv, &lanes->tick);
    uv_timer_init(&loop->uv, &lanes->sweep);
    lanes->tick.data = lanes;
    lanes->sweep.data = lanes;
    if (upstream->timeout_ns > 0)
        keep_sweeping(lanes);
    if (keeps_shared)
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
        keep_idle(lanes, lane);
    else
        move_to(lane, lane->role == LANE_PRIVATE ? &lanes->private : &lanes->shared);
    keep_sweeping(lanes);
    lanes->version++;
    if (lane->key.login == NULL)
        atomic_store_explicit(&lanes->upstream->needs_auth, needs_auth, memory_order_relaxed);
    if (lanes->down != ERR_NONE)
        log_info("upstream %s is back", lanes->upstream->text);
    lanes->down = ERR_NONE;
    backoff_reset(&lanes->backoff);
}

/* As good as never opened: to try again at once would be to try for ever. */
static bool broke_at_once(const struct lane *lane)
{
    return !lane->is_used && clock_ns() - lane->ready_ns < FRESH_NS;
}

static void lose_ready(struct lanes *lanes, const struct lane *lane, const char *why)
{
    log_warn("upstream %s: a %s connection is closed: %s", lanes->upstream->text,
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

static void lose_opening(struct lanes *lanes, const struct lane *lane, const char *why)
{
    /* One more connection may be refused where the first ones stand: that is that client's affair alone. */
    if (lane->greeting_end == GREETING_LOGIN_ENDED) {
        log_warn("upstream %s does not accept the login of a user any more: its clients are closed",
                 lanes->upstream->text);
        lanes->on_login_refused(lanes->arg, lane->key.login);
        return;
    }
    if (lane->greeting_end == GREETING_ANSWERED_NO)
        return;
    if (!list_is_empty(&lanes->shared) && !is_newcomers(lane)) {
        log_warn("upstream %s: cannot open another connection: %s", lanes->upstream->text, why);
        return;
    }
    if (lanes->down == ERR_NONE)
        log_warn("upstream %s is away: %s", lanes->upstream->text, why);
    lanes->down = lane->is_late ? ERR_UPSTREAM_TIMEOUT : ERR_UPSTREAM_UNAVAILABLE;
    backoff_fail(&lanes->backoff, clock_ns());
    keep_ticking(lanes);
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
    if (!was_ready && lane->ready_ns != 0)
        lanes->cannot_reset = true;
    bool is_storm = is_newcomers(lane) && lane->is_retry && broke_at_once(lane);
    if (was_ready && !is_storm)
        lose_ready(lanes, lane, why);
    else
        lose_opening(lanes, lane, why);
}

void lanes_on_stalled(struct lanes *lanes, struct lane *lane)
{
    keep_sweeping(lanes);
    lane->deadline_ns = clock_ns() + LANES_STALL_NS;
}

/* Who comes next should not have to wait for a connection to be made. */
static void keep_spares(struct lanes *lanes, const struct lane_key *key)
{
    unsigned n = 0;
    for (struct list *at = lanes->idle.next; at != &lanes->idle; at = at->next)
        n += lane_key_eq(&lane_at(at)->key, key);
    for (struct list *at = lanes->opening.next; at != &lanes->opening; at = at->next)
        n += lane_at(at)->role == LANE_IDLE && lane_key_eq(&lane_at(at)->key, key);
    for (; n < LANES_SPARE; n++)
        (void)open_lane(lanes, key, LANE_IDLE, NULL);
}

void lanes_retire(struct lanes *lanes, struct lane *lane)
{
    keep_spares(lanes, &lane->key);
    lane->role = LANE_RETIRED;
    lane->deadline_ns = clock_ns() + LANES_STALL_NS;
    lanes->version++;
    move_to(lane, &lanes->retired);
    keep_ticking(lanes);
}

bool lanes_absorb(struct lanes *lanes, struct lane *lane, struct rider *rider)
{
    if (lane->is_absorbing)
        return true;
    uint64_t size = lane->frame_bytes + lane->scan.bulk_left;
    uint64_t room = lane->is_unread ? LANES_ABSORB_LATE_BYTES : LANES_ABSORB_BYTES;
    if (lane->role != LANE_RETIRED || lanes->absorbed + size > room || !has_others_waiting(lane))
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
    keep_idle(lanes, lane);
}

static void close_all(struct list *list)
{
    while (!list_is_empty(list))
        lane_fail(lane_at(list->next), "weir stops");
}

void lanes_close(struct lanes *lanes)
{
    lanes->is_closing = true;
    close_all(&lanes->opening);
    close_all(&lanes->shared);
    close_all(&lanes->retired);
    close_all(&lanes->private);
    close_all(&lanes->idle);
    uv_close((uv_handle_t *)&lanes->tick, NULL);
    uv_close((uv_handle_t *)&lanes->sweep, NULL);
}
