#include "quota/release_listener.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "limit/command/command.h"
#include "quota/answer.h"
#include "resp/emit.h"
#include "upstream/lane/lack.h"

#define FRAME_MAX (1 << 20)
#define AGAIN_NS (500 * NS_PER_MS) /* as CIRCUIT_AGAIN_NS */

static struct release_listener *release_listener_of(struct lane_user *lane_user)
{
    return container_of(lane_user, struct release_listener, base.lane_user);
}

/*
 * Wakes the calls about the key, or all calls. on_wake may remove any call, so the calls are taken
 * from a list of their own.
 */
static void release_listener_wake(struct release_listener *listener, bool has_key, struct slice key)
{
    struct list now;
    list_take_all(&now, &listener->waiting);
    while (!list_is_empty(&now)) {
        struct decision *decision = container_of(now.next, struct decision, in_listener);
        list_take(&decision->in_listener);
        list_push(&listener->waiting, &decision->in_listener);
        if (!has_key || slice_eq(decision->key, key))
            listener->on_wake(decision);
    }
}

/* Resets the state of the connection. */
static void release_listener_forget(struct release_listener *listener)
{
    listener->is_subscribed = false;
    listener->frame.len = 0;
    memset(&listener->scan, 0, sizeof listener->scan);
}

static void close_lane(struct release_listener *listener)
{
    weir_lane_close(&listener->base);
    release_listener_forget(listener);
}

static void try_later(struct release_listener *listener)
{
    if (!list_is_empty(&listener->waiting) && !alarm_is_set(&listener->again))
        alarm_set(listener->alarms, &listener->again,
                  lanes_loop(listener->base.lanes)->now_ns + AGAIN_NS);
}

/* ---- messages ---- */

static void release_listener_take_frame(struct release_listener *listener, struct slice frame)
{
    struct slice key;
    struct node *node = lanes_node(listener->base.lanes);
    if (lack_is_refused(frame, "subscribe"))
        node_lacks(node, LACK_SUBSCRIBE);
    else if (lack_is_channel(frame))
        node_lacks(node, LACK_CHANNEL);
    /* weir may not subscribe: each failed try wakes all calls, until weir may subscribe */
    if (frame.at[0] == '-') {
        close_lane(listener);
        try_later(listener);
        release_listener_wake(listener, false, SLICE(""));
        return;
    }
    switch (release_read(frame, slice_str(listener->channel), &key)) {
    case RELEASE_NOTHING:
        break;
    case RELEASE_SUBSCRIBED:
        node_lacks_no_more(node, LACK_SUBSCRIBE);
        node_lacks_no_more(node, LACK_CHANNEL);
        listener->is_subscribed = true; /* earlier releases may have been missed */
        release_listener_wake(listener, false, SLICE(""));
        break;
    case RELEASE_KEY:
        release_listener_wake(listener, true, key);
        break;
    }
}

static void release_listener_on_bytes(struct lane_user *lane_user, const char *data, size_t n)
{
    struct release_listener *listener = release_listener_of(lane_user);
    const struct lane *lane = lane_user->lane;
    /* ends early when no call waits any more, and the lane is closed */
    while (n > 0 && lane_user->lane == lane) {
        size_t used;
        enum scan_result result = reply_scan(&listener->scan, data, n, &used);
        if (result == SCAN_BAD || !bytes_add(&listener->frame, slice_of(data, used), FRAME_MAX)) {
            lane_fail(lane_user->lane, END_LOST, "weir cannot parse its messages");
            return;
        }
        data += used;
        n -= used;
        if (result != SCAN_FRAME)
            continue;
        struct slice frame = bytes_slice(&listener->frame);
        listener->frame.len = 0;
        release_listener_take_frame(listener, frame);
    }
}

/* ---- the subscription ---- */

static void subscribe(struct release_listener *listener)
{
    const struct slice words[] = {SLICE("SUBSCRIBE"), slice_str(listener->channel)};
    char out[512];
    if (words[1].len > 256)
        return;
    if (lane_call_flow(listener->base.lane_user.lane, &listener->base.lane_user, FLOW_SUBSCRIBE, 1,
                       0) == NULL) {
        try_later(listener);
        return;
    }
    lane_send(listener->base.lane_user.lane, &listener->base.lane_user, out,
              emit_array(out, words, 2));
}

static void subscribe_if_ready(struct release_listener *listener)
{
    struct lane_user *lane_user = &listener->base.lane_user;
    if (listener->is_subscribed || lane_user->in_flight > 0)
        return;
    if (lane_is_ready(lane_user->lane))
        subscribe(listener);
    else
        lane_wait(lane_user->lane, lane_user);
}

