#include "front/client/timeouts.h"

#include "base/log.h"
#include "front/client/binding.h"
#include "front/client/client.h"
#include "front/route/outage.h"
#include "front/client/session.h"
#include "front/client/unbound.h"
#include "net/tcp_peer.h"
#include "net/tls.h"

/*
 * number of looks at each client in one idle-timeout; after this many silent looks in a row the
 * client is closed
 */
#define LOOKS 8
/* most looks in one iteration; other events are served before further looks */
#define LOOKS_MAX 1024
/* unbound connections that are bound in one iteration; each may cost a reply and a close */
#define BINDS_MAX 128

static struct client *waiting_at(struct list *at)
{
    return container_of(at, struct client, waited_for.in_list);
}

static struct client *client_at(struct list *at)
{
    return container_of(at, struct client, in_front);
}

uint32_t timeouts_now_ms(const struct front *front)
{
    return (uint32_t)(front->loop->now_ns / NS_PER_MS);
}

/*
 * Both times are rounded down to milliseconds. One more millisecond must pass, or the time-out
 * would be early.
 */
static bool timeouts_is_over(const struct front *front, uint32_t since_ms, uint64_t timeout_ns)
{
    return timeouts_now_ms(front) - since_ms > ns_to_ms_up(timeout_ns);
}

/* Sets the alarm for the time when timeouts_is_over becomes true. */
static void wake_when_over(struct front *front, struct alarm *alarm, uint32_t since_ms,
                           uint64_t timeout_ns)
{
    uint64_t passed_ms = timeouts_now_ms(front) - since_ms, wanted_ms = ns_to_ms_up(timeout_ns) + 1;
    uint64_t left_ms = passed_ms < wanted_ms ? wanted_ms - passed_ms : 0;
    if (!alarm_is_set(alarm))
        alarm_set(&front->timeouts.alarms, alarm, front->loop->now_ns + left_ms * NS_PER_MS);
}

/* ---- handshakes, and unfinished requests ---- */

/* Sets the alarm for the first client in the list, if there is a time-out. */
static void timeouts_arm(struct front *front, struct alarm *alarm, const struct list *list,
                         uint64_t timeout_ns)
{
    if (timeout_ns > 0 && !list_is_empty(list))
        wake_when_over(front, alarm, waiting_at(list->next)->waited_for.since_ms, timeout_ns);
}

static void timeouts_begin(struct client *client, struct list *list, struct alarm *alarm,
                           uint64_t timeout_ns)
{
    struct waited_for *waited_for = &client->waited_for;
    list_take(&waited_for->in_list);
    waited_for->since_ms = timeouts_now_ms(client->front);
    list_push(list, &waited_for->in_list);
    timeouts_arm(client->front, alarm, list, timeout_ns);
}

/* The first client in the list, if its time is over; else NULL. */
static struct client *first_late(const struct front *front, const struct list *list,
                                 uint64_t timeout_ns)
{
    if (timeout_ns == 0 || list_is_empty(list))
        return NULL;
    struct client *client = waiting_at(list->next);
    return timeouts_is_over(front, client->waited_for.since_ms, timeout_ns) ? client : NULL;
}

static void on_handshake_late(struct alarm *alarm)
{
    struct front *front = container_of(alarm, struct front, timeouts.handshake);
    uint64_t timeout_ns = front->rules->handshake_timeout_ns;
    struct client *client;
    while ((client = first_late(front, &front->timeouts.handshakes, timeout_ns)) != NULL)
        client_close_for(client, CLOSED_HANDSHAKE);
    timeouts_arm(front, alarm, &front->timeouts.handshakes, timeout_ns);
}

bool timeouts_drop_handshake(struct front *front)
{
    if (list_is_empty(&front->timeouts.handshakes))
        return false;
    struct client *client = waiting_at(front->timeouts.handshakes.next);
    session_log_closed(client, LOG_SITE_CLIENT_CLOSED,
                       "its handshake is not done, and other clients need the "
                       "connection slot");
    client_close_for(client, CLOSED_HANDSHAKE);
    return true;
}

/*
 * Handshakes allowed at a time: a quarter of max-clients, and as many as fit in a quarter of
 * memory-limit.
 */
