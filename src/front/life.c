#include "front/life.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/ladder.h"
#include "base/log.h"
#include "front/client/again.h"
#include "front/client/binding.h"
#include "front/client/client.h"
#include "front/client/connection.h"
#include "front/commands/decisions.h"
#include "front/client/drain.h"
#include "front/route/lane_choice.h"
#include "front/client/login.h"
#include "front/route/outage.h"
#include "front/route/fair_share.h"
#include "front/route/places.h"
#include "front/client/remains.h"
#include "front/session/resubscribe.h"
#include "front/client/session.h"
#include "front/client/timeouts.h"
#include "front/client/timing.h"

static bool life_is_full(struct front *front)
{
    struct front_settings *settings = front->settings;
    unsigned before = atomic_fetch_add_explicit(&settings->clients, 1, memory_order_relaxed);
    if (before < front->rules->max_clients)
        return false;
    atomic_fetch_sub_explicit(&settings->clients, 1, memory_order_relaxed);
    return true;
}

static bool is_short_of_memory(const struct front *front)
{
    return atomic_load_explicit(&front->settings->memory_pressure.step, memory_order_relaxed) >=
           LADDER_REFUSE;
}

/* Undoes the count of life_is_full: the connection has closed, or could not become a client. */
static void life_leave(struct front *front, const struct listen_address *listen_address)
{
    front_leave(front, listen_address);
    client_drain_left(front);
}

/*
 * Sends an error and closes the connection. Over TLS no error is sent, because the handshake has
 * not taken place.
 */
static void life_turn_away(int fd, const struct listen_address *listen_address, enum err reason)
{
    struct slice text = err_text(reason);
    if (!listen_address->is_tls)
        (void)!send(fd, text.at, text.len, MSG_DONTWAIT | MSG_NOSIGNAL);
    close(fd);
}

void front_accept_failed(struct front *front, const struct listen_address *listen_address)
{
    count_add(&front->counts.listeners[listen_address->index].accept_errors, 1);
}

/* Closes a TCP connection without a peer address, which is a fault of the system. */
static void refuse_nameless(int fd, const struct listen_address *listen_address)
{
    log_at(LOG_SITE_ACCEPT, LOG_WARN,
           "a connection to %s is closed: the system does not return its peer address",
           listen_address->listener);
    close(fd);
}

void front_accept(struct front *front, int fd, const struct link_peer *peer,
                  const struct listen_address *listen_address)
{
    front->loop->now_ns = clock_ns();
    struct listener_counts *counts = &front->counts.listeners[listen_address->index];
    front->listen_addresses[listen_address->number] = listen_address;
    count_add(&counts->accepted, 1);
    if (!listen_address->is_unix && peer->ip.family == 0) {
        count_add(&counts->rejected[REJECTED_NO_ADDRESS], 1);
        refuse_nameless(fd, listen_address);
        return;
    }
    if (!listen_address->is_admin && life_is_full(front) &&
        !(timeouts_drop_handshake(front) && !life_is_full(front))) {
        count_add(&counts->rejected[REJECTED_MAX_CLIENTS], 1);
        life_turn_away(fd, listen_address, ERR_MAX_CLIENTS);
        return;
    }
    if (!listen_address->is_admin && is_short_of_memory(front)) {
        count_add(&counts->rejected[REJECTED_MEMORY], 1);
        life_leave(front, listen_address);
        life_turn_away(fd, listen_address, ERR_MAX_CLIENTS);
        return;
    }
    struct client *client = calloc(1, sizeof *client);
    if (client != NULL) {
        client_open(client, front, fd, peer, listen_address);
        return;
    }
    count_add(&counts->closed[CLOSED_BY_CLIENT], 1);
    life_leave(front, listen_address);
    life_turn_away(fd, listen_address, ERR_OUT_OF_MEMORY);
}

/*
 * Checks the logins of the user's open clients. Otherwise a client that sends nothing would stay
 * connected, though Redis refuses its user.
 */
static void on_user_refused(void *arg, const struct auth_user *user)
{
    struct front *front = arg;
    struct list *next;
    for (struct list *at = front->clients.next; at != &front->clients; at = next) {
        struct client *client = container_of(at, struct client, in_front);
        next = at->next;
        if (session_is_of(client, user) && client->state == CLIENT_OPEN &&
            !session_is_proven(client))
            login_check(client);
    }
}

/*
 * True if a client without a login is in this auth generation of the default node. False for any
 * other node, because a client at that node is in the node's present generation (session_key).
 */
static bool has_auth_generation(void *arg, const struct node *node, uint32_t auth_generation)
{
    struct front *front = arg;
    if (node != front_default_node(front))
        return false;
    for (struct list *at = front->clients.next; at != &front->clients; at = at->next) {
        const struct client *client = container_of(at, struct client, in_front);
        if (client->auth_generation == auth_generation && session_has_no_login(client))
            return true;
    }
    return false;
}

static bool on_chance(void *arg, unsigned most)
{
    return outage_wake(arg, most);
}

static const struct lanes_ops lanes_ops = {.on_user_refused = on_user_refused,
                                           .has_auth_generation = has_auth_generation,
                                           .on_chance = on_chance};

static void adopt_room(struct front *front)
{
    atomic_store_explicit(&front->nodes.worker_lanes.upstream->room.asked, front->rules->max_lanes,
                          memory_order_relaxed);
}

/* New lanes of weir's own user log in with the passwords of the rules. */
static void adopt_password(struct front *front)
{
    const struct own_password *password = &front->rules->upstream_password;
    const struct login *login = front->nodes.worker_lanes.own.newest;
    if (password->newest != NULL &&
        (login == NULL || !slice_eq(login_password(login), slice_str(password->newest))))
        nodes_set_login(
            &front->nodes,
            &(struct own_login_words){
                .user = front->settings->upstream_user,
                .newest = slice_str(password->newest),
                .before = password->before != NULL ? slice_str(password->before) : slice_of("", 0),
                .number = password->number,
            });
}

