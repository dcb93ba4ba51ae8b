#include "upstream/lane/timers.h"

#include "net/tcp_peer.h"
#include "upstream/lane/lanes.h"
#include "upstream/lane/shared.h"
#include "upstream/lane/slow_reader.h"
#include "upstream/node/health.h"

/* chosen: idle and spare lanes are closed after this time */
#define IDLE_NS (3 * NS_PER_S)
#define IDLE_TIGHT_NS (100 * NS_PER_MS) /* chosen: as IDLE_NS, when room is tight */
/* chosen: an unused shared lane is closed after this time */
#define UNUSED_NS (60 * NS_PER_S)
#define UNUSED_FULL_NS (1 * NS_PER_S) /* chosen: as UNUSED_NS, when the room is full */
/* chosen: how long a reader may read nothing before output-limit applies to the reader */
#define UNREAD_NS (5 * NS_PER_S)
/* chosen: how long weir waits for Redis on behalf of a client that has closed its side */
#define GONE_NS (10 * NS_PER_S)
/* chosen: least time between two AUTH with newer passwords on one lane */
#define AGAIN_NS (60 * NS_PER_S)
/* chosen: a lane with calls in flight at this many checks in a row is replaced */
#define BUSY_LOOKS 5

/*
 * ---- newer passwords ----
 *
 * Lanes of a user send AUTH again when a newer password of the user has been proven. Services with
 * short-lived passwords close connections with an expired password. The reply to AUTH is dropped,
 * and the lane stays as it is.
 */

static bool is_weirs(const struct lane *lane)
{
    return lane->key.login != NULL && lane->key.login->is_weirs;
}

/*
 * The newest password of the lane's user that the node has accepted; NULL: no accepted password is
 * known.
 */
static struct login *newest_of(const struct lane *lane)
{
    const struct own_login *own = &lane->base->worker_lanes->own;
    if (!is_weirs(lane))
        return auth_user_newest(lane->user);
    uint32_t proven = atomic_load_explicit(&lane_node(lane)->proven_number, memory_order_relaxed);
    return proven == own->number ? own->newest : NULL;
}

/* True if the lane logged in with an older password than the newest proven password. */
static bool is_behind(const struct lane *lane)
{
    const struct login *newest = newest_of(lane);
    return newest != NULL && lane->key.login != newest &&
           (is_weirs(lane) || !login_same(lane->key.login, newest));
}

static bool is_due(const struct lanes *lanes, const struct lane *lane, uint64_t now_ns)
{
    return is_behind(lane) &&
           (lane->prolonged_ns == 0 ||
            now_ns - lane->prolonged_ns >= upstream_time(lanes->upstream, AGAIN_NS));
}

/*
 * True if the lane can send AUTH now. Inside MULTI, AUTH would be queued. On a RESP2 subscriber
 * AUTH would be refused. Behind a blocked command AUTH would wait. If a push may precede the
 * answer, Redis may send no answer (lane_prolong).
 */
static bool timers_may_speak(const struct lane *lane)
{
    if (!lane_is_clean(lane) || lane->beside != BESIDE_NOTHING || lane->is_not_reusable ||
        lane->is_parted || lane_is_untrusted(lane) || lane_is_asked(lane) ||
        lane_is_congested(lane))
        return false;
    const struct lane_user *owner = lane->owner;
    return owner == NULL || (owner->ops->may_log_in != NULL && owner->ops->may_log_in(owner));
}

static void speak(struct lane *lane, uint64_t now_ns)
{
    lane->prolonged_ns = now_ns;
    lane->n_behind = 0;
    if (!lane_prolong(lane, newest_of(lane)))
        return;
    if (lane->owner != NULL)
        lane->owner->wants_idle = true;
}

