#include "upstream/lane/commons.h"

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

void commons_init(struct commons *commons, struct loop *loop, struct upstream *upstream, bool is_private)
{
    *commons = (struct commons){.loop = loop, .upstream = upstream, .is_private = is_private};
    list_init(&commons->hoping);
}

void commons_fini(struct commons *commons)
{
    own_login_fini(&commons->own);
}

struct login *commons_login(struct commons *commons)
{
    return own_login_now(&commons->own, commons->loop->now_ns);
}

void commons_hope(struct commons *commons, struct lane_user *lane_user)
{
    if (room_is_full(&commons->upstream->room)) {
        room_want(&commons->upstream->room);
        commons->n_wanted++;
    }
    commons_wake_soon(commons, lane_user);
}

void commons_wake_soon(struct commons *commons, struct lane_user *lane_user)
{
    list_take(&lane_user->waiting);
    list_push(&commons->hoping, &lane_user->waiting);
}

static void unwant(struct commons *commons, uint32_t most)
{
    for (; most > 0 && commons->n_wanted > 0; most--, commons->n_wanted--)
        room_unwant(&commons->upstream->room);
}

bool commons_wake_hoping(struct commons *commons)
{
    if (list_is_empty(&commons->hoping)) {
        unwant(commons, commons->n_wanted); /* lane users that have left were counted, too */
        return false;
    }
    struct lane_user *lane_user = container_of(commons->hoping.next, struct lane_user, waiting);
    list_take(&lane_user->waiting);
    unwant(commons, 1);
    lane_user_resume(lane_user, LANE_USER_HAS_LANE);
    return true;
}
