#include "upstream/timers.h"

#include "base/clock.h"

#define TICK_MS 20    /* resolution of deadlines and back-off; only while one of them runs */
#define SWEEP_MS 1000 /* looking for lanes that have been idle for long */
#define SWEEP_PARTS 4 /* an upstream-timeout is noticed this many times finer than it is */

/* ---- what is a matter of milliseconds ---- */

static void expire_opening(struct lanes *lanes, uint64_t now_ns)
{
    struct list *next;
    for (struct list *at = lanes->opening.next; at != &lanes->opening; at = next) {
        next = at->next;
        uint64_t deadline_ns = lanes_at(at)->deadline_ns;
        if (deadline_ns == 0 || now_ns < deadline_ns)
            continue;
        lanes_at(at)->is_late = lanes_at(at)->state == LANE_GREETING;
        lane_fail(lanes_at(at), "it does not answer in time");
    }
}

/* Whoever holds others up with a reply it does not read has a second. */
static void expire_retired(struct lanes *lanes, uint64_t now_ns)
{
    struct list *next;
    for (struct list *at = lanes->retired.next; at != &lanes->retired; at = next) {
        struct lane *lane = lanes_at(at);
        next = at->next;
        if (lane->stalled == NULL || !lane_has_others_waiting(lane))
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
    bool is_waiting = lanes_retry(lanes, now_ns);
    if (list_is_empty(&lanes->opening) && list_is_empty(&lanes->retired) && !is_waiting)
        uv_timer_stop(timer);
}

/* ---- and of seconds ---- */

static void fail_hung(struct list *list, uint64_t since_ns)
{
    struct list now;
    list_take_all(&now, list);
    while (!list_is_empty(&now)) {
        struct lane *lane = lanes_at(now.next);
        lanes_move(lane, list);
        lane->is_hung = lane_is_hung(lane, since_ns);
        if (lane->is_hung)
            lane_fail(lane, "it does not answer within upstream-timeout");
    }
}

static void close_old(struct lanes *lanes, uint64_t now_ns)
{
    while (!list_is_empty(&lanes->idle) && now_ns - lanes_at(lanes->idle.next)->moved_ns > LANES_IDLE_NS)
        lane_fail(lanes_at(lanes->idle.next), "it was idle");
}

static void judge_unread(struct list *list, uint64_t now_ns)
{
    struct list now;
    list_take_all(&now, list);
    while (!list_is_empty(&now)) {
        struct lane *lane = lanes_at(now.next);
        lanes_move(lane, list);
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

static bool has_only_newcomers(const struct lanes *lanes)
{
    for (const struct list *at = lanes->shared.next; at != &lanes->shared; at = at->next)
        if (!lanes_is_newcomers(lanes, container_of(at, struct lane, in_home)))
            return false;
    return true;
}

static void close_unused(struct lanes *lanes, uint64_t now_ns)
{
    struct list *next;
    for (struct list *at = lanes->shared.next; at != &lanes->shared; at = next) {
        struct lane *lane = lanes_at(at);
        next = at->next;
        if (now_ns - lane->moved_ns > LANES_UNUSED_NS && lanes_is_expendable(lanes, lane))
            lanes_keep_idle(lanes, lane);
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

/* ---- the two timers ---- */

void timers_tick(struct lanes *lanes)
{
    if (!uv_is_active((uv_handle_t *)&lanes->tick))
        uv_timer_start(&lanes->tick, on_tick, TICK_MS, TICK_MS);
}

void timers_sweep(struct lanes *lanes)
{
    uint64_t timeout_ms = lanes->upstream->timeout_ns / NS_PER_MS;
    uint64_t every_ms = timeout_ms > 0 && timeout_ms / SWEEP_PARTS < SWEEP_MS ? timeout_ms / SWEEP_PARTS + 1 : SWEEP_MS;
    if (!uv_is_active((uv_handle_t *)&lanes->sweep))
        uv_timer_start(&lanes->sweep, on_sweep, every_ms, every_ms);
}

void timers_init(struct lanes *lanes)
{
    uv_timer_init(&lanes->loop->uv, &lanes->tick);
    uv_timer_init(&lanes->loop->uv, &lanes->sweep);
    lanes->tick.data = lanes;
    lanes->sweep.data = lanes;
    if (lanes->upstream->timeout_ns > 0)
        timers_sweep(lanes);
}

void timers_close(struct lanes *lanes)
{
    uv_close((uv_handle_t *)&lanes->tick, NULL);
    uv_close((uv_handle_t *)&lanes->sweep, NULL);
}