static void look_at_all(struct lanes *lanes, enum lane_list in, uint64_t now_ns)
{
    struct list *next;
    for (struct list *at = lanes->lists[in].next; at != &lanes->lists[in]; at = next) {
        struct lane *lane = lanes_at(at);
        next = at->next;
        if (!is_due(lanes, lane, now_ns))
            continue;
        if (timers_may_speak(lane))
            speak(lane, now_ns);
        else if (in == LIST_SHARED && ++lane->n_behind >= BUSY_LOOKS)
            (void)shared_retire(lane);
    }
}

/*
 * Closes spare lanes with an older password, which are cheap to open again. Idle lanes log in anew
 * when lent.
 */
static void close_spare(struct lanes *lanes)
{
    struct list *next;
    for (struct list *at = lanes->lists[LIST_SPARE].next; at != &lanes->lists[LIST_SPARE];
         at = next) {
        struct lane *lane = lanes_at(at);
        next = at->next;
        if (is_behind(lane) && !auth_user_needs_it(lane->user))
            lane_close(lane);
    }
}

static bool has_older(const struct lanes *lanes, enum lane_list in)
{
    const struct list *list = &lanes->lists[in];
    for (struct list *at = list->next; at != list; at = at->next)
        if (is_weirs(lanes_at(at)) &&
            lanes_at(at)->key.login != lanes->base.worker_lanes->own.newest)
            return true;
    return false;
}

/* True if no lane is left to log in again. */
static bool prolong_is_over(const struct lanes *lanes)
{
    return lanes->base.users.n == 0 && !has_older(lanes, LIST_SHARED) &&
           !has_older(lanes, LIST_PRIVATE);
}

/* Called once a second. */
static void prolong_look(struct lanes *lanes, uint64_t now_ns)
{
    if (prolong_is_over(lanes))
        return;
    close_spare(lanes);
    look_at_all(lanes, LIST_SHARED, now_ns);
    look_at_all(lanes, LIST_PRIVATE, now_ns);
}

/* ---- the tick: milliseconds ---- */

static void expire_opening(struct lanes *lanes, uint64_t now_ns)
{
    struct list *next;
    for (struct list *at = lanes->lists[LIST_OPENING].next; at != &lanes->lists[LIST_OPENING];
         at = next) {
        next = at->next;
        uint64_t deadline_ns = lanes_at(at)->deadline_ns;
        if (deadline_ns == 0 || now_ns < deadline_ns)
            continue;
        lane_fail(lanes_at(at), lane_is_taken(lanes_at(at)) ? END_LATE : END_LOST,
                  "it does not answer in time");
    }
}

/*
 * A slow reader with other calls behind its reply gets a second. The lane was retired for the
 * reply, or cannot be retired because no lane like it can be opened.
 */
static void expire_slow_user(struct lanes *lanes, enum lane_list in, uint64_t now_ns)
{
    struct list *next;
    for (struct list *at = lanes->lists[in].next; at != &lanes->lists[in]; at = next) {
        struct lane *lane = lanes_at(at);
        next = at->next;
        if (in == LIST_SHARED && !slow_reader_is_in_huge(lane))
            lane->deadline_ns = 0; /* the huge reply is over */
        if (lane->slow_user == NULL || !lane_has_others_waiting(lane))
            continue;
        if (slow_reader_absorb_late(lane)) {
            lane_catch_up(lane->slow_user);
            continue;
        }
        if (now_ns < lane->deadline_ns)
            continue;
        lane->slow_user->ops->on_blocking(lane->slow_user);
    }
}

/* True if a shared lane carries a huge reply that its reader does not read. */
static bool has_deadline(const struct list *shared)
{
    for (const struct list *at = shared->next; at != shared; at = at->next)
        if (container_of(at, struct lane, in_list)->deadline_ns != 0)
            return true;
    return false;
}

static void wake_hoping(struct lanes *lanes)
{
    while (worker_lanes_wake_retrying(lanes->base.worker_lanes))
        ;
}