static uint64_t timeouts_share(const struct rules *rules)
{
    uint64_t n = rules->max_clients / 4;
    uint64_t room = rules->memory_limit_bytes / 4 / TLS_SHAKING_BYTES;
    return rules->memory_limit_bytes != 0 && room < n ? room : n;
}

/*
 * Drops this worker's oldest handshake if the handshakes of all workers exceed the share; the
 * client's handshake is the n-th. One handshake of the share stays free for each other worker, so
 * every worker may always have one handshake.
 */
static void keep_share(struct client *client, uint64_t n)
{
    struct front *front = client->front;
    uint64_t others = front->settings->n_workers - 1;
    if (n + others > timeouts_share(front->rules) &&
        waiting_at(front->timeouts.handshakes.next) != client)
        (void)timeouts_drop_handshake(front);
}

/* True if weir or Redis keeps the rest of the request from being read. */
static bool is_hindered(const struct client *client)
{
    return client->link.is_paused || client->waits != 0;
}

static void close_late_request(struct client *client)
{
    char name[SESSION_TEXT];
    session_print(client, name);
    log_at(LOG_SITE_CLIENT_CLOSED, LOG_WARN,
           "client %s is closed: it did not finish a request within request-timeout", name);
    client_close_for(client, CLOSED_REQUEST);
}

static void on_request_late(struct alarm *alarm)
{
    struct front *front = container_of(alarm, struct front, timeouts.request);
    uint64_t timeout_ns = front->rules->request_timeout_ns;
    struct client *client;
    while ((client = first_late(front, &front->timeouts.unfinished, timeout_ns)) != NULL) {
        timeouts_end_request(client);
        if (is_hindered(client))
            timeouts_begin_request(client);
        else if (!client_is_leaving(client))
            close_late_request(client);
    }
    timeouts_arm(front, alarm, &front->timeouts.unfinished, timeout_ns);
}

void timeouts_begin_handshake(struct client *client)
{
    struct front *front = client->front;
    timeouts_begin(client, &front->timeouts.handshakes, &front->timeouts.handshake,
                   front->rules->handshake_timeout_ns);
    keep_share(client,
               atomic_fetch_add_explicit(&front->settings->shaking, 1, memory_order_relaxed) + 1U);
}

void timeouts_end_handshake(struct client *client)
{
    if (list_is_empty(&client->waited_for.in_list))
        return;
    list_take(&client->waited_for.in_list);
    client->waited_for.since_ms = timeouts_now_ms(client->front);
    atomic_fetch_sub_explicit(&client->front->settings->shaking, 1, memory_order_relaxed);
}

bool timeouts_is_new(const struct client *client, uint32_t since_ms)
{
    uint32_t now_ms = timeouts_now_ms(client->front);
    return now_ms - client->waited_for.since_ms <= now_ms - since_ms;
}

void timeouts_begin_request(struct client *client)
{
    struct front *front = client->front;
    timeouts_begin(client, &front->timeouts.unfinished, &front->timeouts.request,
                   front->rules->request_timeout_ns);
}

void timeouts_end_request(struct client *client)
{
    list_take(&client->waited_for.in_list);
}

/* ---- unbound connections ---- */

static struct unbound *unbound_at(struct list *at)
{
    return container_of(at, struct unbound, in_list);
}

static uint64_t unbound_ns(const struct front *front)
{
    return upstream_time(front->nodes.worker_lanes.upstream, UNBOUND_NS);
}

static void arm_unbound(struct front *front)
{
    if (!list_is_empty(&front->timeouts.unbound))
        wake_when_over(front, &front->timeouts.bind,
                       unbound_at(front->timeouts.unbound.next)->since_ms, unbound_ns(front));
}

void timeouts_begin_unbound(struct client *client)
{
    struct front *front = client->front;
    struct unbound *unbound = client->unbound;
    list_take(&unbound->in_list);
    unbound->since_ms = timeouts_now_ms(front);
    list_push(&front->timeouts.unbound, &unbound->in_list);
    arm_unbound(front);
}

/*
 * Binds the client, or waits once more. A client waits if its address is not known yet. A client
 * also waits if its login is in flight, since the login will bind the client.
 */
