#include "upstream/lane/prolong.h"

#include "upstream/lane/shared.h"

#define AGAIN_NS (60 * NS_PER_S) /* a lane is told of a newer password no more often */
#define BUSY_LOOKS 5             /* with calls in flight at so many looks in a row: another lane takes its place */

static bool is_weirs(const struct lane *lane)
{
    return lane->key.login != NULL && lane->key.login->is_weirs;
}

/* The newest password of the lane's user that the node has accepted; NULL: none is known. */
static struct login *newest_of(const struct lane *lane)
{
    const struct own_login *own = &lane->base->commons->own;
    if (!is_weirs(lane))
        return auth_user_newest(lane->user);
    uint32_t proven = atomic_load_explicit(&lane_node(lane)->proven_number, memory_order_relaxed);
    return proven == own->number ? own->newest : NULL;
}

/* Was it opened, and has it spoken, before that one was proven? */
static bool is_behind(const struct lane *lane)
{
    const struct login *newest = newest_of(lane);
    return newest != NULL && lane->key.login != newest && (is_weirs(lane) || !login_same(lane->key.login, newest));
}

static bool is_due(const struct lanes *lanes, const struct lane *lane, uint64_t now_ns)
{
    return is_behind(lane) &&
           (lane->prolonged_ns == 0 || now_ns - lane->prolonged_ns >= upstream_time(lanes->upstream, AGAIN_NS));
}

/*
 * In MULTI, AUTH would be queued; to a subscriber in RESP2 it is refused; behind what blocks it waits; and where a push
 * may come before its answer, Redis may leave it without one (lane_prolong).
 */
static bool may_speak(const struct lane *lane)
{
    if (!lane_is_clean(lane) || lane->beside != BESIDE_NOTHING || lane->is_spent || lane->is_parted ||
        lane_is_untrusted(lane) || lane_is_asked(lane) || lane_is_congested(lane))
        return false;
    const struct rider *owner = lane->owner;
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
        if (may_speak(lane))
            speak(lane, now_ns);
        else if (in == LIST_SHARED && ++lane->n_behind >= BUSY_LOOKS)
            (void)shared_retire(lane);
    }
}

/* What is kept for later logs in anew when it is lent, and a spare one can be had again. */
static void close_spare(struct lanes *lanes)
{
    struct list *next;
    for (struct list *at = lanes->lists[LIST_SPARE].next; at != &lanes->lists[LIST_SPARE]; at = next) {
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
        if (is_weirs(lanes_at(at)) && lanes_at(at)->key.login != lanes->base.commons->own.newest)
            return true;
    return false;
}

bool prolong_is_over(const struct lanes *lanes)
{
    return lanes->base.users.n == 0 && !has_older(lanes, LIST_SHARED) && !has_older(lanes, LIST_PRIVATE);
}

void prolong_look(struct lanes *lanes, uint64_t now_ns)
{
    if (prolong_is_over(lanes))
        return;
    close_spare(lanes);
    look_at_all(lanes, LIST_SHARED, now_ns);
    look_at_all(lanes, LIST_PRIVATE, now_ns);
}
