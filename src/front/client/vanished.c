#include "front/client/vanished.h"

#include "front/client/client.h"
#include "front/client/session.h"
#include "front/client/timeouts.h"
#include "net/tcp_peer.h"

#define STEP_NS NS_PER_MS /* between two steps of a walk */

static void look_at(struct list *item, void *arg)
{
    (void)arg;
    struct client *client = container_of(item, struct client, in_front);
    if (client_is_closed(client) || !link_has_vanished(&client->link))
        return;
    session_log_closed(client, LOG_SITE_CLIENT_CLOSED, "its host does not answer any more");
    client_close_for(client, CLOSED_BY_CLIENT);
}

static void set_alarm(struct front *front, uint64_t in_ns)
{
    alarm_set(&front->timeouts.alarms, &front->timeouts.vanished, front->loop->now_ns + in_ns);
}

static void on_due(struct alarm *alarm)
{
    struct front *front = container_of(alarm, struct front, timeouts.vanished);
    if (!walk_is_on(&front->vanished_walk))
        walk_begin(&front->vanished_walk, &front->clients);
    if (!walk_step(&front->vanished_walk, &front->clients, look_at, NULL)) {
        set_alarm(front, STEP_NS);
        return;
    }
    vanished_watch(front);
    timeouts_go_on(front);
}

void vanished_init(struct front *front)
{
    front->timeouts.vanished.on_due = on_due;
}

void vanished_watch(struct front *front)
{
    if (!alarm_is_set(&front->timeouts.vanished) && !list_is_empty(&front->clients))
        set_alarm(front, tcp_peer_look_ns());
}
