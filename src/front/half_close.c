#include "front/half_close.h"

#include <stdlib.h>

#include "front/account.h"
#include "front/decisions.h"
#include "front/feed.h"
#include "front/lane_choice.h"

/* Is a command of its in Redis that may block? */
static bool may_wait_in_redis(const struct client *client)
{
    return client->has_private_lane && client->rider.lane != NULL && lane_may_wait(client->rider.lane);
}

/*
 * What Redis has not answered by now blocks; on a connection of its own the client would be gone. Where it has answered
 * the client has what follows answered too.
 */
static void on_probe_over(struct probe *probe)
{
    struct client *client = container_of(probe, struct ending, probe)->client;
    if (!may_wait_in_redis(client))
        return;
    client->is_leaving = true; /* nothing behind it is carried out: its answer would stand where this one's is missing */
    lane_choice_abandon(client);
    link_finish(&client->link);
}

/* A command of a client that has gone must not wait in Redis: it could take an element for nobody. */
static void end_waiting(struct client *client)
{
    if (!may_wait_in_redis(client))
        return;
    struct extra *extra = client_need_extra(client);
    if (extra == NULL)
        return;
    if (extra->ending == NULL) {
        extra->ending = malloc(sizeof *extra->ending);
        if (extra->ending == NULL) {
            client_close_starved(client);
            return;
        }
        extra->ending->client = client;
        extra->ending->probe.on_over = on_probe_over;
        list_init(&extra->ending->probe.in_prober);
    }
    struct lane *lane = prober_start(&nodes_row_of(client->rider.lane)->prober, &extra->ending->probe);
    if (lane != NULL)
        lane_wait(lane, &client->rider);
}

/*
 * How many answers a raw client has still to get nobody can count, but Redis: it carries out all that has come, answers
 * that, and closes when it finds the end of weir's side behind it.
 */
static void leave(struct client *client)
{
    if (client->is_raw && client->rider.lane != NULL)
        lane_end_raw(client->rider.lane);
    client_leave(client);
}

void half_close_check(struct client *client)
{
    if (!client->is_eof || client_is_closed(client))
        return;
    feed_end(client);
    end_waiting(client);
    if (!decisions_hurry(client) || account_waits_long(client))
        client_close(client);
    if (client->is_leaving || client_is_closed(client))
        return;
    if (!client_has_more(client) && !client->is_held && !client->rider.wants_idle)
        leave(client);
}

void half_close_begin(struct client *client)
{
    client->is_eof = client->rider.is_gone = true;
    nodes_sweep(&client->front->nodes);
    half_close_check(client);
}
