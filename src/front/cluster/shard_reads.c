#include "front/cluster/shard_reads.h"

#include "base/clock.h"
#include "front/route/place.h"
#include "front/client/read_side.h"

/* time for which weir does not try a replica that has refused the client (chosen) */
#define AVOID_NS (10 * NS_PER_S)
/* least time between two waits of a client; a wait lasts at most 20 ms (worker_lanes_wake_soon) */
#define HOLD_NS NS_PER_S
#define NO_ROW SIZE_MAX

static const struct topology *shard_reads_topology_of(const struct client *client)
{
    return client->front->nodes.topology;
}

static const struct reads_settings *shard_reads_settings_of(const struct client *client)
{
    return &client->front->nodes.worker_lanes.upstream->reads;
}

static size_t shard_reads_number_of(const struct client *client, const struct nodes_row *row)
{
    const struct nodes *nodes = &client->front->nodes;
    for (size_t i = 0; i < nodes->n; i++)
        if (nodes->rows[i] == row)
            return i;
    return NO_ROW;
}

static bool is_replica_of(const struct topology *topology, size_t row, size_t master)
{
    return row >= topology->n_masters && topology->rows[row].master == master;
}

static const struct place *place_at(const struct client *client, size_t row)
{
    return spread_place(client_extra(client)->spread, client->front->nodes.rows[row]);
}

static uint64_t shard_reads_later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/*
 * Returns the latest time (ns) at which the client received a reply of the shard from another node
 * than this replica. The last reply of this replica counts, too, if the replica's state has become
 * doubtful since that reply.
 */
static uint64_t heard_elsewhere(const struct client *client, size_t row, size_t master)
{
    const struct topology *topology = shard_reads_topology_of(client);
    const struct read_side *reading = read_side_of(client);
    const struct place *own = place_at(client, row);
    uint64_t heard_ns = shard_reads_later(reading->seen_ns, reading->wrote_ns);
    for (size_t i = 0; i < topology->n_rows; i++) {
        bool is_other = i != row && (i == master || is_replica_of(topology, i, master));
        const struct place *place = is_other ? place_at(client, i) : NULL;
        if (place != NULL)
            heard_ns = shard_reads_later(heard_ns, place->heard_ns);
    }
    const struct reach *reach = &lanes_node(&client->front->nodes.rows[row]->lanes)->reach;
    return own != NULL && own->doubts != reach_doubts(reach)
               ? shard_reads_later(heard_ns, own->heard_ns)
               : heard_ns;
}

/*
 * Returns the time (ns) up to which the replica's state is known to be current. Returns 0 if the
 * replica is not in sync, or does not accept the client.
 */
static uint64_t shard_reads_as_of(const struct client *client, size_t row)
{
    const struct nodes_row *at = client->front->nodes.rows[row];
    const struct node *node = lanes_node(&at->lanes);
    const struct place *place = place_at(client, row);
    uint64_t now_ns = client->front->loop->now_ns;
    if (!node_has_address(node) || at->lanes.down != ERR_NONE ||
        (place != NULL && now_ns < place->avoided_until_ns))
        return 0;
    return reach_as_of(&node->reach, now_ns, shard_reads_settings_of(client)->lag_max_ns);
}

static bool may_read_at(const struct client *client, size_t row, size_t master)
{
    uint64_t as_of_ns = shard_reads_as_of(client, row);
    return as_of_ns != 0 && as_of_ns > heard_elsewhere(client, row, master);
}

/*
 * Returns the first readable replica of the master, counted cyclically from number `first`. NO_ROW
 * if no replica is readable.
 */
static size_t shard_reads_find(const struct client *client, size_t master, size_t first,
                               size_t n_replicas)
{
    const struct topology *topology = shard_reads_topology_of(client);
    size_t seen = 0, best = NO_ROW;
    for (size_t i = topology->n_masters; i < topology->n_rows; i++) {
        if (!is_replica_of(topology, i, master))
            continue;
        bool is_first = seen++ % n_replicas == first;
        if ((best != NO_ROW && !is_first) || !may_read_at(client, i, master))
            continue;
        best = i;
        if (is_first)
            return i;
    }
    return best;
}