/* Chooses the next master of a cluster, or the default node. */
static void choose_next(struct release_listener *listener)
{
    const struct nodes *nodes = listener->nodes;
    size_t n = nodes->topology->n_masters, next = nodes->topology->pubsub;
    for (size_t i = 0; i < n; i++)
        if (&nodes->rows[i]->lanes == listener->base.lanes)
            next = (i + 1) % n;
    listener->base.lanes = &nodes->rows[next]->lanes;
}

/* Opens the lane and subscribes, if a call waits. */
static void open_if_needed(struct release_listener *listener)
{
    if (list_is_empty(&listener->waiting) || alarm_is_set(&listener->again))
        return;
    if (listener->base.is_open || weir_lane_open(&listener->base, listener->login, LANE_SCRIPT))
        subscribe_if_ready(listener);
    else {
        choose_next(listener);
        try_later(listener);
    }
}

static void release_listener_on_again(struct alarm *alarm)
{
    open_if_needed(container_of(alarm, struct release_listener, again));
}

static void lose_lane(struct release_listener *listener)
{
    weir_lane_lost(&listener->base);
    release_listener_forget(listener);
    choose_next(listener);
}

static void release_listener_on_lost(struct lane_user *lane_user, const struct lane *lane)
{
    struct release_listener *listener = release_listener_of(lane_user);
    (void)lane;
    lose_lane(listener);
    release_listener_wake(listener, false, SLICE(""));
}

static void release_listener_on_refused(struct lane_user *lane_user, enum lane_end end,
                                        struct slice reply)
{
    struct release_listener *listener = release_listener_of(lane_user);
    (void)end;
    (void)reply;
    lose_lane(listener);
    try_later(listener);
}

static const struct lane_user_ops lane_user_ops = {
    .on_bytes = release_listener_on_bytes,
    .on_refused = release_listener_on_refused,
    .on_lost = release_listener_on_lost,
    .to_link = WEIR_LANE_TO_LINK,
};

static void on_link_wake(struct link *link)
{
    struct release_listener *listener = container_of(link, struct release_listener, base.hollow);
    if (listener->base.is_open && lane_is_ready(listener->base.lane_user.lane))
        subscribe_if_ready(listener);
}

static const struct link_ops link_ops = {.on_wake = on_link_wake};

void release_listener_init(struct release_listener *listener, struct nodes *nodes,
                           struct alarms *alarms, void (*on_wake)(struct decision *decision))
{
    struct lanes *lanes = &nodes_pubsub_row(nodes)->lanes;
    *listener = (struct release_listener){.nodes = nodes,
                                          .login = login_get(nodes->worker_lanes.own.newest),
                                          .alarms = alarms,
                                          .again.on_due = release_listener_on_again,
                                          .on_wake = on_wake};
    weir_lane_init(&listener->base, lanes, &lane_user_ops, &link_ops);
    list_init(&listener->waiting);
}

void release_listener_adopt(struct release_listener *listener)
{
    const struct nodes *nodes = listener->nodes;
    for (size_t i = 0; i < nodes->topology->n_masters; i++)
        if (&nodes->rows[i]->lanes == listener->base.lanes)
            return;
    close_lane(listener);
    choose_next(listener);
    alarm_stop(listener->alarms, &listener->again);
    release_listener_wake(listener, false, SLICE(""));
    if (listener->channel != NULL)
        open_if_needed(listener);
}

void release_listener_fini(struct release_listener *listener)
{
    weir_lane_fini(&listener->base);
    bytes_fini(&listener->frame);
    free(listener->channel);
    login_put(listener->login);
}

void release_listener_add(struct release_listener *listener, struct decision *decision)
{
    if (list_is_empty(&decision->in_listener))
        list_push(&listener->waiting, &decision->in_listener);
}

void release_listener_listen(struct release_listener *listener, struct slice channel)
{
    if (listener->channel == NULL || !slice_eq(channel, slice_str(listener->channel))) {
        close_lane(listener);
        free(listener->channel);
        listener->channel = strndup(channel.at, channel.len);
    }
    if (listener->channel != NULL)
        open_if_needed(listener);
}

void release_listener_remove(struct release_listener *listener, struct decision *decision)
{
    list_take(&decision->in_listener);
    if (!list_is_empty(&listener->waiting))
        return;
    alarm_stop(listener->alarms, &listener->again);
    if (listener->base.is_open)
        close_lane(listener);
}
