#include "upstream/timers.h"

#include "base/clock.h"
#include "upstream/lend.h"

#define TICK_MS 20    /* resolution of deadlines and back-off; only while one of them runs */
#define SWEEP_MS 1000 /* looking for lanes that have been idle for long */
#define SWEEP_PARTS 4 /* an upstream-timeout is noticed this many times finer than it is */

/* ---- what is a matter of milliseconds ---- */

static void expire_opening(struct lanes *lanes, uint64_t now_ns)
{
    struct list *next;
    for (struct list *at = lanes->lists[LIST_OPENING].next; at != &lanes->lists[LIST_OPENING]; at = next) {
        next = at->next;
        uint64_t deadline_ns = lanes_at(at)->deadline_ns;
        if (deadline_ns == 0 || now_ns < deadline_ns)
            continue;
        lane_fail(lanes_at(at), lanes_at(at)->state == LANE_GREETING ? END_LATE : END_LOST,
                  "it does not answer in time");
    }
}

/* Whoever holds others up with a reply it does not read has a second. */
static void expire_retired(struct lanes *lanes, uint64_t now_ns)
{
    struct list *next;
    for (struct list *at = lanes->lists[LIST_RETIRED].next; at != &lanes->lists[LIST_RETIRED]; at = next) {
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

static void wake_hoping(struct lanes *lanes)
{
    while (lanes_wake_hoping(lanes))
        ;
}

/*
 * Shared lanes that nobody remembers count for somebody still. Of those that are kept for the next as many as are
 * wanted, and no more: what is closed without need is opened again by whoever would have come next.
 */
static void on_shed(uv_async_t *shed)
{
    struct lanes *lanes = shed->data;
    struct room *room = &lanes->upstream->room;
    while (lanes_close_unleased(lanes, 0))
        ;
    while (room_is_wanted(room))
        if (!lend_close_one(lanes)) {
            room_want(room); /* some other worker keeps one, or will */
            return;
        }
}

static void on_tick(uv_timer_t *timer)
{
    struct lanes *lanes = timer->data;
    uint64_t now_ns = clock_ns();
    expire_opening(lanes, now_ns);
    expire_retired(lanes, now_ns);
    wake_hoping(lanes);
    bool is_waiting = lanes_retry(lanes, now_ns);
    if (list_is_empty(&lanes->lists[LIST_OPENING]) && list_is_empty(&lanes->lists[LIST_RETIRED]) && !is_waiting)
        uv_timer_stop(timer);
}

/* ---- and of seconds ---- */

static void fail_hung(struct lanes *lanes, enum lane_list in, uint64_t since_ns)
{
    struct list now;
    list_take_all(&now, &lanes->lists[in]);
    while (!list_is_empty(&now)) {
        struct lane *lane = lanes_at(now.next);
        lanes_move(lane, in);
        if (lane_is_hung(lane, since_ns))
            lane_fail(lane, END_LATE, "it does not answer within upstream-timeout");
    }
}

/* Has nothing come for so long, though its reader keeps up? */
static bool is_silent(const struct lane *lane, uint64_t since_ns)
{
    return lane->stalled == NULL && !lane->link.is_paused && lane->moved_ns < since_ns;
}

/*
 * A question whose answer says who somebody is has a time of its own; so has one that is to prove the answers before
 * it, once an answer has begun, which may be a forged one that never ends, or one of EXEC that lacks a part: from 7.2
 * on Redis says nothing of a login that fails there. And who has closed his side is not waited for for ever.
 */
static bool is_over(struct lanes *lanes, const struct lane *lane, uint64_t now_ns)
{
    if (lane->answer_by_ns != 0 && now_ns >= lane->answer_by_ns)
        return true;
    if ((lane->is_asked || lane->is_telling) && lane->is_in_frame &&
        is_silent(lane, now_ns - lanes_time(lanes, LANES_CLEAN_NS)))
        return true;
    return lane->owner != NULL && lane->owner->is_gone && lane_is_hung(lane, now_ns - lanes_time(lanes, LANES_GONE_NS));
}

static void fail_unanswered(struct lanes *lanes, enum lane_list in, uint64_t now_ns)
{
    struct list now;
    list_take_all(&now, &lanes->lists[in]);
    while (!list_is_empty(&now)) {
        struct lane *lane = lanes_at(now.next);
        lanes_move(lane, in);
        if (is_over(lanes, lane, now_ns))
            lane_fail(lane, END_LATE, "what it answers has no end");
    }
}

static void close_old(struct lanes *lanes, enum lane_list in, uint64_t now_ns)
{
    uint64_t most_ns = room_is_tight(&lanes->upstream->room) ? LANES_IDLE_TIGHT_NS : LANES_IDLE_NS;
    most_ns = lanes_time(lanes, most_ns);
    struct list *list = &lanes->lists[in];
    while (!list_is_empty(list) && now_ns - lanes_at(list->next)->moved_ns > most_ns)
        lane_close(lanes_at(list->next));
}

static void judge_unread(struct lanes *lanes, enum lane_list in, uint64_t now_ns)
{
    struct list now;
    list_take_all(&now, &lanes->lists[in]);
    while (!list_is_empty(&now)) {
        struct lane *lane = lanes_at(now.next);
        lanes_move(lane, in);
        if (lane_is_unread(lane, now_ns, now_ns - LANES_UNREAD_NS))
            lane->stalled->ops->on_unread(lane->stalled, lane->frame_bytes + lane->scan.bulk_left);
    }
}

static bool has_stalled(const struct list *list)
{
    for (const struct list *at = list->next; at != list; at = at->next)
        if (container_of(at, struct lane, in_list)->stalled != NULL)
            return true;
    return false;
}

static bool has_only_newcomers(const struct lanes *lanes)
{
    for (const struct list *at = lanes->lists[LIST_SHARED].next; at != &lanes->lists[LIST_SHARED]; at = at->next)
        if (!lanes_is_newcomers(lanes, container_of(at, struct lane, in_list)))
            return false;
    return true;
}

/* Its clients, if it has any, open another when they come back. */
static void close_unused(struct lanes *lanes, uint64_t now_ns)
{
    struct list *next;
    for (struct list *at = lanes->lists[LIST_SHARED].next; at != &lanes->lists[LIST_SHARED]; at = next) {
        struct lane *lane = lanes_at(at);
        next = at->next;
        if (now_ns - lane->moved_ns > lanes_time(lanes, LANES_UNUSED_NS) && lanes_is_expendable(lanes, lane))
            lane_close(lane);
    }
}

static bool may_be_over(const struct lane *lane)
{
    return lane->answer_by_ns != 0 || lane->is_asked || lane->is_telling ||
           (lane->owner != NULL && lane->owner->is_gone);
}

static bool has_question(const struct list *list)
{
    for (const struct list *at = list->next; at != list; at = at->next)
        if (may_be_over(container_of(at, struct lane, in_list)))
            return true;
    return false;
}

/* Is there anything to be looked at again? */
static bool is_done(const struct lanes *lanes)
{
    const struct list *lists = lanes->lists;
    return lanes->upstream->timeout_ns == 0 && list_is_empty(&lists[LIST_IDLE]) && list_is_empty(&lists[LIST_SPARE]) &&
           list_is_empty(&lists[LIST_RETIRED]) && has_only_newcomers(lanes) && !has_stalled(&lists[LIST_PRIVATE]) &&
           !has_question(&lists[LIST_PRIVATE]) && !has_question(&lists[LIST_DOOR]);
}

static void on_sweep(uv_timer_t *timer)
{
    struct lanes *lanes = timer->data;
    uint64_t now_ns = clock_ns();
    uint64_t timeout_ns = lanes->upstream->timeout_ns;
    close_old(lanes, LIST_IDLE, now_ns);
    close_old(lanes, LIST_SPARE, now_ns);
    close_unused(lanes, now_ns);
    judge_unread(lanes, LIST_RETIRED, now_ns);
    judge_unread(lanes, LIST_PRIVATE, now_ns);
    fail_unanswered(lanes, LIST_PRIVATE, now_ns);
    fail_unanswered(lanes, LIST_DOOR, now_ns);
    for (int in = LIST_SHARED; timeout_ns > 0 && in < LIST_COUNT; in++)
        fail_hung(lanes, (enum lane_list)in, now_ns - timeout_ns);
    if (is_done(lanes))
        uv_timer_stop(timer);
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
    uint64_t most_ms = lanes_time(lanes, SWEEP_MS * NS_PER_MS) / NS_PER_MS;
    uint64_t every_ms = timeout_ms > 0 && timeout_ms / SWEEP_PARTS < most_ms ? timeout_ms / SWEEP_PARTS + 1 : most_ms;
    if (!uv_is_active((uv_handle_t *)&lanes->sweep))
        uv_timer_start(&lanes->sweep, on_sweep, every_ms, every_ms);
}

void timers_init(struct lanes *lanes)
{
    uv_timer_init(&lanes->loop->uv, &lanes->tick);
    uv_timer_init(&lanes->loop->uv, &lanes->sweep);
    uv_async_init(&lanes->loop->uv, &lanes->shed, on_shed);
    lanes->shed.data = lanes;
    lanes->tick.data = lanes;
    lanes->sweep.data = lanes;
    if (lanes->upstream->timeout_ns > 0)
        timers_sweep(lanes);
}

void timers_close(struct lanes *lanes)
{
    uv_close((uv_handle_t *)&lanes->tick, NULL);
    uv_close((uv_handle_t *)&lanes->sweep, NULL);
    uv_close((uv_handle_t *)&lanes->shed, NULL);
}
