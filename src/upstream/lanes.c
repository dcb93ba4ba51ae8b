#include "upstream/lanes.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"

#define TICK_MS 20 /* resolution of deadlines and back-off; only while one of them runs */

static const struct lane_key newcomer = {.protocol = 2};

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_key(const struct lane_key *a, const struct lane_key *b)
{
    return a->protocol == b->protocol && a->database == b->database && same_text(a->user, b->user) &&
           same_text(a->password, b->password);
}

static struct lane *find_shared(const struct list *list, const struct lane_key *key)
{
    for (struct list *at = list->next; at != list; at = at->next) {
        struct lane *lane = container_of(at, struct lane, in_home);
        if (lane->owner == NULL && same_key(&lane->key, key))
            return lane;
    }
    return NULL;
}

static void on_tick(uv_timer_t *timer);

static void keep_ticking(struct lanes *lanes)
{
    if (!uv_is_active((uv_handle_t *)&lanes->tick))
        uv_timer_start(&lanes->tick, on_tick, TICK_MS, TICK_MS);
}

static struct lane *open_lane(struct lanes *lanes, const struct lane_key *key, struct rider *owner)
{
    struct lane *lane = lane_open(lanes, key, owner);
    if (lane == NULL)
        return NULL;
    lane->deadline_ns = clock_ns() + lanes->upstream->connect_timeout_ns;
    list_push(&lanes->opening, &lane->in_home);
    keep_ticking(lanes);
    return lane;
}

static void expire(struct lanes *lanes, uint64_t now_ns)
{
    struct list *next;
    for (struct list *at = lanes->opening.next; at != &lanes->opening; at = next) {
        next = at->next;
        struct lane *lane = container_of(at, struct lane, in_home);
        if (now_ns >= lane->deadline_ns)
            lane_fail(lane, "it does not answer within connect-timeout");
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct lanes *lanes = timer->data;
    uint64_t now_ns = clock_ns();
    expire(lanes, now_ns);
    bool is_due = lanes->backoff.due_ns != 0 && now_ns >= lanes->backoff.due_ns;
    if (is_due && lanes->keeps_shared && find_shared(&lanes->opening, &newcomer) == NULL) {
        lanes->backoff.due_ns = 0;
        if (open_lane(lanes, &newcomer, NULL) == NULL)
            backoff_fail(&lanes->backoff, now_ns);
    }
    if (list_is_empty(&lanes->opening) && (lanes->backoff.due_ns == 0 || !lanes->keeps_shared))
        uv_timer_stop(timer);
}

void lanes_init(struct lanes *lanes, struct loop *loop, struct upstream *upstream, bool keeps_shared)
{
    memset(lanes, 0, sizeof *lanes);
    lanes->loop = loop;
    lanes->upstream = upstream;
    lanes->keeps_shared = keeps_shared;
    list_init(&lanes->opening);
    list_init(&lanes->shared);
    list_init(&lanes->private);
    uv_timer_init(&loop->uv, &lanes->tick);
    lanes->tick.data = lanes;
    if (keeps_shared)
        (void)open_lane(lanes, &newcomer, NULL);
}

bool lanes_are_up(const struct lanes *lanes)
{
    if (atomic_load_explicit(&lanes->upstream->is_barred, memory_order_relaxed))
        return false;
    /* Without a shared lane to probe with, whoever asks when the back-off is over is the probe. */
    return !lanes->is_down || (!lanes->keeps_shared && clock_ns() >= lanes->backoff.due_ns);
}

struct lane *lanes_shared(struct lanes *lanes, const struct lane_key *key)
{
    if (!lanes_are_up(lanes))
        return NULL;
    struct lane *lane = find_shared(&lanes->shared, key);
    if (lane == NULL)
        lane = find_shared(&lanes->opening, key);
    return lane != NULL ? lane : open_lane(lanes, key, NULL);
}

struct lane *lanes_private(struct lanes *lanes, const struct lane_key *key, struct rider *owner)
{
    return lanes_are_up(lanes) ? open_lane(lanes, key, owner) : NULL;
}

void lanes_on_ready(struct lanes *lanes, struct lane *lane, bool needs_auth)
{
    list_take(&lane->in_home);
    list_push(lane->owner == NULL ? &lanes->shared : &lanes->private, &lane->in_home);
    if (lane->key.user == NULL)
        atomic_store_explicit(&lanes->upstream->needs_auth, needs_auth, memory_order_relaxed);
    if (lanes->is_down)
        log_info("upstream %s is back", lanes->upstream->text);
    lanes->is_down = false;
    backoff_reset(&lanes->backoff);
}

void lanes_on_failed(struct lanes *lanes, const struct lane *lane, bool was_ready, const char *why)
{
    if (lanes->is_closing)
        return;
    bool is_kept = lanes->keeps_shared && lane->owner == NULL;
    if (was_ready) {
        if (lane->owner == NULL || lane->is_watching)
            log_warn("upstream %s: a %s connection is closed: %s", lanes->upstream->text,
                     lane->owner == NULL ? "shared" : "private", why);
        if (is_kept && find_shared(&lanes->opening, &newcomer) == NULL)
            (void)open_lane(lanes, &newcomer, NULL);
        return;
    }
    if (!is_kept && !list_is_empty(&lanes->shared)) {
        log_warn("upstream %s: cannot open another connection: %s", lanes->upstream->text, why);
        return;
    }
    if (!lanes->is_down)
        log_warn("upstream %s is away: %s", lanes->upstream->text, why);
    lanes->is_down = true;
    backoff_fail(&lanes->backoff, clock_ns());
    keep_ticking(lanes);
}

static void close_all(struct list *list)
{
    while (!list_is_empty(list))
        lane_fail(container_of(list->next, struct lane, in_home), "weir stops");
}

void lanes_close(struct lanes *lanes)
{
    lanes->is_closing = true;
    close_all(&lanes->opening);
    close_all(&lanes->shared);
    close_all(&lanes->private);
    uv_close((uv_handle_t *)&lanes->tick, NULL);
}