static void bind_late(struct client *client)
{
    if (client->subject == NULL || client_extra(client)->login != NULL)
        timeouts_begin_unbound(client);
    else if (client_is_leaving(client))
        list_take(&client->unbound->in_list);
    else
        (void)binding_bind(client);
}

static void on_unbound_late(struct alarm *alarm)
{
    struct front *front = container_of(alarm, struct front, timeouts.bind);
    struct list *list = &front->timeouts.unbound;
    for (int n = 0; n < BINDS_MAX && !list_is_empty(list); n++) {
        struct unbound *unbound = unbound_at(list->next);
        if (!timeouts_is_over(front, unbound->since_ms, unbound_ns(front)))
            break;
        bind_late(unbound->client);
    }
    arm_unbound(front);
}

/* ---- idle clients ---- */

static uint64_t period_ns(const struct front *front)
{
    return front->rules->idle_timeout_ns / LOOKS;
}

static void arm_idle(struct front *front)
{
    if (front->rules->idle_timeout_ns > 0 && !list_is_empty(&front->clients))
        wake_when_over(front, &front->timeouts.idle,
                       client_at(front->clients.next)->waited_for.looked_ms, period_ns(front));
}

/* True if the client may only listen: Redis sends to it without being asked. */
static bool timeouts_listens(const struct client *client)
{
    const struct lane *lane = client_has_own_lane(client) ? client->lane_user.lane : NULL;
    return pin_has(client, PIN_PASSTHROUGH) || client_is_subscribed(client) ||
           (lane != NULL && lane_is_monitoring(lane));
}

/* True if the client is closed as soon as it has read its output. */
static bool only_reads(const struct client *client)
{
    bool has_lane = client->lane_user.in_flight > 0 || client_has_own_lane(client);
    /* without calls or a private lane, lane_user.lane may point to a freed lane */
    const struct lane *lane = has_lane ? client->lane_user.lane : NULL;
    bool is_its_turn =
        !client_is_owed(client) || (lane != NULL && lane->slow_user == &client->lane_user);
    return client->output == OUTPUT_CUT ||
           (client_is_leaving(client) && is_its_turn && client_extra(client)->n_asked == 0);
}

/* True if bytes were written to the client since the last look. */
static bool reads_on(struct client *client)
{
    struct waited_for *waited_for = &client->waited_for;
    uint32_t written = (uint32_t)client->link.n_written;
    bool is_more = written != waited_for->written;
    list_take(&waited_for->in_list); /* the rest of a request is no longer waited for */
    waited_for->written = written;
    return is_more;
}

/* True if the client waits for weir or Redis, or still reads. */
static bool timeouts_is_busy(struct client *client)
{
    if (only_reads(client))
        return reads_on(client);
    return client_is_shaking(client) || client_is_leaving(client) || client_has_calls(client) ||
           timeouts_listens(client) || is_hindered(client) || client_extra(client)->n_asked > 0 ||
           client_extra(client)->admin_command != NULL || link_is_sending(&client->link);
}

static void timeouts_look_at(struct client *client)
{
    bool is_now_busy = timeouts_is_busy(client);
    client->waited_for.looked_ms = timeouts_now_ms(client->front);
    client->silent_looks =
        is_now_busy || client->was_active ? 0 : (client->silent_looks + 1U) & 15U;
    /* a busy client may stay busy until just before the next look */
    client->was_active = is_now_busy;
    if (client->silent_looks == LOOKS)
        client_close_for(client, CLOSED_IDLE);
}

static void timeouts_on_look(struct alarm *alarm)
{
    struct front *front = container_of(alarm, struct front, timeouts.idle);
    if (walk_is_on(&front->binding_walk) || walk_is_on(&front->round_walk) ||
        walk_is_on(&front->vanished_walk))
        return; /* timeouts_go_on follows */
    for (int n = 0;
         n < LOOKS_MAX && front->rules->idle_timeout_ns > 0 && !list_is_empty(&front->clients);
         n++) {
        struct client *client = client_at(front->clients.next);
        if (!timeouts_is_over(front, client->waited_for.looked_ms, period_ns(front)))
            break;
        list_take(&client->in_front);
        list_push(&front->clients, &client->in_front);
        timeouts_look_at(client);
    }
    arm_idle(front);
}

/* ---- vanished hosts ---- */

