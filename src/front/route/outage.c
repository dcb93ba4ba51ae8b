#include "front/route/outage.h"

#include <limits.h>
#include <stdlib.h>

#include "base/clock.h"
#include "front/client/session.h"
#include "front/route/target.h"
#include "upstream/lane/lanes.h"

/*
 * time between two looks for a connection, while Redis answers but weir may open no more
 * connections (chosen)
 */
#define LOOK_NS (100 * NS_PER_MS)

/* Returns the lanes to the node of the client's next request. */
static struct lanes *lanes_of_client(const struct client *client)
{
    return client_is_on_cluster(client) ? &target_row(client)->lanes
                                        : &front_default_row(client->front)->lanes;
}

/*
 * Returns when the wait began: when the request became first in its connection's queue, or when
 * Redis was found to be away, whichever is later. Time in which a limit delays the request does not
 * count.
 */
static uint64_t begin_ns(const struct client *client)
{
    uint64_t missed_ns = lanes_of_client(client)->missed_ns;
    if (missed_ns == 0)
        return client->front->loop->now_ns;
    return missed_ns > client->lane_user.arrived_ns ? missed_ns : client->lane_user.arrived_ns;
}

/*
 * Ends all waits of the client for a connection. Otherwise the client could wait as long again for
 * a connection that is being opened.
 */
static void on_over(struct alarm *alarm)
{
    struct client *client = container_of(alarm, struct outage, over)->client;
    list_take(&client->lane_user.waiting);
    client_resume(client, WAIT_LANE);
    client_resume(client, WAIT_LOGIN);
    client_resume(client, WAIT_UPSTREAM);
}

/* Begins the client's wait for a connection. NULL: out of memory, and the client is closed. */
static struct outage *outage_begin(struct client *client)
{
    struct alarms *alarms = &client->front->timeouts.alarms;
    struct extra *extra = client_need_extra(client);
    struct outage *outage = extra != NULL ? calloc(1, sizeof *outage) : NULL;
    if (outage == NULL || !alarms_reserve(alarms, 1)) {
        free(outage);
        client_close_starved(client);
        return NULL;
    }
    outage->client = client;
    outage->over.on_due = on_over;
    outage->since_ns = begin_ns(client);
    list_init(&outage->in_front);
    list_push(&client->front->outages, &outage->in_front);
    extra->outage = outage;
    return outage;
}

/*
 * Returns when the wait ends; UINT64_MAX: when Redis answers. An outage neither closes nor answers
 * an operator's handshake. Exception: a Redis that refuses connections may refuse them for ever, so
 * an operator's wait for this Redis has an end.
 */
static uint64_t end_ns(const struct client *client, const struct outage *outage, enum err why,
                       bool is_handshake)
{
    const struct rules *rules = client->front->rules;
    uint64_t timeout_ns = lanes_of_client(client)->upstream->timeout_ns;
    if (why == ERR_UPSTREAM_BUSY)
        return outage->since_ns + rules->handshake_timeout_ns;
    if (is_handshake && client_may_administer(client)) {
        bool is_turned_away =
            why == ERR_UPSTREAM_UNAVAILABLE && lanes_of_client(client)->is_turned_away;
        return is_turned_away ? outage->since_ns + rules->handshake_timeout_ns : UINT64_MAX;
    }
    if (why != ERR_UPSTREAM_TIMEOUT)
        return outage->since_ns +
               rules->failover_wait_ns * (is_handshake ? OUTAGE_HANDSHAKE_WAITS : 1);
    return timeout_ns > 0 ? client->lane_user.arrived_ns + timeout_ns : UINT64_MAX;
}

bool outage_is_over(const struct client *client, bool is_handshake)
{
    const struct outage *outage = client_extra(client)->outage;
    return outage != NULL && lanes_of_client(client)->down == ERR_UPSTREAM_UNAVAILABLE &&
           client->front->loop->now_ns >=
               end_ns(client, outage, ERR_UPSTREAM_UNAVAILABLE, is_handshake);
}

static void outage_set_alarm(struct client *client, struct outage *outage, uint64_t due_ns)
{
    alarm_stop(&client->front->timeouts.alarms, &outage->over);
    if (due_ns != UINT64_MAX)
        alarm_set(&client->front->timeouts.alarms, &outage->over, due_ns);
}