void front_init(struct front *front, struct loop *loop, struct front_settings *settings,
                unsigned index, void *worker, const struct tables *tables)
{
    memset(front, 0, sizeof *front);
    front->loop = loop;
    loop->on_written = timing_written;
    loop->on_iteration = fair_share_on_iteration;
    loop->is_unsettled = fair_share_is_unsettled;
    loop->owner = front;
    front->settings = settings;
    front->index = index;
    attempts_set_worker(settings->attempts, index, worker);
    front->client_ops = &connection_client_ops;
    front->commands = tables->commands;
    front->rules = tables->rules;
    front->topology = tables->topology;
    slowlog_keep(settings->slowlog, front->rules->slow_entries);
    front->limit_counters = settings->limit_counters[index];
    front->top = settings->tops[index];
    front->offenders = settings->all_offenders[index];
    front->worker = worker;
    list_init(&front->clients);
    list_init(&front->remains);
    list_init(&front->outages);
    list_init(&front->agains);
    list_init(&front->libraries);
    alarms_init(&front->alarms, loop, 0);
    alarms_init(&front->quota_alarms, loop, QUOTA_ALARMS);
    timeouts_init(front);
    client_drain_init(front);
    nodes_init(&front->nodes, loop, front->topology, settings->lanes_private, &lanes_ops, front);
    adopt_password(front);
    adopt_room(front);
    fair_share_init(front);
    nodes_start(&front->nodes);
    front->quota = quota_new(&front->nodes, &front->quota_alarms, &settings->quota, decisions_done);
}

/*
 * Begins each client's session at the new default node, as if the client had just connected there.
 */
static void move_default_node(struct front *front)
{
    struct list *next;
    /* WAIT at the new node cannot cover writes at the old node */
    front->nodes.worker_lanes.n_broken++;
    for (struct list *at = front->clients.next; at != &front->clients; at = next) {
        struct client *client = container_of(at, struct client, in_front);
        next = at->next;
        session_begin(client);
        lane_choice_note_retired(client);
    }
}

/* Moves each client's places and subscriptions to the nodes of the new topology. */
static void spread_clients(struct front *front)
{
    struct list *next;
    for (struct list *at = front->clients.next; at != &front->clients; at = next) {
        next = at->next;
        struct client *client = container_of(at, struct client, in_front);
        resubscribe_adopt(client);
        if (!client_is_closed(client))
            places_adopt(client);
    }
}

static void adopt_topology(struct front *front)
{
    const struct node *before = front_default_node(front);
    nodes_adopt(&front->nodes, front->topology);
    quota_adopt(front->quota);
    if (front_default_node(front) != before)
        move_default_node(front);
    if (front->nodes.worker_lanes.upstream->is_cluster)
        spread_clients(front);
    (void)outage_wake(front, UINT_MAX);
    again_wake(front);
}

/* True if only the topology differs: clients keep their policies and subjects. */
static bool is_topology_alone(const struct front *front, const struct tables *tables)
{
    return tables->rules == front->rules && tables->commands == front->commands;
}

void front_adopt(struct front *front, const struct tables *tables)
{
    assert(!front_is_binding(front));
    struct topology *before = front->topology;
    front->topology = tables->topology;
    if (front->topology != before)
        adopt_topology(front);
    topology_put(before);
    if (is_topology_alone(front, tables)) {
        rules_put(tables->rules);
        command_table_put(tables->commands);
        return;
    }
    if (tables->commands != front->commands)
        front->slow.table_ns = front->loop->now_ns;
    command_table_put(front->commands);
    front->rules_before = front->rules;
    front->commands = tables->commands;
    front->rules = tables->rules;
    front->generation ^= 1;
    slowlog_keep(front->settings->slowlog, front->rules->slow_entries);
    memset(&front->recent, 0, sizeof front->recent);
    adopt_password(front);
    adopt_room(front);
    front->last_refusal.limit = NULL;
    timeouts_adopt(front);
    walk_begin(&front->binding_walk, &front->clients);
}

static void bind_anew(struct list *item, void *arg)
{
    struct client *client = container_of(item, struct client, in_front);
    (void)arg;
    if (client_has_old_rules(client))
        (void)binding_renew(client);
}

bool front_bind_some(struct front *front)
{
    front->loop->now_ns = clock_ns();
    if (!walk_step(&front->binding_walk, &front->clients, bind_anew, NULL))
        return false;
    timeouts_go_on(front);
    remains_renew(front);
    rules_put(front->rules_before);
    front->rules_before = NULL;
    return true;
}

void front_close(struct front *front)
{
    attempts_set_worker(front->settings->attempts, front->index, NULL);
    client_drain_close(front);
    while (!list_is_empty(&front->clients))
        client_close_for(container_of(front->clients.next, struct client, in_front), CLOSED_DRAIN);
    remains_close(front);
    quota_free(front->quota);
    alarms_close(&front->alarms);
    alarms_close(&front->quota_alarms);
    timeouts_close(front);
    fair_share_close(front);
    nodes_close(&front->nodes);
}

void front_fini(struct front *front)
{
    client_drain_fini(front);
    alarms_fini(&front->alarms);
    alarms_fini(&front->quota_alarms);
    timeouts_fini(front);
    nodes_fini(&front->nodes);
    command_table_put(front->commands);
    rules_put(front->rules);
    if (front->rules_before != NULL)
        rules_put(front->rules_before);
    topology_put(front->topology);
}