/* Lanes to a node that has left the topology close when their calls are answered. */
static void close_done(struct lanes *lanes)
{
    struct list *next;
    for (struct list *at = lanes->lists[LIST_RETIRED].next; at != &lanes->lists[LIST_RETIRED];
         at = next) {
        struct lane *lane = lanes_at(at);
        next = at->next;
        if (calls_is_empty(&lane->calls))
            lane_close(lane);
    }
}

static void fail_hung(struct lanes *lanes, enum lane_list in, uint64_t since_ns, const char *why)
{
    struct list now;
    list_take_all(&now, &lanes->lists[in]);
    while (!list_is_empty(&now)) {
        struct lane *lane = lanes_at(now.next);
        lanes_move(lane, in);
        if (lane_is_hung(lane, since_ns))
            lane_fail(lane, END_LATE, why);
    }
}

/*
 * Closes silent lanes to a former master that has been replaced. weir waits for that master's
 * answers. After connect-timeout of silence a lane is closed, like a lane that could not connect.
 */
static void fail_replaced(struct lanes *lanes, uint64_t now_ns)
{
    uint64_t since_ns = now_ns - lanes->upstream->connect_timeout_ns;
    for (int in = LIST_SHARED; in < LIST_COUNT; in++)
        fail_hung(lanes, (enum lane_list)in, since_ns,
                  "it does not answer, and is no longer the master");
}

static bool owes_answers(const struct lanes *lanes)
{
    const struct lane_counts *counts = &lanes->base.counts;
    return count_read(&counts->in_flight) > count_read(&counts->blocking);
}

static bool is_replaced(const struct lanes *lanes)
{
    return lanes->is_retired && node_is_demoted(lanes_node(lanes));
}

static void timers_on_tick(uv_timer_t *timer)
{
    struct lanes *lanes = timer->data;
    uint64_t now_ns = clock_ns();
    if (lanes->is_retired)
        close_done(lanes);
    if (is_replaced(lanes))
        fail_replaced(lanes, now_ns);
    expire_opening(lanes, now_ns);
    expire_slow_user(lanes, LIST_RETIRED, now_ns);
    expire_slow_user(lanes, LIST_SHARED, now_ns);
    wake_hoping(lanes);
    bool is_waiting = health_retry(lanes, now_ns);
    if (list_is_empty(&lanes->lists[LIST_OPENING]) && list_is_empty(&lanes->lists[LIST_RETIRED]) &&
        !is_waiting && !has_deadline(&lanes->lists[LIST_SHARED]) &&
        !(is_replaced(lanes) && owes_answers(lanes)))
        uv_timer_stop(timer);
}

/* ---- the sweep: seconds ---- */

/* True if nothing has arrived since `since_ns`, and the lane is being read. */
static bool is_silent(const struct lane *lane, uint64_t since_ns)
{
    return lane->slow_user == NULL && !lane->link.is_paused && lane->moved_ns < since_ns;
}

/*
 * Returns why the lane must close, or NULL. An answer that decides a client's identity has a
 * deadline. A nonce has a deadline once an answer has begun to arrive, because a forged answer may
 * never end. For a client that has closed its side weir waits GONE_NS.
 */
static const char *why_over(struct lanes *lanes, const struct lane *lane, uint64_t now_ns)
{
    if (lane->answer_by_ns != 0 && now_ns >= lane->answer_by_ns)
        return "Redis did not answer a login in time";
    if (lane_is_asked(lane) && lane_is_in_frame(lane) &&
        is_silent(lane, now_ns - upstream_time(lanes->upstream, LANES_CLEAN_NS)))
        return "a reply has begun and does not end";
    bool is_left = lane->owner != NULL && lane->owner->is_gone;
    return is_left && lane_is_hung(lane, now_ns - upstream_time(lanes->upstream, GONE_NS))
               ? "its client has left, and Redis does not answer its last request"
               : NULL;
}