#define STEP_NS NS_PER_MS /* between two steps of the walk */

static void look_for_host(struct list *item, void *arg)
{
    (void)arg;
    struct client *client = container_of(item, struct client, in_front);
    if (client_is_closed(client) || !link_has_vanished(&client->link))
        return;
    session_log_closed(client, LOG_SITE_CLIENT_CLOSED, "its host no longer answers");
    client_close_for(client, CLOSED_BY_CLIENT);
}

static void set_walk(struct front *front, uint64_t in_ns)
{
    alarm_set(&front->timeouts.alarms, &front->timeouts.vanished, front->loop->now_ns + in_ns);
}

static void watch_hosts(struct front *front)
{
    if (!alarm_is_set(&front->timeouts.vanished) && !list_is_empty(&front->clients))
        set_walk(front, tcp_peer_look_ns());
}

static void on_walk_vanished(struct alarm *alarm)
{
    struct front *front = container_of(alarm, struct front, timeouts.vanished);
    if (!walk_is_on(&front->vanished_walk))
        walk_begin(&front->vanished_walk, &front->clients);
    if (!walk_step(&front->vanished_walk, &front->clients, look_for_host, NULL)) {
        set_walk(front, STEP_NS);
        return;
    }
    watch_hosts(front);
    arm_idle(front);
}

/* ---- coming and going ---- */

void timeouts_init(struct front *front)
{
    struct timeouts *timeouts = &front->timeouts;
    alarms_init(&timeouts->alarms, front->loop, 6);
    list_init(&timeouts->handshakes);
    list_init(&timeouts->unfinished);
    list_init(&timeouts->unbound);
    timeouts->bind.on_due = on_unbound_late;
    timeouts->handshake.on_due = on_handshake_late;
    timeouts->request.on_due = on_request_late;
    timeouts->idle.on_due = timeouts_on_look;
    timeouts->look.on_due = outage_look;
    timeouts->vanished.on_due = on_walk_vanished;
}

void timeouts_enter(struct client *client)
{
    struct front *front = client->front;
    list_init(&client->waited_for.in_list);
    client->waited_for.looked_ms = client->waited_for.since_ms = timeouts_now_ms(front);
    client->waited_for.came_s = (uint32_t)(front->loop->now_ns / NS_PER_S);
    client->waited_for.active_mi = (uint32_t)(front->loop->now_ns >> ACTIVE_BITS);
    list_push(&front->clients, &client->in_front);
    arm_idle(front);
    watch_hosts(front);
}

uint64_t timeouts_age_s(const struct client *client)
{
    return client->front->loop->now_ns / NS_PER_S - client->waited_for.came_s;
}

uint64_t timeouts_idle_s(const struct client *client)
{
    uint32_t now = (uint32_t)(client->front->loop->now_ns >> ACTIVE_BITS);
    return ((uint64_t)(now - client->waited_for.active_mi) << ACTIVE_BITS) / NS_PER_S;
}

void timeouts_leave(struct client *client, enum client_state was)
{
    if (was == CLIENT_SHAKING)
        timeouts_end_handshake(client);
    list_take(&client->waited_for.in_list);
    walk_skip(&client->front->binding_walk, &client->in_front);
    walk_skip(&client->front->round_walk, &client->in_front);
    walk_skip(&client->front->vanished_walk, &client->in_front);
    list_take(&client->in_front);
}

void timeouts_go_on(struct front *front)
{
    arm_idle(front);
}

void timeouts_adopt(struct front *front)
{
    struct timeouts *timeouts = &front->timeouts;
    alarm_stop(&timeouts->alarms, &timeouts->handshake);
    alarm_stop(&timeouts->alarms, &timeouts->request);
    alarm_stop(&timeouts->alarms, &timeouts->idle);
    timeouts_arm(front, &timeouts->handshake, &timeouts->handshakes,
                 front->rules->handshake_timeout_ns);
    timeouts_arm(front, &timeouts->request, &timeouts->unfinished,
                 front->rules->request_timeout_ns);
    arm_idle(front);
}

void timeouts_close(struct front *front)
{
    alarms_close(&front->timeouts.alarms);
}

void timeouts_fini(struct front *front)
{
    alarms_fini(&front->timeouts.alarms);
}
