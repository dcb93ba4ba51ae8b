#include "upstream/lane/worker_lanes.h"

#include "upstream/lane/lane_user.h"

void outbox_flush(struct outbox *outbox)
{
    struct link *link = outbox->link;
    outbox->link = NULL;
    if (link != NULL && !link_is_closed(link))
        link_write(link, outbox->at, outbox->len);
}

void outbox_send(struct outbox *outbox, struct link *link, const char *data, size_t n)
{
    outbox_flush(outbox);
    link_write(link, data, n);
}

void outbox_gather(struct outbox *outbox, struct link *link, const char *data, size_t n)
{
    if (outbox->link == link && outbox->at + outbox->len == data) {
        outbox->len += n;
        return;
    }
    outbox_flush(outbox);
    *outbox = (struct outbox){link, data, n};
}

void worker_lanes_init(struct worker_lanes *worker_lanes, struct loop *loop,
                       struct upstream *upstream, bool is_private)
{
    *worker_lanes =
        (struct worker_lanes){.loop = loop, .upstream = upstream, .is_private = is_private};
    list_init(&worker_lanes->retrying);
}

void worker_lanes_fini(struct worker_lanes *worker_lanes)
{
    own_login_fini(&worker_lanes->own);
}

struct login *worker_lanes_login(struct worker_lanes *worker_lanes)
{
    return own_login_now(&worker_lanes->own, worker_lanes->loop->now_ns);
}

void worker_lanes_retry(struct worker_lanes *worker_lanes, struct lane_user *lane_user)
{
    if (room_is_full(&worker_lanes->upstream->room)) {
        room_want(&worker_lanes->upstream->room);
        worker_lanes->n_wanted++;
    }
    worker_lanes_wake_soon(worker_lanes, lane_user);
}

void worker_lanes_wake_soon(struct worker_lanes *worker_lanes, struct lane_user *lane_user)
{
    list_take(&lane_user->waiting);
    list_push(&worker_lanes->retrying, &lane_user->waiting);
}

static void unwant(struct worker_lanes *worker_lanes, uint32_t most)
{
    for (; most > 0 && worker_lanes->n_wanted > 0; most--, worker_lanes->n_wanted--)
        room_unwant(&worker_lanes->upstream->room);
}

bool worker_lanes_wake_retrying(struct worker_lanes *worker_lanes)
{
    if (list_is_empty(&worker_lanes->retrying)) {
        unwant(worker_lanes,
               worker_lanes->n_wanted); /* lane users that have left were counted, too */
        return false;
    }
    struct lane_user *lane_user =
        container_of(worker_lanes->retrying.next, struct lane_user, waiting);
    list_take(&lane_user->waiting);
    unwant(worker_lanes, 1);
    lane_user_resume(lane_user, LANE_USER_HAS_LANE);
    return true;
}