static void fail_unanswered(struct lanes *lanes, enum lane_list in, uint64_t now_ns)
{
    struct list now;
    list_take_all(&now, &lanes->lists[in]);
    while (!list_is_empty(&now)) {
        struct lane *lane = lanes_at(now.next);
        lanes_move(lane, in);
        const char *why = why_over(lanes, lane, now_ns);
        if (why != NULL)
            lane_fail(lane, END_LATE, why);
    }
}

/* Close lanes to a server host that no longer answers. */
static void fail_vanished(struct lanes *lanes, enum lane_list in)
{
    struct list now;
    list_take_all(&now, &lanes->lists[in]);
    while (!list_is_empty(&now)) {
        struct lane *lane = lanes_at(now.next);
        lanes_move(lane, in);
        if (link_has_vanished(&lane->link))
            lane_fail(lane, END_LOST, "its host no longer answers");
    }
}

static void look_for_vanished(struct lanes *lanes, uint64_t now_ns)
{
    if (now_ns - lanes->looked_ns < tcp_peer_look_ns())
        return;
    lanes->looked_ns = now_ns;
    for (int in = LIST_SHARED; in < LIST_COUNT; in++)
        fail_vanished(lanes, (enum lane_list)in);
}

static void close_old(struct lanes *lanes, enum lane_list in, uint64_t now_ns)
{
    uint64_t most_ns = room_is_tight(lanes_room(lanes)) ? IDLE_TIGHT_NS : IDLE_NS;
    most_ns = upstream_time(lanes->upstream, most_ns);
    struct list *list = &lanes->lists[in];
    struct list *next;
    for (struct list *at = list->next; at != list && now_ns - lanes_at(at)->moved_ns > most_ns;
         at = next) {
        next = at->next;
        if (!auth_user_needs_it(lanes_at(at)->user))
            lane_close(lanes_at(at));
    }
}

static void judge_unread(struct lanes *lanes, enum lane_list in, uint64_t now_ns)
{
    struct list now;
    list_take_all(&now, &lanes->lists[in]);
    while (!list_is_empty(&now)) {
        struct lane *lane = lanes_at(now.next);
        lanes_move(lane, in);
        if (slow_reader_is_unread(lane, now_ns, now_ns - UNREAD_NS))
            lane->slow_user->ops->on_unread(lane->slow_user,
                                            lane->frame_bytes + lane->scan.bulk_left);
    }
}

static bool has_slow_user(const struct list *list)
{
    for (const struct list *at = list->next; at != list; at = at->next)
        if (container_of(at, struct lane, in_list)->slow_user != NULL)
            return true;
    return false;
}

static bool has_only_newcomers(const struct lanes *lanes)
{
    for (const struct list *at = lanes->lists[LIST_SHARED].next; at != &lanes->lists[LIST_SHARED];
         at = at->next)
        if (!lanes_is_newcomers(lanes, container_of(at, struct lane, in_list)))
            return false;
    return true;
}

static void see_users(struct lanes *lanes)
{
    for (struct list *at = lanes->lists[LIST_PRIVATE].next; at != &lanes->lists[LIST_PRIVATE];
         at = at->next)
        lane_see_user(lanes_at(at));
}

/*
 * Closes unused shared lanes: clients that come back open other lanes. If the room is full, unused
 * lanes make room for other users, and the auth proofs of the clients on these lanes end.
 */
static void close_unused(struct lanes *lanes, uint64_t now_ns)
{
    bool is_full = room_is_full(lanes_room(lanes));
    uint64_t most_ns = upstream_time(lanes->upstream, is_full ? UNUSED_FULL_NS : UNUSED_NS);
    struct list *next;
    for (struct list *at = lanes->lists[LIST_SHARED].next; at != &lanes->lists[LIST_SHARED];
         at = next) {
        struct lane *lane = lanes_at(at);
        next = at->next;
        if (now_ns - lane->moved_ns > most_ns && lanes_is_expendable(lanes, lane) &&
            (is_full || !(auth_user_needs_it(lane->user) || witness_is_last(lane))))
            lane_close(lane);
    }
}