static bool wants(const struct client *client, const struct request *request)
{
    const struct read_side *reading = read_side_of(client);
    return request->command->reads_keys && !request->is_again &&
           (shard_reads_settings_of(client)->reads == READS_REPLICAS || reading->has_asked);
}

/*
 * Sets *first to the number of the replica that the client prefers. False if the client reads from
 * the master.
 */
static bool shard_reads_choose(const struct client *client, const struct request *request,
                               size_t master, size_t *first, size_t *n_replicas)
{
    const struct topology *topology = shard_reads_topology_of(client);
    *n_replicas = 0;
    if (!wants(client, request) || master >= topology->n_masters)
        return false;
    for (size_t i = topology->n_masters; i < topology->n_rows; i++)
        *n_replicas += is_replica_of(topology, i, master);
    if (*n_replicas == 0)
        return false;
    /* the master takes a share of the reads, too */
    bool has_share = shard_reads_settings_of(client)->reads == READS_REPLICAS;
    size_t choice = read_side_of(client)->number % (*n_replicas + has_share);
    *first = choice - has_share;
    return !has_share || choice > 0;
}

struct nodes_row *shard_reads_row(const struct client *client, const struct request *request,
                                  struct nodes_row *master)
{
    size_t number = shard_reads_number_of(client, master), first, n_replicas;
    if (!shard_reads_choose(client, request, number, &first, &n_replicas))
        return master;
    size_t replica = shard_reads_find(client, number, first, n_replicas);
    return replica != NO_ROW ? client->front->nodes.rows[replica] : master;
}

bool shard_reads_hold(struct client *client, const struct request *request,
                      const struct nodes_row *row)
{
    const struct topology *topology = shard_reads_topology_of(client);
    struct read_side *reading = read_side_of(client);
    size_t number = shard_reads_number_of(client, row), first, n_replicas;
    uint64_t now_ns = client->front->loop->now_ns;
    bool is_any = false;
    if ((reading->held_ns != 0 && now_ns < reading->held_ns + HOLD_NS) ||
        spread_in_flight(client_extra(client)->spread) > 0 ||
        !shard_reads_choose(client, request, number, &first, &n_replicas))
        return false;
    for (size_t i = topology->n_masters; i < topology->n_rows && !is_any; i++)
        is_any = is_replica_of(topology, i, number) && shard_reads_as_of(client, i) != 0;
    if (!is_any)
        return false;
    reading->held_ns = now_ns;
    upstream_poll(client->front->nodes.worker_lanes.upstream);
    lanes_wake_soon(&client->front->nodes.rows[number]->lanes, &client->lane_user);
    client_wait(client, WAIT_LANE);
    return true;
}

bool shard_reads_must_wait(const struct client *client, const struct nodes_row *row)
{
    const struct topology *topology = shard_reads_topology_of(client);
    size_t number = shard_reads_number_of(client, row);
    if (number == NO_ROW)
        return false;
    if (number >= topology->n_masters && client_extra(client)->spread->n_hops > 0)
        return true;
    size_t master = topology->rows[number].master;
    for (size_t i = 0; i < topology->n_rows; i++) {
        bool is_other = i != number && (i == master || is_replica_of(topology, i, master));
        const struct place *place = is_other ? place_at(client, i) : NULL;
        if (place != NULL && (place->lane_user.in_flight > 0 || place->n_hops > 0))
            return true;
    }
    return false;
}

bool shard_reads_are_under_way(const struct client *client)
{
    const struct topology *topology = shard_reads_topology_of(client);
    for (size_t i = topology->n_masters; i < topology->n_rows; i++) {
        const struct place *place = place_at(client, i);
        if (place != NULL && (place->lane_user.in_flight > 0 || place->n_hops > 0))
            return true;
    }
    return false;
}

bool shard_reads_give_up(struct place *place)
{
    const struct client *client = place->client;
    size_t row = shard_reads_number_of(client, place->row);
    if (row == NO_ROW || row < shard_reads_topology_of(client)->n_masters)
        return false;
    place_forget_refusal(place);
    place->avoided_until_ns = client->front->loop->now_ns + AVOID_NS;
    return true;
}
