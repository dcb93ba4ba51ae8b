#include "front/client/half_close.h"

#include <stdlib.h>

#include "front/client/charge.h"
#include "front/cluster/compound.h"
#include "front/commands/decisions.h"
#include "front/client/feed.h"
#include "front/route/lane_choice.h"
#include "front/client/meter.h"
#include "front/route/fair_share.h"

/* True if the oldest call on the private lane may block in Redis. */
static bool waits_in_redis(const struct client *client)
{
    return client_has_own_lane(client) && client->lane_user.lane != NULL &&
           lane_waits(client->lane_user.lane);
}

static void end_waiting(struct client *client);

/*
 * If the probed call is still the oldest, its command blocks, since Redis has had time to answer.
 * Redis would close the half-closed connection of a blocked client, and so does weir. If Redis has
 * answered the call, the next call is probed.
 */
static void half_close_on_probe_over(struct probe *probe)
{
    const struct ending *ending = container_of(probe, struct ending, probe);
    struct client *client = ending->client;
    if (!waits_in_redis(client))
        return;
    if (client->lane_user.lane->calls.head != ending->call) {
        end_waiting(client);
        return;
    }
    /* Later requests are not run: their replies would take the position of the lost reply. */
    lane_choice_abandon(client);
    fair_share_stop(client);
    client_cut_for(client, CLOSED_BY_CLIENT);
}

/* Returns extra.ending, allocated on first use. NULL: out of memory, and the client is closed. */
static struct ending *need_ending(struct client *client)
{
    struct extra *extra = client_need_extra(client);
    if (extra == NULL || extra->ending != NULL)
        return extra != NULL ? extra->ending : NULL;
    extra->ending = malloc(sizeof *extra->ending);
    if (extra->ending == NULL) {
        client_close_starved(client);
        return NULL;
    }
    extra->ending->client = client;
    extra->ending->probe.on_over = half_close_on_probe_over;
    list_init(&extra->ending->probe.in_prober);
    return extra->ending;
}

/*
 * A command of a half-closed client must not block in Redis. The command could take an element from
 * a list, and no client would get the element.
 */
static void end_waiting(struct client *client)
{
    struct ending *ending = waits_in_redis(client) ? need_ending(client) : NULL;
    if (ending == NULL)
        return;
    ending->call = client->lane_user.lane->calls.head;
    struct lane *lane = prober_start(&nodes_row_of(client->lane_user.lane)->prober, &ending->probe);
    if (lane != NULL)
        lane_wait(lane, &client->lane_user);
}

/*
 * True if a limit delays the next command for long, or delays a client that reads no more. The
 * command's position in the queue is then given up.
 */
static bool waits_in_vain(const struct client *client)
{
    return charge_waits_long(client) ||
           (client->output == OUTPUT_DROPPED && meter_is_waiting(client));
}

void half_close_foresee(struct client *client)
{
    client->lane_user.is_gone = true;
    end_waiting(client);
}

void half_close_check(struct client *client)
{
    if (client->lane_user.is_gone && !client->is_eof && !client_is_closed(client))
        end_waiting(client); /* half_close_foresee was called */
    if (!client->is_eof || client_is_closed(client))
        return;
    feed_end(client);
    end_waiting(client);
    compounds_hurry(client);
    if (client_is_closed(client))
        return;
    if (!decisions_hurry(client) || waits_in_vain(client))
        client_close(client);
    if (client_is_leaving(client))
        return;
    if (!client_has_more(client) && (client->waits & ~WAIT_MEMORY) == 0 &&
        !client->lane_user.wants_idle)
        client_leave(client);
}

void half_close_begin(struct client *client)
{
    client->is_eof = client->lane_user.is_gone = true;
    nodes_sweep(&client->front->nodes);
    half_close_check(client);
}