static bool may_be_over(const struct lane *lane)
{
    return lane->answer_by_ns != 0 || lane_is_asked(lane) ||
           (lane->owner != NULL && lane->owner->is_gone);
}

static bool has_question(const struct list *list)
{
    for (const struct list *at = list->next; at != list; at = at->next)
        if (may_be_over(container_of(at, struct lane, in_list)))
            return true;
    return false;
}

/* For operators: how long Redis has owed its oldest answer. */
static void note_oldest(struct lanes *lanes, uint64_t now_ns)
{
    uint64_t oldest_ns = 0;
    for (int in = LIST_SHARED; in < LIST_COUNT; in++)
        for (struct list *at = lanes->lists[in].next; at != &lanes->lists[in]; at = at->next) {
            uint64_t owes_ns = lane_owes_ns(lanes_at(at), now_ns);
            oldest_ns = owes_ns > oldest_ns ? owes_ns : oldest_ns;
        }
    atomic_store_explicit(&lanes->oldest_ns, oldest_ns, memory_order_relaxed);
}

/* True if no lane needs another check. */
static bool is_done(const struct lanes *lanes)
{
    const struct list *lists = lanes->lists;
    return lanes->upstream->timeout_ns == 0 && !owes_answers(lanes) &&
           list_is_empty(&lists[LIST_IDLE]) && list_is_empty(&lists[LIST_SPARE]) &&
           list_is_empty(&lists[LIST_RETIRED]) && has_only_newcomers(lanes) &&
           !has_slow_user(&lists[LIST_SHARED]) && !has_slow_user(&lists[LIST_PRIVATE]) &&
           !has_question(&lists[LIST_PRIVATE]) && !has_question(&lists[LIST_AUTH_LANE]) &&
           prolong_is_over(lanes);
}

static void on_sweep(uv_timer_t *timer)
{
    struct lanes *lanes = timer->data;
    uint64_t now_ns = clock_ns();
    uint64_t timeout_ns = lanes->upstream->timeout_ns;
    close_old(lanes, LIST_IDLE, now_ns);
    close_old(lanes, LIST_SPARE, now_ns);
    close_unused(lanes, now_ns);
    see_users(lanes);
    prolong_look(lanes, now_ns);
    judge_unread(lanes, LIST_SHARED, now_ns);
    judge_unread(lanes, LIST_RETIRED, now_ns);
    judge_unread(lanes, LIST_PRIVATE, now_ns);
    fail_unanswered(lanes, LIST_PRIVATE, now_ns);
    fail_unanswered(lanes, LIST_AUTH_LANE, now_ns);
    for (int in = LIST_SHARED; timeout_ns > 0 && in < LIST_COUNT; in++)
        fail_hung(lanes, (enum lane_list)in, now_ns - timeout_ns,
                  "it does not answer within upstream-timeout");
    look_for_vanished(lanes, now_ns);
    note_oldest(lanes, now_ns);
    if (is_done(lanes))
        uv_timer_stop(timer);
}

/* ---- the two timers ---- */

void timers_init(struct lanes *lanes)
{
    uv_timer_init(&lanes_loop(lanes)->uv, &lanes->tick);
    uv_timer_init(&lanes_loop(lanes)->uv, &lanes->sweep);
    lanes->n_timers = 2;
    lanes->tick.data = lanes;
    lanes->sweep.data = lanes;
    lanes->on_tick = timers_on_tick;
    lanes->on_sweep = on_sweep;
    if (lanes->upstream->timeout_ns > 0)
        lanes_sweep(lanes);
}

static void timers_on_closed(uv_handle_t *handle)
{
    struct lanes *lanes = handle->data;
    if (--lanes->n_timers == 0 && lanes->on_unused != NULL)
        lanes->on_unused(lanes);
}

void timers_close(struct lanes *lanes)
{
    uv_close((uv_handle_t *)&lanes->tick, timers_on_closed);
    uv_close((uv_handle_t *)&lanes->sweep, timers_on_closed);
}