void outage_watch(struct client *client, bool is_handshake)
{
    struct outage *outage = client_extra(client)->outage;
    if (outage != NULL || client_is_operator(client) ||
        lanes_of_client(client)->down != ERR_UPSTREAM_UNAVAILABLE ||
        (outage = outage_begin(client)) == NULL)
        return;
    front_count_fate(client->front, FATE_WAITED);
    outage->is_handshake = is_handshake;
    outage_set_alarm(client, outage,
                     end_ns(client, outage, ERR_UPSTREAM_UNAVAILABLE, is_handshake));
}

/*
 * Sets an alarm at which clients look for a connection again. No event tells when weir may open
 * more connections.
 */
static void outage_look_later(struct front *front)
{
    struct alarm *look = &front->timeouts.look;
    if (!alarm_is_set(look))
        alarm_set(&front->timeouts.alarms, look, front->loop->now_ns + LOOK_NS);
}

/*
 * True if the request arrived no later than a request that got the error after its wait. Requests
 * behind that request in a pipeline have waited as long.
 */
static bool has_waited_along(const struct client *client)
{
    uint64_t told_ns = client_extra(client)->told_ns;
    return told_ns != 0 && client->lane_user.arrived_ns <= told_ns;
}

static enum outage_step meet(struct client *client, enum err why, bool is_handshake)
{
    struct front *front = client->front;
    struct outage *outage = client_extra(client)->outage;
    if (client_is_operator(client) || (why == ERR_UPSTREAM_BUSY && !is_handshake))
        return OUTAGE_ERROR;
    if (outage == NULL && why != ERR_UPSTREAM_BUSY && !is_handshake && has_waited_along(client))
        return OUTAGE_ERROR;
    bool is_first = outage == NULL && why != ERR_UPSTREAM_BUSY;
    if (outage == NULL && (outage = outage_begin(client)) == NULL)
        return OUTAGE_STARVED;
    if (is_first)
        front_count_fate(front, FATE_WAITED);
    outage->is_handshake = is_handshake;
    uint64_t due_ns = end_ns(client, outage, why, is_handshake);
    if (front->loop->now_ns >= due_ns) {
        bool is_told = why == ERR_UPSTREAM_TIMEOUT || front->rules->tells_outage;
        bool is_turned_away = is_handshake && why == ERR_UPSTREAM_UNAVAILABLE;
        if (is_turned_away || (!client_may_administer(client) && (!is_told || is_handshake)))
            return OUTAGE_CLOSES;
        client->extra->told_ns = front->loop->now_ns;
        return OUTAGE_ERROR;
    }
    outage_set_alarm(client, outage, due_ns);
    client_wait(client, WAIT_UPSTREAM);
    lanes_hurry(lanes_of_client(client));
    outage_look_later(front);
    return OUTAGE_WAITS;
}

enum outage_step outage_meet(struct client *client, enum err why, bool is_handshake)
{
    enum outage_step step = meet(client, why, is_handshake);
    if ((step == OUTAGE_ERROR || step == OUTAGE_CLOSES) && why != ERR_UPSTREAM_BUSY &&
        !client_is_operator(client))
        front_count_fate(client->front, FATE_REFUSED);
    return step;
}

void outage_close(struct client *client)
{
    session_log_closed(client, LOG_SITE_CLIENT_CLOSED,
                       "weir could not connect to Redis within failover-wait");
    client_leave_for(client, CLOSED_UPSTREAM);
}

void outage_end(struct client *client)
{
    struct outage *outage = client_extra(client)->outage;
    if (outage == NULL)
        return;
    struct alarms *alarms = &client->front->timeouts.alarms;
    client->extra->outage = NULL;
    alarm_stop(alarms, &outage->over);
    alarms_release(alarms, 1);
    list_take(&outage->in_front);
    free(outage);
}

bool outage_wake(struct front *front, unsigned most)
{
    struct list now;
    bool is_any = !list_is_empty(&front->outages);
    list_take_all(&now, &front->outages);
    for (; most > 0 && !list_is_empty(&now); most--) {
        struct outage *outage = container_of(now.next, struct outage, in_front);
        list_take(&outage->in_front);
        list_push(&front->outages, &outage->in_front);
        client_resume(outage->client, WAIT_UPSTREAM);
    }
    /* the remaining clients go to the front of the list, to be woken first next time */
    while (!list_is_empty(&now)) {
        struct list *last = now.prev;
        list_take(last);
        list_push(front->outages.next, last);
    }
    return is_any;
}

void outage_look(struct alarm *alarm)
{
    struct front *front = container_of(alarm, struct front, timeouts.look);
    if (front_default_row(front)->lanes.down == ERR_NONE)
        (void)outage_wake(front, UINT_MAX);
    else if (!list_is_empty(&front->outages))
        outage_look_later(front);
}
