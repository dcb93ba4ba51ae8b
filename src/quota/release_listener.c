#include "quota/release_listener.h"

#include <stdlib.h>
#include <string.h>

#include "limit/command.h"
#include "quota/release.h"
#include "resp/emit.h"

#define FRAME_MAX (1 << 20)

static struct release_listener *release_listener_of(struct rider *rider)
{
    return container_of(rider, struct release_listener, rider);
}

/* on_wake may take any of them out: they are looked at one by one from a list of their own. */
static void wake(struct release_listener *wakes, bool has_key, struct slice key)
{
    struct list now;
    list_take_all(&now, &wakes->waiting);
    while (!list_is_empty(&now)) {
        struct decision *call = container_of(now.next, struct decision, in_listener);
        list_take(&call->in_listener);
        list_push(&wakes->waiting, &call->in_listener);
        if (!has_key || slice_eq(call->key, key))
            wakes->on_wake(call);
    }
}

/* ---- what is published ---- */

static void take_frame(struct release_listener *wakes, struct slice frame)
{
    struct slice key;
    switch (release_read(frame, slice_str(wakes->channel), &key)) {
    case RELEASE_NOTHING:
        break;
    case RELEASE_SUBSCRIBED:
        wakes->is_subscribed = true; /* what was released before that may have been missed */
        wake(wakes, false, SLICE(""));
        break;
    case RELEASE_KEY:
        wake(wakes, true, key);
        break;
    }
}

static void on_bytes(struct rider *rider, const char *data, size_t n)
{
    struct release_listener *wakes = release_listener_of(rider);
    const struct lane *lane = rider->lane;
    while (n > 0 && rider->lane == lane) { /* nobody waiting any more, it is let go */
        size_t used;
        enum scan_result result = reply_scan(&wakes->scan, data, n, &used);
        if (result == SCAN_BAD || !bytes_add(&wakes->frame, slice_of(data, used), FRAME_MAX)) {
            lane_fail(rider->lane, END_LOST, "what it publishes cannot be read");
            return;
        }
        data += used;
        n -= used;
        if (result != SCAN_FRAME)
            continue;
        struct slice frame = bytes_slice(&wakes->frame);
        wakes->frame.len = 0;
        take_frame(wakes, frame);
    }
}

/* ---- the subscription ---- */

static void forget_lane(struct release_listener *wakes)
{
    wakes->is_open = wakes->is_subscribed = false;
    wakes->rider.lane = NULL;
    wakes->rider.in_flight = 0;
    wakes->frame.len = 0;
    memset(&wakes->scan, 0, sizeof wakes->scan);
}

static void subscribe(struct release_listener *wakes)
{
    const struct slice words[] = {SLICE("SUBSCRIBE"), slice_str(wakes->channel)};
    char out[512];
    if (words[1].len > 256 || lane_call_special(wakes->rider.lane, &wakes->rider, FLOW_SUBSCRIBE, 1, 0) == NULL)
        return;
    lane_send(wakes->rider.lane, &wakes->rider, out, emit_array(out, words, 2));
}

/* While anybody waits. Without Redis they are told when they try again. */
static void open_if_needed(struct release_listener *wakes)
{
    if (list_is_empty(&wakes->waiting) || wakes->is_open)
        return;
    wakes->lane_key.epoch = node_epoch(wakes->lanes->node);
    if (lanes_open_own(wakes->lanes, &wakes->lane_key, LANE_SCRIPT, &wakes->rider) == NULL)
        return;
    wakes->is_open = true;
    if (lane_is_ready(wakes->rider.lane))
        subscribe(wakes);
    else
        lane_wait(wakes->rider.lane, &wakes->rider);
}

static void close_lane(struct release_listener *wakes)
{
    list_take(&wakes->rider.waiting);
    if (wakes->rider.lane != NULL)
        lane_forget(wakes->rider.lane, &wakes->rider);
    forget_lane(wakes);
}

static void on_lost(struct rider *rider)
{
    struct release_listener *wakes = release_listener_of(rider);
    forget_lane(wakes);
    wake(wakes, false, SLICE(""));
}

static void on_refused(struct rider *rider, struct slice reply)
{
    (void)reply;
    forget_lane(release_listener_of(rider));
}

static const struct rider_ops rider_ops = {
    .on_bytes = on_bytes,
    .on_refused = on_refused,
    .on_lost = on_lost,
    .to_link =
        (ptrdiff_t)offsetof(struct release_listener, hollow) - (ptrdiff_t)offsetof(struct release_listener, rider),
};

static void on_link_wake(struct link *link)
{
    struct release_listener *wakes = container_of(link, struct release_listener, hollow);
    if (wakes->is_open && lane_is_ready(wakes->rider.lane) && !wakes->is_subscribed)
        subscribe(wakes);
}

static const struct link_ops link_ops = {.on_wake = on_link_wake};

void release_listener_init(struct release_listener *wakes, struct lanes *lanes, struct login *login,
                           void (*on_wake)(struct decision *call))
{
    *wakes = (struct release_listener){.lanes = lanes, .lane_key = {.protocol = 2, .login = login}, .on_wake = on_wake};
    wakes->rider.ops = &rider_ops;
    list_init(&wakes->rider.waiting);
    list_init(&wakes->waiting);
    link_init_hollow(&wakes->hollow, lanes->loop, &link_ops);
}

void release_listener_fini(struct release_listener *wakes)
{
    list_take(&wakes->hollow.woken);
    close_lane(wakes);
    bytes_fini(&wakes->frame);
    free(wakes->channel);
    login_put(wakes->lane_key.login);
}

void release_listener_add(struct release_listener *wakes, struct decision *call)
{
    if (list_is_empty(&call->in_listener))
        list_push(&wakes->waiting, &call->in_listener);
}

void release_listener_listen(struct release_listener *wakes, struct slice channel)
{
    if (wakes->channel == NULL || !slice_eq(channel, slice_str(wakes->channel))) {
        close_lane(wakes);
        free(wakes->channel);
        wakes->channel = strndup(channel.at, channel.len);
    }
    if (wakes->channel != NULL)
        open_if_needed(wakes);
}

void release_listener_remove(struct release_listener *wakes, struct decision *call)
{
    list_take(&call->in_listener);
    if (list_is_empty(&wakes->waiting) && wakes->is_open)
        close_lane(wakes);
}
